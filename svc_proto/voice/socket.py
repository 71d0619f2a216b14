"""One WebSocket of a voice session: its limits, and a candidate's patience (wire terminal-voice 4.7, 6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.engine.socket import Socket

if TYPE_CHECKING:
    from svc_proto.voice.session import VoiceSession

__all__ = ["MAX_MESSAGE", "PING_EVERY", "VoiceSocket"]

MAX_MESSAGE = 2 * 1024 * 1024  # bytes of one message, wire terminal-voice 4.7: 1009 and close
PING_EVERY = 20.0  # s, wire terminal-voice 4.7
CLAIM_WITHIN = 30.0  # s for a candidate to show the token: 4009 and close
TOO_LARGE = 1009


class VoiceSocket:
    """One WebSocket of a session; a `SocketHandler`."""

    __slots__ = ("_over", "_session", "_socket", "_timer", "bearer_hash")

    _socket: Socket  # from `on_open` on

    def __init__(self, session: VoiceSession, bearer_hash: str = "") -> None:
        self._session = session
        self.bearer_hash = bearer_hash  # of whoever opened it
        self._over = False
        self._timer = session.engine.timers.timer("voice candidate", self._idle)

    # --- SocketHandler ---

    def on_open(self, socket: Socket) -> None:
        """It may own the session, or has to show the token first."""
        self._socket = socket
        socket.ping_every(PING_EVERY)
        self._session.arrived(self)
        if self.number in self._session.candidates:
            self._timer.set(self._session.engine.now.mono + CLAIM_WITHIN)

    def on_text(self, text: str) -> None:
        """A message."""
        if len(text) > MAX_MESSAGE // 4 and len(text.encode()) > MAX_MESSAGE:
            self.end(TOO_LARGE, "message too large")
            self._session.left(self, TOO_LARGE)
        elif not self._over:
            self._session.heard(self, text)

    def on_binary(self, data: bytes) -> None:
        """Not understood."""
        if not self._over:
            self._session.heard_binary(self)

    def on_writable(self) -> None:
        """The client has read enough."""
        self._session.drained(self)

    def on_closed(self, code: int, reason: str) -> None:
        """It is gone."""
        self._over = True
        self._timer.retire()
        self._session.left(self, code)

    # --- for the session ---

    @property
    def number(self) -> int:
        """Names it for as long as the process lives."""
        return self._socket.number

    @property
    def writable(self) -> bool:
        """Whether it keeps up."""
        return self._socket.writable

    def send(self, text: str) -> None:
        """Send an event; nothing when it is closing."""
        self._socket.send_text(text)

    def end(self, code: int, reason: str) -> None:
        """Close it; what it says from here on is not heard."""
        self._over = True
        self._timer.cancel()
        self._socket.close(code, reason)

    def _idle(self) -> None:
        if self.number in self._session.candidates:
            self._session.refuse(self, self._session.life.denial())
