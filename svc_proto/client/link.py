"""A desktop's signed-in WebSocket to a relay (wire core 1): open, `system/auth`, then envelopes both ways.

| state      | trigger  | next       |                                                      |
|------------|----------|------------|------------------------------------------------------|
| NEW        | OPENED   | SIGNING_IN | the socket is open; `system/auth` is sent            |
| SIGNING_IN | WELCOMED | ONLINE     | `auth.ok`                                            |
| SIGNING_IN | REJECTED | OVER       | `auth.fail`: the same credential will not get better |
| SIGNING_IN | LOST     | OVER       | the socket closed without an answer                  |
| ONLINE     | LOST     | OVER       |                                                      |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import field, frozen

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.visible import is_visible
from svc_proto.client.calls import error_text, plain
from svc_proto.client.pins import distrust
from svc_proto.client.problem import Problem, because
from svc_proto.engine.client import Fetched, bearer, fetch, websocket
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.socket import Socket
from svc_proto.facts import Failure
from svc_proto.machines.table import Table, step
from svc_proto.schema.members import Members
from svc_proto.wire.envelope import Envelope, parse_envelope, write_envelope

__all__ = [
    "LIFE",
    "Blocked",
    "Identity",
    "Link",
    "LinkState",
    "LinkTrigger",
    "Refusal",
    "Unreachable",
    "Welcome",
    "open_link",
]

OPEN_WITHIN = 15.0  # s for the connection and the handshake
CLOSE_WITHIN = 1.0  # s for the relay to answer our close frame
SIGN_IN_WITHIN = 15.0  # s, wire core 1.6
RETRY = "pair again: svc-relay pair"


class LinkState(Enum):
    """Where a link is."""

    NEW = "new"
    SIGNING_IN = "signing in"
    ONLINE = "online"
    OVER = "over"


class LinkTrigger(Enum):
    """What moves it."""

    OPENED = "opened"
    WELCOMED = "welcomed"
    REJECTED = "rejected"
    LOST = "lost"


LIFE: Table[LinkState, LinkTrigger] = {
    (LinkState.NEW, LinkTrigger.OPENED): LinkState.SIGNING_IN,
    (LinkState.SIGNING_IN, LinkTrigger.WELCOMED): LinkState.ONLINE,
    (LinkState.SIGNING_IN, LinkTrigger.REJECTED): LinkState.OVER,
    (LinkState.SIGNING_IN, LinkTrigger.LOST): LinkState.OVER,
    (LinkState.ONLINE, LinkTrigger.LOST): LinkState.OVER,
}


class Refusal(Problem):
    """The relay does not take the credential: asking again with it is of no use."""


class Blocked(Refusal):
    """It takes none from this address for a while."""


class Unreachable(Problem):
    """There is no relay on this route now: it may come back."""


@frozen(kw_only=True)
class Identity:
    """Who we say we are."""

    name: str
    hostname: str
    device_id: str
    platform: str = "unknown"


@frozen(kw_only=True)
class Welcome:
    """What `auth.ok` said. Times in epoch seconds, None for never."""

    token: str = field(repr=False)
    server_version: str
    expires_at: float | None
    grants: Mapping[str, float | None]
    transport_hint: str


class Link:
    """One socket's life. After `open_link` it is online; `on_envelope` and `on_lost` get what comes."""

    def __init__(self, engine: Engine, credentials: Mapping[str, object], identity: Identity) -> None:
        self._engine = engine
        self._credentials = credentials
        self._identity = identity
        self._socket: Socket | None = None
        self.ticket = engine.new_op()  # of the answer to `system/auth`
        self._end = engine.new_op()
        self.state = LinkState.NEW
        self.on_envelope: Callable[[Envelope], None] = _ignore
        self.on_lost: Callable[[str], None] = _ignore
        self.on_drained: Callable[[], None] = _nothing

    # --- for whoever uses it ---

    @property
    def writable(self) -> bool:
        """False while much that was sent has not left."""
        return self._socket is not None and self._socket.writable

    def send(self, channel: str, kind: str, payload: Mapping[str, object]) -> str:
        """Send an envelope; its id."""
        identity = new_uuid(self._engine.entropy)
        if self._socket is not None:
            self._socket.send_text(write_envelope(channel, kind, identity, payload))
        return identity

    def hold(self, holding: bool) -> None:
        """Take no more from the relay for now, or go on."""
        if self._socket is not None:
            self._socket.hold(holding)

    def close(self) -> None:
        """Begin the end of it; nothing is told any more."""
        self.on_envelope = self.on_lost = _ignore
        self.on_drained = _nothing
        if self._socket is not None:
            self._socket.close()

    def finish(self) -> Flow[None]:
        """Close it in good order: what was sent before has arrived when this returns, unless the relay is slow."""
        self.close()
        if self.state is not LinkState.OVER:
            yield from wait(self._end, self._engine.now.mono + CLOSE_WITHIN)

    # --- SocketHandler ---

    def on_open(self, socket: Socket) -> None:
        """Sign in."""
        self._socket = socket
        self._step(LinkTrigger.OPENED)
        who = self._identity
        payload = {
            **self._credentials,
            "device_name": who.name,
            "device_hostname": who.hostname,
            "device_id": who.device_id,
            "device_platform": who.platform,
            "client_surface": "desktop",
            "device_form_factor": "desktop",
            "supports": {},
        }
        self.send("system", "auth", payload)

    def on_text(self, text: str) -> None:
        """An envelope, or something to ignore."""
        envelope = parse_envelope(text)
        if envelope is None:
            return
        if self.state is LinkState.ONLINE:
            self.on_envelope(envelope)
        elif self.state is LinkState.SIGNING_IN and envelope.channel == "system":
            if envelope.type == "auth.ok":
                self._step(LinkTrigger.WELCOMED)
                self._engine.resume(self.ticket, _welcome(envelope.payload))
            elif envelope.type == "auth.fail":
                self._step(LinkTrigger.REJECTED)
                reason = plain(envelope.payload.text("reason"))
                self._engine.resume(self.ticket, Refusal(reason or "no reason given"))

    def on_binary(self, data: bytes) -> None:
        """The relay sends none."""

    def on_writable(self) -> None:
        """What was sent has left."""
        self.on_drained()

    def on_closed(self, code: int, reason: str) -> None:
        """The socket is gone."""
        was = self.state
        why = plain(reason) or f"closed with {code}"
        if was is not LinkState.OVER:
            self._step(LinkTrigger.LOST)
        if was is LinkState.SIGNING_IN:
            self._engine.resume(self.ticket, Unreachable(why))
        elif was is LinkState.ONLINE:
            self.on_lost(why)
            self._engine.resume(self._end, None)

    def _step(self, trigger: LinkTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)


