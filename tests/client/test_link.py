from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.client.link import LIFE, Identity, Link, LinkState, Refusal, Unreachable, Welcome, open_link
from svc_proto.client.problem import Problem
from svc_proto.commands import Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.members import Members
from svc_proto.wire.envelope import Envelope
from tests.client.world import REFUSED, Asked, World, as_json
from tests.playbook import counting_entropy

ME = Identity(name="Desk", hostname="desk", device_id="d")
OK = {
    "session_token": "t0ken-1",
    "server_version": "1.0.0",
    "expires_at": 5.5,
    "grants": {"chat": 5.5, "tui": None, "bad": "x"},
    "transport_hint": "ws",
}


def envelope(kind: str, payload: object, channel: str = "system") -> dict[str, Any]:
    return {"channel": channel, "type": kind, "id": "1", "payload": payload}


def link_world(
    *answers: Mapping[str, Any], credentials: Mapping[str, object] | None = None, **more: Any
) -> World[tuple[Link, Welcome]]:
    wanted = credentials or {"pairing_code": "Q7M2ZK"}
    return World(
        lambda engine: open_link(engine, "ws://h:8767", wanted, ME), socket=lambda message: list(answers), **more
    )


def test_signing_in() -> None:
    there = link_world(envelope("hello", {}), envelope("ok", {}, "tui"), envelope("auth.ok", OK))
    link, welcome = there.run()
    assert welcome == Welcome(
        token="t0ken-1", server_version="1.0.0", expires_at=5.5, grants={"chat": 5.5, "tui": None}, transport_hint="ws"
    )
    assert "t0ken" not in repr(welcome)
    (said,) = there.said
    assert (said["channel"], said["type"]) == ("system", "auth")
    assert said["payload"] == {
        "pairing_code": "Q7M2ZK",
        "device_name": "Desk",
        "device_hostname": "desk",
        "device_id": "d",
        "device_platform": "unknown",
        "client_surface": "desktop",
        "device_form_factor": "desktop",
        "supports": {},
    }
    assert link.state is LinkState.ONLINE


@pytest.mark.parametrize(
    ("credentials", "shown"), [({"session_token": "t0ken"}, b"Bearer t0ken"), ({"pairing_code": "Q7M2ZK"}, None)]
)
def test_a_token_is_shown_at_the_handshake(credentials: dict[str, str], shown: bytes | None) -> None:
    """A relay lets it in then, even if others at this address have guessed codes."""
    seen: list[bytes | None] = []

    def declined(asked: Asked) -> tuple[int, bytes]:
        seen.append(asked.headers.get(b"authorization"))
        return 503, b""

    World(lambda engine: open_link(engine, "ws://h:8767", credentials, ME), http=declined).fails()
    assert seen == [shown]


def test_a_bare_welcome() -> None:
    _, welcome = link_world(envelope("auth.ok", {"session_token": "t", "expires_at": True, "grants": []})).run()
    assert welcome == Welcome(token="t", server_version="unknown", expires_at=None, grants={}, transport_hint="unknown")


@pytest.mark.parametrize("token", [None, "", "a b", 7])
def test_a_welcome_without_a_token(token: object) -> None:
    assert link_world(envelope("auth.ok", {"session_token": token})).fails().reason == (
        "ws://h:8767 sent no usable session: is it really a relay?"
    )


@pytest.mark.parametrize(
    ("credentials", "remedy"),
    [
        ({"pairing_code": "Q7M2ZK"}, "make a new code with svc pair on its host"),
        ({"session_token": "t"}, "pair again: svc-relay pair"),
    ],
)
def test_refused(credentials: Mapping[str, object], remedy: str) -> None:
    there = link_world(envelope("auth.fail", {"reason": "no\x1b[2J good"}), credentials=credentials)
    assert there.fails() == Exit(1, f"the relay refuses: no [2J good; {remedy}")
    there = link_world(envelope("auth.fail", {}), credentials=credentials)
    assert "no reason given" in there.fails().reason


