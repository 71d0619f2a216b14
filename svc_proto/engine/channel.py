"""Base of all channels: backpressure, read pauses, write timeout and close, independent of the protocol.

Reading pauses while too many of our bytes are unsent, unless `reads_while_unsent` is True, and while the consumer
requests a pause.
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
    """Base of the channels of servers, clients and child processes, which define what to do with received bytes."""

    survives_stop = False  # on a stop, this channel is stopped last, when all others are gone
    waits_for_peer = False  # the `Sent` of its writes may come late

    __slots__ = ("_holding", "_passing", "_paused", "_stall", "ch", "credit", "engine", "gone", "limits")

    def __init__(self, engine: Engine, ch: ChannelId, limits: Limits) -> None:
        self.engine = engine
        self.ch = ch
        self.limits = limits
        self.credit = Backpressure(limits.high_water, limits.low_water)
        self.gone = False  # dropped or closed: no further commands for this channel
        self._holding = False  # a consumer requested a read pause
        self._paused = False
        self._passing = False  # a file is being sent past the core
        self._stall = engine.timers.timer(self.abort)

    # --- facts, called by the engine ---

    @abstractmethod
    def received(self, data: bytes) -> None:
        """Handle bytes from the peer."""

    @abstractmethod
    def read_closed(self) -> None:
        """Handle the peer's FIN."""

    def sent(self, n: int) -> None:
        """Record that the kernel accepted `n` bytes: the channel's own first, then those of a file."""
        credit = self.credit
        if n == credit.unsent and not (credit.blocked or self._passing):  # the usual case: all bytes were sent
            credit.unsent = 0
            self._stall.cancel()
            self.all_sent()
            return
        drained = credit.mark_sent(min(credit.unsent, n))
        if self._passing:
            self._stall.set(self.engine.now.mono + self.limits.file_timeout)
        elif credit.unsent:
            self._stall.set(self.engine.now.mono + self.limits.write_timeout)
        else:
            self._stall.cancel()
            self.all_sent()
        if drained:
            self._update_reading()
            self.writable()

    def ended(self, fact: Closed) -> None:
        """Handle `Closed`, the channel's last fact; by default, call `closed` with its reason."""
        self.closed(fact.why)

    def closed(self, why: str) -> None:
        """Mark the channel as closed, so that nothing is read or written any more."""
        self.gone = True
        self._stall.retire()

    @abstractmethod
    def stop(self) -> None:
        """Finish work in progress and begin none: the process is stopping."""

    def flush(self) -> None:  # noqa: B027 - a channel without a protocol writes at once
        """Write pending output, at the end of a `handle` in which `mark_dirty()` was called. By default, do nothing."""

    # --- for the protocol above ---

    def writable(self) -> None:  # noqa: B027 - optional hook
        """Handle the fall of unsent bytes to the low-water mark. By default, do nothing."""

    def all_sent(self) -> None:  # noqa: B027 - optional hook
        """Handle that no byte is unsent. By default, do nothing."""

    def mark_dirty(self) -> None:
        """Schedule a `flush` at the end of this call of the core."""
        self.engine.dirty[self] = None

    def write(self, data: bytes) -> None:
        """Write bytes, unless the channel is gone."""
        if self.gone:
            return
        engine, credit = self.engine, self.credit
        engine.out.append(Send(self.ch, data, self.waits_for_peer))
        if not credit.unsent:
            self._stall.set(engine.now.mono + self.limits.write_timeout)
        credit.unsent += len(data)  # `add_unsent` is called only over the mark, to save a call
        if credit.unsent > self.limits.high_water and credit.add_unsent(0):
            self._update_reading()

    def set_file_transfer(self, passing: bool) -> None:
        """Record whether a file is being sent past the core; while it is, `file_timeout` applies to its progress."""
        self._passing = passing
        if passing:
            self._stall.set(self.engine.now.mono + self.limits.file_timeout)
        elif not self.credit.unsent:
            self._stall.cancel()

    def extend_write_timeout(self) -> None:
        """Restart `write_timeout` if bytes are unsent, since the peer has shown that it is alive."""
        if self.credit.unsent:
            self._stall.set(self.engine.now.mono + self.limits.write_timeout)

    def set_read_paused(self, holding: bool) -> None:
        """Set or end the consumer's pause of reading; after its end, backpressure may still pause reading."""
        if holding is not self._holding:
            self._holding = holding
            self._update_reading()

    def abort(self) -> None:
        """Cut the channel now, unless it is gone; the runtime then reports `Closed`."""
        if not self.gone:
            self.gone = True
            self._stall.cancel()
            self.engine.emit(Abort(self.ch))

    def drop_if_overrun(self) -> bool:
        """Drop the channel if over `max_unsent` bytes are unsent; return whether it was dropped."""
        if self.credit.unsent <= self.limits.max_unsent:
            return False
        self.abort()
        return True

    def reads_while_unsent(self) -> bool:
        """Report whether reading continues while too many bytes are unsent: False, unless a subclass differs."""
        return False

    def _update_reading(self) -> None:
        wanted = self._holding or (self.credit.blocked and not self.reads_while_unsent())
        if wanted is not self._paused and not self.gone:
            self._paused = wanted
            self.engine.emit(PauseReading(self.ch) if wanted else ResumeReading(self.ch))
