from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.basics.moment import Moment
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.envelope import Envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_connection import (
    CLOSE_TIMEOUT,
    RELAY_CONNECTION_TABLE,
    AuthOk,
    RelayConnection,
    RelayConnectionState,
    connect_relay,
)
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault
from svc_proto.wire.events import WebSocketClosed
from tests.cli.harness import REFUSED, OneShotHarness, UpstreamRequest
from tests.support.playbook import IdleService, counting_entropy

RELAY = ServiceClient("the relay", "ws://h:8767/ws", "t0ken")
SAID = {"session_token": "t0ken", "device_name": "Desk"}
OK = {
    "session_token": "t0ken-1",
    "server_version": "1.0.0",
    "expires_at": 5.5,
    "grants": {"chat": 5.5, "tui": None, "bad": "x"},
    "transport_hint": "ws",
}


def envelope(kind: str, payload: object, channel: str = "system") -> dict[str, Any]:
    return {"channel": channel, "type": kind, "id": "1", "payload": payload}


Outcome = tuple[RelayConnection, AuthOk] | ServiceCallError


def link_world(*answers: Mapping[str, Any] | None, **more: Any) -> OneShotHarness[Outcome]:
    """Return a harness with a relay that sends all `answers` after each message; a single None disconnects."""

    def opening(engine: Engine) -> Flow[Outcome]:
        try:
            return (yield from connect_relay(engine, RELAY, SAID, within=15.0))
        except ServiceCallError as error:
            yield from sleep(engine, 0.5)  # s for the close of the socket
            return error

    said = None if answers == (None,) else list(answers)
    return OneShotHarness(opening, **{"socket": lambda message: said, **more})


def test_signing_in() -> None:
    there = link_world(envelope("hello", {}), envelope("ok", {}, "tui"), envelope("auth.ok", OK))
    outcome = there.run()
    assert not isinstance(outcome, ServiceCallError)
    assert outcome[1] == AuthOk(
        token="t0ken-1", server_version="1.0.0", expires_at=5.5, grants={"chat": 5.5, "tui": None}, transport_hint="ws"
    )
    assert "t0ken" not in repr(outcome[1])
    (said,) = there.said
    assert (said["channel"], said["type"], said["payload"]) == ("system", "auth", SAID)
    assert outcome[0].state is RelayConnectionState.ONLINE


def test_a_token_is_shown_at_the_handshake() -> None:
    """Send the token in the Authorization field of the handshake; a response 429 is the fault BLOCKED."""
    seen: list[bytes | None] = []

    def declined(asked: UpstreamRequest) -> tuple[int, bytes]:
        seen.append(asked.headers.get(b"authorization"))
        return 429, b""

    outcome = link_world(http=declined, socket=None).run()
    assert seen == [b"Bearer t0ken"]
    assert isinstance(outcome, ServiceCallError)
    assert outcome.fault is ServiceFault.BLOCKED


def test_a_bare_welcome() -> None:
    outcome = link_world(envelope("auth.ok", {"session_token": "t", "expires_at": True, "grants": []})).run()
    assert not isinstance(outcome, ServiceCallError)
    assert outcome[1] == AuthOk(token="t", server_version="", expires_at=None, grants={}, transport_hint="unknown")


@pytest.mark.parametrize(
    ("answer", "fault", "why", "seconds"),
    [
        (envelope("auth.fail", {"reason": "no\x1b good"}), ServiceFault.REJECTED, "no\x1b good", 0.0),
        (envelope("auth.fail", {}), ServiceFault.REJECTED, "denied", 0.0),
        *((envelope("auth.ok", {"session_token": token}), ServiceFault.UNAVAILABLE, "no session token", 0.0)
          for token in (None, "", "a b", 7)),
        (None, ServiceFault.CONNECTION_LOST, "reset", 0.0),
        (envelope("later", {}), ServiceFault.CONNECTION_LOST, "no answer in time", 15.0),
        (REFUSED, ServiceFault.UNREACHABLE, "connection refused", 0.0),
    ],
)  # fmt: skip
def test_failed_connection(answer: Any, fault: ServiceFault, why: str, seconds: float) -> None:
    there = link_world(dial=lambda host, port: REFUSED) if answer is REFUSED else link_world(answer)
    began = there.now.mono
    outcome = there.run()
    assert isinstance(outcome, ServiceCallError)
    assert (outcome.fault, outcome.why, there.now.mono - began) == (fault, why, seconds + 0.5)
    assert all(line.gone or isinstance(line.events[-1], WebSocketClosed) for line in there.upstreams)


class Wire:
    """Fake WebSocket that records sent texts, pauses and the close."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.closed = self.held = False
        self.writable = True

    def send_text(self, text: str) -> bool:
        self.texts.append(text)
        return True

    def set_read_paused(self, paused: bool) -> None:
        self.held = paused

    def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed = True


def fresh() -> tuple[RelayConnection, Wire, list[object]]:
    engine = Engine(IdleService(), entropy=counting_entropy())
    link, heard = RelayConnection(engine, {"session_token": "t"}), list[object]()
    link.on_envelope = heard.append
    link.on_lost = heard.append
    link.on_drained = lambda: heard.append("drained")
    return link, Wire(), heard


def test_connection_from_open_to_close() -> None:
    link, wire, heard = fresh()
    before = link.writable
    link.set_read_paused(True)
    link.send("system", "early", {})
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.on_text("no JSON")
    link.on_text('{"channel": "system", "type": "auth.ok", "payload": {"session_token": "t"}}')
    link.on_text('{"channel": "terminal", "type": "x", "id": "7", "payload": {}}')
    link.on_binary(b"x")
    link.set_read_paused(True)
    assert wire.held
    link.on_writable()
    assert (before, link.writable) == (False, True)
    link.on_closed(1006, "")
    assert heard == [Envelope("terminal", "x", "7", JsonObject()), "drained", "closed with 1006"]
    link.on_text('{"channel": "terminal", "type": "late", "payload": {}}')
    assert len(heard) == 3


def test_closing_is_silent() -> None:
    link, wire, heard = fresh()
    link.close()
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.close()
    link.on_closed(1000, "bye")
    link.on_drained()
    link.on_text('{"channel": "terminal", "type": "late", "payload": {}}')
    assert heard == []
    assert wire.closed
    link.on_closed(1000, "bye")
    link, wire, heard = fresh()
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.on_text('{"channel": "system", "type": "auth.ok", "payload": {"session_token": "t"}}')
    link.close()
    link.on_text('{"channel": "terminal", "type": "late", "payload": {}}')
    link.on_writable()
    link.on_closed(1000, "bye")
    assert heard == []


@pytest.mark.parametrize("answers", [True, False])
def test_finish_waits_for_the_close_of_the_relay(answers: bool) -> None:
    link, wire, _ = fresh()
    engine, now = link._engine, Moment(0.0, 0.0)
    done: list[object] = []
    link.on_open(wire)  # type: ignore[arg-type] # stands in
    link.on_text('{"channel": "system", "type": "auth.ok", "payload": {"session_token": "t"}}')
    engine.spawn(link.finish(), on_done=done.append)
    assert wire.closed
    if answers:
        link.on_closed(1000, "")
    assert done == [None] * answers
    engine.handle(None, now.at(CLOSE_TIMEOUT))
    assert done == [None]


def test_the_table_ends() -> None:
    assert all(state is not RelayConnectionState.OVER for state, _ in RELAY_CONNECTION_TABLE)