def open_link(
    engine: Engine, remote: str, credentials: Mapping[str, object], identity: Identity
) -> Flow[tuple[Link, Welcome]]:
    """Connect and sign in. Raises `Refusal` or `Unreachable`, each with a line for people."""
    link = Link(engine, credentials, identity)
    # Shown at the handshake already: a good token opens the socket even where wrong codes have blocked this address.
    headers = bearer(str(credentials.get("session_token", "")))
    opened = yield from fetch(engine, "GET", remote, into=websocket(link), headers=headers, within=OPEN_WITHIN)
    if isinstance(opened, Failure):
        raise _not_opened(remote, opened)
    if isinstance(opened, Fetched):
        raise _declined(remote, opened)
    answer = yield from wait(link.ticket, engine.now.mono + SIGN_IN_WITHIN)
    match answer:
        case Welcome():
            return link, answer
        case Refusal():
            raise Refusal(f"the relay refuses: {answer}; {_remedy(credentials)}")
        case Unreachable():
            raise Unreachable(f"{remote} closed the connection before it let us in: {answer}")
        case None:
            link.close()
            raise Problem(f"{remote} sent no usable session: is it really a relay?")
        case _:
            link.close()
            raise Unreachable(f"{remote} does not answer: no reply to sign-in in {SIGN_IN_WITHIN:.0f} s")


def _remedy(credentials: Mapping[str, object]) -> str:
    if "pairing_code" in credentials:
        return "make a new code with svc pair on its host"
    return RETRY


def _not_opened(remote: str, failure: Failure) -> Problem:
    distrusted = distrust(remote, failure)
    if distrusted is not None:
        return Problem(distrusted)
    tls = " With TLS it is wss://." if remote.startswith("ws://") else ""
    why = because(failure)
    return Unreachable(f"the relay at {remote} cannot be reached: {why}; is it running, and this its address?{tls}")


def _declined(remote: str, answer: Fetched) -> Problem:
    if answer.status == 429:
        after = answer.headers.get(b"retry-after") or b""
        pause = f"{after.decode('ascii')} s" if after.isdigit() and len(after) < 7 else "5 minutes"
        lifted = "or until svc pair makes a new one on its host"
        return Blocked(f"too many wrong codes from this address: the relay takes no further one for {pause}, {lifted}")
    if answer.status >= 500:
        return Unreachable(f"{remote} does not open a WebSocket: {error_text(answer)}")
    return Problem(f"{remote} does not open a WebSocket: {error_text(answer)}; is it really a relay?")


def _welcome(payload: Members) -> Welcome | None:
    token, grants = payload.text("session_token"), payload.inner("grants")
    if not token or not is_visible(token):
        return None
    times = {channel: grants.number(channel) for channel in grants}
    return Welcome(
        token=token,
        server_version=plain(payload.text("server_version")) or "unknown",
        expires_at=payload.number("expires_at"),
        grants={channel: time for channel, time in times.items() if time is not None or grants[channel] is None},
        transport_hint=payload.text("transport_hint") or "unknown",
    )


def _ignore(what: object) -> None:
    """Nobody listens."""


def _nothing() -> None:
    """Nobody waits."""