def test_silence() -> None:
    there = link_world()
    began = there.now.mono
    assert there.fails().reason == "ws://h:8767 does not answer: no reply to sign-in in 15 s"
    assert there.now.mono == began + 15.0


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (REFUSED, "the relay at ws://h:8767 cannot be reached: connection refused"),
        (Failure(FailureKind.UNREACHABLE), "is it running, and this its address? With TLS it is wss://."),
        (Failure(FailureKind.TLS, "TLS: BAD"), "cannot be trusted: TLS: BAD"),
    ],
)
def test_not_reached(failure: Failure, says: str) -> None:
    assert says in link_world(connect=lambda host, port: failure).fails().reason


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (429, "the relay takes no further one for 5 minutes"),
        (503, "ws://h:8767 does not open a WebSocket: busy (status 503)"),
        (500, "ws://h:8767 does not open a WebSocket: busy (status 500)"),
        (499, "ws://h:8767 does not open a WebSocket: busy (status 499); is it really a relay?"),
        (404, "ws://h:8767 does not open a WebSocket: busy (status 404); is it really a relay?"),
    ],
)
def test_no_websocket(status: int, says: str) -> None:
    def http(asked: Asked) -> tuple[int, bytes]:
        return as_json({"error": "busy"}, status)

    there: World[tuple[Link, Welcome]] = World(
        lambda engine: open_link(engine, "ws://h:8767", {"pairing_code": "Q7M2ZK"}, ME), http=http
    )
    reason = there.fails().reason
    assert says in reason
    assert reason.endswith("is it really a relay?") is says.endswith("is it really a relay?")


@pytest.mark.parametrize(
    ("after", "pause"), [(b"287", "287 s"), (b"999999", "999999 s"), (b"1000000", "5 minutes"), (b"soon", "5 minutes")]
)
def test_how_long_a_block_lasts(after: bytes, pause: str) -> None:
    from svc_proto.client.link import _declined
    from svc_proto.engine.client import Fetched
    from svc_proto.wire.events import Headers

    problem = _declined("ws://h", Fetched(429, Headers([(b"retry-after", after)]), b""))
    assert isinstance(problem, Refusal)
    assert f"no further one for {pause}, or until svc pair makes a new one" in str(problem)


class Wire:
    """Stands where the socket is."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.closed = self.held = False
        self.writable = True

    def send_text(self, text: str) -> bool:
        self.texts.append(text)
        return True

    def hold(self, holding: bool) -> None:
        self.held = holding

    def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed = True


class Idle:
    def bind(self, engine: Engine) -> None: ...
    def on_started(self) -> None: ...
    def on_accepted(self, fact: object) -> None: ...
    def on_stopping(self) -> None: ...


def fresh() -> tuple[Link, Wire, list[object]]:
    engine = Engine(Idle(), entropy=counting_entropy())
    link, heard = Link(engine, {"session_token": "t"}, ME), list[object]()
    link.on_envelope = heard.append
    link.on_lost = heard.append
    link.on_drained = lambda: heard.append("drained")
    return link, Wire(), heard


def test_a_life() -> None:
    link, wire, heard = fresh()
    before = link.writable
    link.hold(True)
    link.send("system", "early", {})
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.on_text("no JSON")
    link.on_text('{"channel": "system", "type": "auth.ok", "payload": {"session_token": "t"}}')
    link.on_text('{"channel": "terminal", "type": "x", "id": "7", "payload": {}}')
    link.on_binary(b"x")
    link.hold(True)
    assert wire.held
    link.on_writable()
    assert (before, link.writable) == (False, True)
    link.on_closed(1006, "")
    assert heard == [Envelope("terminal", "x", "7", Members()), "drained", "closed with 1006"]
    link.on_text('{"channel": "terminal", "type": "late", "payload": {}}')
    assert len(heard) == 3


def test_closing_is_silent() -> None:
    link, wire, heard = fresh()
    link.close()
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.close()
    link.on_closed(1000, "bye")
    link.on_drained()
    assert heard == []
    assert wire.closed
    link.on_closed(1000, "bye")


def test_the_table_ends() -> None:
    assert all(state is not LinkState.OVER for state, _ in LIFE)


def lost(engine: Engine) -> Flow[str]:
    try:
        yield from open_link(engine, "ws://h:8767", {"pairing_code": "Q7M2ZK"}, ME)
    except Unreachable as error:
        yield from sleep(engine, 0.0)
        return str(error)
    raise Problem("it was not lost")


def test_a_relay_that_goes_away() -> None:
    there = World(lost, socket=lambda message: None)
    assert there.run() == "ws://h:8767 closed the connection before it let us in: reset"
