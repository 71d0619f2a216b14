"""Pairing with a relay by loopback, and with one that does not play its part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.agent.tools.pairing import DEVICE_NAME, pair
from svc_proto.basics.errors import Refused
from svc_proto.commands import Ready
from svc_proto.engine.core import Engine
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Kind, Route, Router
from svc_proto.engine.server import ServerChannel
from svc_proto.engine.socket import Socket
from svc_proto.facts import Accepted, Failure, FailureKind
from svc_proto.machines.grants import CHANNELS
from svc_proto.wire.events import RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.agent.world import AgentWorld
from tests.peers.service import Access


class OddRelay:
    """Makes codes, and says on the socket what a test wants; None closes it."""

    engine: Engine

    def __init__(self, *says: str | None, made: Response | None = None, refuses: int = 0) -> None:
        self.says = says
        self.made = made or json_response(200, {"code": "ABC123"})
        self.refuses = refuses
        self.heard: list[Any] = []
        self.closed = False
        get, post = "GET", "POST"
        self.router = Router(
            [
                Route(method=post, pattern="/pairing", access=Access.ANYBODY, handler=lambda request: self.made),
                Route(method=get, pattern="/ws", access=Access.ANYBODY, handler=self._open, kind=Kind.WEBSOCKET),
            ]
        )

    def bind(self, engine: Engine) -> None:
        self.engine = engine

    def on_started(self) -> None:
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel:
        return ServerChannel(self.engine, fact, self, DEFAULT_LIMITS)

    def on_stopping(self) -> None:
        pass

    def authorize(self, access: object, request: Request) -> object:
        return None

    def refusal(self, refused: Refused, head: RequestHead) -> Response:
        return json_response(refused.status, {"error": refused.message})

    def fields(self, head: RequestHead) -> tuple[tuple[bytes, bytes], ...]:
        return ()

    def _open(self, request: Request) -> OddRelay:
        if self.refuses:
            raise Refused(self.refuses, "blocked", "too often")
        return self

    def on_open(self, socket: Socket) -> None:
        self.socket = socket

    def on_text(self, text: str) -> None:
        self.heard.append(json.loads(text))
        for word in self.says:
            if word is None:
                self.socket.close(1008, "no")
            else:
                self.socket.send_text(word)

    def on_binary(self, data: bytes) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_closed(self, code: int, reason: str) -> None:
        self.closed = True


def paired(relay: OddRelay) -> str | Failure:
    world = AgentWorld()
    world._start(world.agent_host, lambda entropy: Engine(relay, entropy=entropy), 8767)
    outcome = world.run(lambda parts, engine: pair(engine, "http://127.0.0.1:8767"))
    world.sim.run_for(1.0)
    return outcome


def envelope(kind: str, channel: str = "system", **payload: object) -> str:
    return json.dumps({"channel": channel, "type": kind, "id": "1", "payload": payload})


def test_it_says_who_it_is() -> None:
    relay = OddRelay(envelope("auth.ok", session_token="!tok~"))
    assert paired(relay) == "!tok~"
    (auth,) = relay.heard
    assert (auth["channel"], auth["type"]) == ("system", "auth")
    payload = auth["payload"]
    assert (payload["pairing_code"], payload["device_name"]) == ("ABC123", DEVICE_NAME)
    assert payload["client_surface"] == "agent"
    assert {channel: wish is False for channel, wish in payload["grants"].items()} == {
        channel: channel != "bridge" for channel in CHANNELS
    }
    assert relay.closed


def test_what_does_not_concern_it_is_passed_over() -> None:
    relay = OddRelay(
        "nonsense", envelope("auth.ok", "bridge"), envelope("ping"), envelope("auth.ok", session_token="!tok~"), None
    )
    assert paired(relay) == "!tok~"


@pytest.mark.parametrize(
    ("relay", "failure"),
    [
        (OddRelay(envelope("auth.fail", reason="no")), (FailureKind.DENIED, "the relay refused the pairing code")),
        (OddRelay(envelope("auth.ok")), (FailureKind.INVALID, "no session token")),
        (OddRelay(envelope("auth.ok", session_token="a b")), (FailureKind.INVALID, "no session token")),
        (OddRelay(envelope("auth.ok", session_token="")), (FailureKind.INVALID, "no session token")),
        (OddRelay(None), (FailureKind.UNREACHABLE, "the relay closed the socket")),
        (OddRelay(), (FailureKind.TIMED_OUT, "the relay did not answer system/auth")),
        (OddRelay(refuses=429), (FailureKind.DENIED, "the relay refused the socket: 429")),
        (OddRelay(made=json_response(403, {})), (FailureKind.DENIED, "the relay gave no pairing code: 403")),
        (OddRelay(made=json_response(200, {"code": 5})), (FailureKind.DENIED, "the relay gave no pairing code: 200")),
        (OddRelay(made=json_response(200, [])), (FailureKind.DENIED, "the relay gave no pairing code: 200")),
        (OddRelay(made=Response(200)), (FailureKind.DENIED, "the relay gave no pairing code: 200")),
    ],
)  # fmt: skip
def test_a_relay_that_does_not_let_it_in(relay: OddRelay, failure: tuple[FailureKind, str]) -> None:
    found = paired(relay)
    assert isinstance(found, Failure)
    assert (found.kind, found.detail) == failure


def test_a_relay_that_takes_no_second_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    relay = OddRelay()
    first = relay.on_accepted
    monkeypatch.setattr(relay, "on_accepted", lambda fact: first(fact) if fact.ch == 2 else None)
    found = paired(relay)
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNREACHABLE


def test_no_relay() -> None:
    found = AgentWorld().run(lambda parts, engine: pair(engine, "http://127.0.0.1:8767"))
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNREACHABLE
