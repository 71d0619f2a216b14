"""WebSocket of a voice session: limits, and the timeout of a candidate (wire terminal-voice 4.7, 6.3).

The socket is closed when the grant with which it was opened expires (spec "Grants").
"""

from collections.abc import Callable

from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.voice.session import POLICY, VoiceSession

__all__ = ["MAX_MESSAGE", "PING_INTERVAL", "VoiceConnection"]

MAX_MESSAGE = 2 * 1024 * 1024  # bytes of one message, wire terminal-voice 4.7: 1009 and close
PING_INTERVAL = 20.0  # s, wire terminal-voice 4.7
CLAIM_TIMEOUT = 30.0  # s for a candidate to send the resume token: 4009 and close
TOO_LARGE = 1009
RECHECK = 60.0  # s: grants end by the wall clock, so check at least this often in case the clock was stepped


class VoiceConnection:
    """WebSocket of a session; a `WebSocketHandler`."""

    __slots__ = ("_grant", "_over", "_session", "_socket", "_timer", "_until", "bearer_hash")

    _socket: WebSocketConnection  # from `on_open` on

    def __init__(
        self, session: VoiceSession, bearer_hash: str = "", until: Callable[[], float | None] | None = None
    ) -> None:
        self._session = session
        self.bearer_hash = bearer_hash  # of the client's token
        self._over = False
        self._until = until
        self._timer = session.engine.timers.timer(self._idle)
        self._grant = session.engine.timers.timer(self.recheck)

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Pass the socket to the session; as a candidate, it must claim the session within `CLAIM_TIMEOUT`."""
        self._socket = socket
        socket.set_ping_interval(PING_INTERVAL)
        self._session.on_socket_open(self)
        if self.number in self._session.candidates:
            self._timer.set(self._session.engine.now.mono + CLAIM_TIMEOUT)
        self.recheck()

    def on_text(self, text: str) -> None:
        """Pass a text message to the session; close the socket for one above `MAX_MESSAGE`, or without a live grant."""
        self.recheck()
        if self._over:
            return
        if len(text) > MAX_MESSAGE // 4 and len(text.encode()) > MAX_MESSAGE:
            self.detach(TOO_LARGE, "message too large")
        else:
            self._session.on_text(self, text)

    def on_binary(self, data: bytes) -> None:
        """Pass the receipt of a binary message to the session: the protocol has only text messages."""
        if not self._over:
            self._session.heard_binary(self)

    def on_writable(self) -> None:
        """Notify the voice session that the client has read enough."""
        self._session.on_writable(self)

    def on_closed(self, code: int, reason: str) -> None:
        """Stop the timers and report the end of the socket to the session."""
        self._over = True
        self._timer.retire()
        self._grant.retire()
        self._session.on_socket_closed(self, code)

    # --- for the session ---

    @property
    def number(self) -> int:
        """The number of the socket, unique in this process."""
        return self._socket.number

    @property
    def writable(self) -> bool:
        """Report whether the socket accepts more data."""
        return self._socket.writable

    def send(self, text: str) -> None:
        """Send an event; do nothing while the socket closes."""
        self._socket.send_text(text)

    def end(self, code: int, reason: str) -> None:
        """Close the socket and ignore its further messages."""
        self._over = True
        self._timer.cancel()
        self._grant.cancel()
        self._socket.close(code, reason)

    def detach(self, code: int, reason: str) -> None:
        """Close the socket and report its end to the session at once."""
        self.end(code, reason)
        self._session.on_socket_closed(self, code)

    def recheck(self) -> None:
        """Close the socket if its grant has expired; if the grant expires later, set the timer of the next check."""
        if self._until is None or self._over:
            return
        expiry, now = self._until(), self._session.engine.now
        if expiry is None:
            self._grant.cancel()
        elif now.wall < expiry:
            self._grant.set(now.mono + min(expiry - now.wall, RECHECK))
        else:
            self.detach(POLICY, "the grant has run out")

    def _idle(self) -> None:
        if self.number in self._session.candidates:
            self._session.refuse(self, self._session.life.denial())
