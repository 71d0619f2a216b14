"""How the agent gets a session token of the relay on its own host: a code by loopback, then `system/auth` with it.

The session is an ordinary one (wire core 1, 2): the operator sees it as "Agent on this host" and can revoke it. It
asks for the grant that it needs, and to have the others withheld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.visible import is_visible
from svc_proto.engine.client import Fetched, fetch, websocket
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.local_secret import secret_fields
from svc_proto.engine.socket import Socket
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.grants import CHANNELS
from svc_proto.schema.members import Members
from svc_proto.wire.envelope import parse_envelope, write_envelope

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DEVICE_NAME", "pair"]

DEVICE_NAME = "Agent on this host"
WITHIN = 10.0  # s for each of the two steps
GRANTS = {**dict.fromkeys(CHANNELS, False), "bridge": 0}  # s; 0: as long as the session; false: withheld


def pair(engine: Engine, url: str, name: str = DEVICE_NAME) -> Flow[str | Failure]:
    """A fresh session token of the relay at an http or https URL, for a device of this name."""
    secret = yield from secret_fields(engine)
    made = yield from fetch(engine, "POST", f"{url}/pairing", headers=secret, within=WITHIN)
    if isinstance(made, Failure):
        return made
    code = Members.parsed(made.body).text("code") if made.status == 200 else ""
    if not code:
        return Failure(FailureKind.DENIED, f"the relay gave no pairing code: {made.status}")
    handshake = _Handshake(engine, code, name)
    socket = yield from fetch(
        engine, "GET", f"ws{url.removeprefix('http')}/ws", into=websocket(handshake), within=WITHIN
    )
    if isinstance(socket, Failure):
        return socket
    if isinstance(socket, Fetched):
        return Failure(FailureKind.DENIED, f"the relay refused the socket: {socket.status}")
    try:
        yield from wait(handshake.ticket, engine.now.mono + WITHIN)
        return handshake.outcome or Failure(FailureKind.TIMED_OUT, "the relay did not answer system/auth")
    finally:
        socket.close()


class _Handshake:
    """The socket's handler: says who it is, and waits for the word."""

    def __init__(self, engine: Engine, code: str, name: str) -> None:
        self._engine = engine
        self._code = code
        self._name = name
        self.ticket = engine.new_op()
        self.outcome: str | Failure | None = None

    def on_open(self, socket: Socket) -> None:
        """The socket is open: sign in with the code."""
        payload: dict[str, object] = {
            "pairing_code": self._code,
            "device_name": self._name,
            "device_id": new_uuid(self._engine.entropy),
            "client_surface": "agent",
            "device_form_factor": "host",
            "grants": GRANTS,
        }
        socket.send_text(write_envelope("system", "auth", new_uuid(self._engine.entropy), payload))

    def on_text(self, text: str) -> None:
        """The answer; nothing else matters here."""
        envelope = parse_envelope(text)
        if envelope is None or envelope.channel != "system":
            return
        if envelope.type == "auth.ok":
            token = envelope.payload.text("session_token")
            usable = bool(token) and is_visible(token)
            self._settle(token if usable else Failure(FailureKind.INVALID, "no session token"))
        elif envelope.type == "auth.fail":
            self._settle(Failure(FailureKind.DENIED, "the relay refused the pairing code"))

    def on_binary(self, data: bytes) -> None:
        """A relay sends no binary messages; one that comes is ignored."""

    def on_writable(self) -> None:
        """One message is all that is sent."""

    def on_closed(self, code: int, reason: str) -> None:
        """Before the word came, this is the word."""
        self._settle(Failure(FailureKind.UNREACHABLE, "the relay closed the socket"))

    def _settle(self, outcome: str | Failure) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self._engine.resume(self.ticket, None)
