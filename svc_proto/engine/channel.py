"""What every channel has, whatever it speaks: its number, its credit, its pause switch and its end.

A channel reads no more while too much written by us is unsent, or while whoever reads it asked to wait. So memory
is bounded by the two water marks of `Limits`, and a peer that does not read cannot make us work for it. A WebSocket is
the exception: two ends that both wait for the other to read would wait for ever. It is bounded by `max_unsent`, and its
peer may leave unread what it wants to, as long as it says something now and then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from svc_proto.commands import Abort, PauseReading, ResumeReading, Send
from svc_proto.facts import ChannelId, Closed
from svc_proto.wire.backpressure import Backpressure
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Channel"]


class Channel(ABC):
    """Base of the server's and the client's channel; `received`, `read_closed`, `stop` and `flush` are theirs."""

    survives_stop = False  # at a stop it is there for the others, and is told when they are gone
    waits_for_peer = False  # the `Sent` of what it writes may come late

    __slots__ = ("_holding", "_passing", "_paused", "_stall", "ch", "credit", "engine", "gone", "limits")

    def __init__(self, engine: Engine, ch: ChannelId, limits: Limits) -> None:
        self.engine = engine
        self.ch = ch
        self.limits = limits
        self.credit = Backpressure(limits.high_water, limits.low_water)
        self.gone = False  # dropped or closed: nothing is ordered for it any more
        self._holding = False  # someone above asked not to read
        self._paused = False
        self._passing = False  # a file is on its way past the core
        self._stall = engine.timers.timer(self.abort)

    # --- facts, called by the engine ---

    @abstractmethod
    def received(self, data: bytes) -> None:
        """The peer has sent these bytes."""

    @abstractmethod
    def read_closed(self) -> None:
        """The peer sent its FIN."""

    def sent(self, n: int) -> None:
        """`n` bytes left for the kernel, those of ours before those of a file."""
        credit = self.credit
        if n == credit.unsent and not (credit.blocked or self._passing):  # as nearly always: all of it
            credit.unsent = 0
            self._stall.cancel()
            self.all_sent()
            return
        drained = credit.mark_sent(min(credit.unsent, n))
        if credit.unsent or self._passing:
            self._stall.set(self.engine.now.mono + self.limits.write_timeout)
        else:
            self._stall.cancel()
            self.all_sent()
        if drained:
            self._update_reading()
            self.writable()

    def ended(self, fact: Closed) -> None:
        """The last fact of the channel."""
        self.closed(fact.why)

    def closed(self, why: str) -> None:
        """The channel is gone."""
        self.gone = True
        self._stall.retire()

    @abstractmethod
    def stop(self) -> None:
        """The process is ending: finish what has begun, begin nothing."""

    def flush(self) -> None:  # noqa: B027 - a channel without a protocol writes at once
        """Called at the end of a `handle` in which `mark_dirty()` was called: `write` what there is to write."""

    # --- for the protocol above ---

    def writable(self) -> None:  # noqa: B027 - most have nothing to do then
        """Unsent bytes fell to the low-water mark."""

    def all_sent(self) -> None:  # noqa: B027 - the same
        """No byte is unsent."""

    def mark_dirty(self) -> None:
        """Have the channel flushed at the end of this call of the core."""
        self.engine.dirty[self] = None

    def write(self, data: bytes) -> None:
        """Order bytes to be written, unless it is `gone`."""
        if self.gone:
            return
        engine, credit = self.engine, self.credit
        engine.out.append(Send(self.ch, data, self.waits_for_peer))
        if not credit.unsent:
            self._stall.set(engine.now.mono + self.limits.write_timeout)
        credit.unsent += len(data)  # `backpressure.queued` is called for what goes over the mark alone
        if credit.unsent > self.limits.high_water and credit.add_unsent(0):
            self._update_reading()

    def set_file_transfer(self, passing: bool) -> None:
        """A file leaves past the core from now on, or not any more: its progress is watched like that of our bytes."""
        self._passing = passing
        if passing:
            self._stall.set(self.engine.now.mono + self.limits.write_timeout)
        elif not self.credit.unsent:
            self._stall.cancel()

    def extend_write_timeout(self) -> None:
        """The peer lives: give it its time to read anew."""
        if self.credit.unsent:
            self._stall.set(self.engine.now.mono + self.limits.write_timeout)

    def set_read_paused(self, holding: bool) -> None:
        """Stop or go on reading, whatever the credit says."""
        if holding is not self._holding:
            self._holding = holding
            self._update_reading()

    def abort(self) -> None:
        """Cut the channel now; `closed` follows."""
        if not self.gone:
            self.gone = True
            self._stall.cancel()
            self.engine.emit(Abort(self.ch))

    def drop_if_overrun(self) -> bool:
        """Drop the channel if more than `max_unsent` bytes are unsent: its peer does not read, and makes us write."""
        if self.credit.unsent <= self.limits.max_unsent:
            return False
        self.abort()
        return True

    def reads_while_unsent(self) -> bool:
        """Whether to go on reading although much is unsent."""
        return False

    def _update_reading(self) -> None:
        wanted = self._holding or (self.credit.blocked and not self.reads_while_unsent())
        if wanted is not self._paused and not self.gone:
            self._paused = wanted
            self.engine.emit(PauseReading(self.ch) if wanted else ResumeReading(self.ch))
