"""Permits for large inputs of authenticated peers: long WebSocket messages and request bodies.

Up to `large_input` bytes are buffered for each connection. For more the connection needs one of `large_inputs` permits;
without one it is not read until another connection has returned its own. A connection returns its permit when it
buffers no more than `large_input` bytes and its handler reads, or when it ends. A connection that holds a permit, and
does not send `large_input` further bytes within `large_input_timeout` seconds, is dropped.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import define

from svc_proto.commands import Level

if TYPE_CHECKING:
    from svc_proto.basics.timers import Timer
    from svc_proto.engine.core import Engine
    from svc_proto.engine.http_channel import HttpChannel

__all__ = ["LargeInputs"]


@define(eq=False)
class _Permit:
    timer: Timer
    size: int  # bytes that were buffered when the timer was set, or fewer


class LargeInputs:
    """The permits for large inputs of one engine: the channels that hold one, and those that wait for one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.holders: dict[HttpChannel, _Permit] = {}
        self.waiting: dict[HttpChannel, None] = {}  # in order of arrival

    def must_wait(self, channel: HttpChannel) -> bool:
        """Acquire a permit for a channel with a large input, or release one that it no longer needs.

        Return True if the channel has to wait for a permit.
        """
        limits, size = channel.limits, channel.buffered_bytes
        is_large = size > limits.large_input
        permit = self.holders.get(channel)
        if permit is not None:
            if not (is_large or channel.is_handler_paused):
                self.release(channel)
            elif size >= permit.size + limits.large_input:
                permit.size = size
                permit.timer.set(self._engine.now.mono + limits.large_input_timeout)
            else:
                permit.size = min(permit.size, size)
            return False
        if not is_large:
            return False
        if channel in self.waiting or len(self.holders) >= limits.large_inputs:
            self.waiting[channel] = None
            return True
        self._grant(channel)
        return False

    def release(self, channel: HttpChannel) -> None:
        """End the wait of a channel for a permit, or pass its permit to the channel that has waited longest, if any."""
        self.waiting.pop(channel, None)
        permit = self.holders.pop(channel, None)
        if permit is None:
            return
        permit.timer.retire()
        following = next(iter(self.waiting), None)
        if following is not None:
            del self.waiting[following]
            self._grant(following)
            following.after_events()

    def _grant(self, channel: HttpChannel) -> None:
        timer = self._engine.timers.timer(partial(self._on_timeout, channel))
        timer.set(self._engine.now.mono + channel.limits.large_input_timeout)
        self.holders[channel] = _Permit(timer, channel.buffered_bytes)

    def _on_timeout(self, channel: HttpChannel) -> None:
        self._engine.log(Level.WARNING, "a large message took too long", waiting=len(self.waiting))
        channel.abort()
        self.release(channel)
