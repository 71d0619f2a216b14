"""Tests of the HTTP/2 client: against our servers, and against one without product code."""

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from runtimes.tls.contexts import client_context
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.http_client import HttpResult, fetch, websocket_upgrade
from svc_proto.engine.response_readers import EventReader, event_stream
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Failure, OperationId
from svc_proto.phone.service import PhoneConfig
from tests.loops.environment import Environment
from tests.loops.live_environment import LiveEnvironment
from tests.support.playbook import FlowService

PEER = Path(__file__).parents[1] / "support" / "servers" / "http2_server.cjs"
BIG = bytes(range(256)) * 12_000  # 3 MB: several times the flow control windows


class Talk:
    """WebSocket handler that stores text messages and the close code; `next` waits for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticket = OperationId(0)
        self._heard: list[str] = []
        self.closed: int | None = None

    def on_open(self, socket: WebSocketConnection) -> None: ...

    def on_text(self, text: str) -> None:
        self._heard.append(text)
        self._engine.resume(self._ticket, None)

    def on_binary(self, data: bytes) -> None: ...

    def on_writable(self) -> None: ...

    def on_closed(self, code: int, reason: str) -> None:
        self.closed = code
        self._engine.resume(self._ticket, None)

    def next(self) -> Flow[str]:
        while not self._heard and self.closed is None:
            self._ticket = self._engine.new_op()
            yield from wait(self._ticket, self._engine.now.mono + 10.0)
        return self._heard.pop(0) if self._heard else f"closed {self.closed}"


def outcome(world: Environment, flow: Callable[[Engine], Flow[object]]) -> Any:
    """Run the flow in a program of the environment, and return its result."""

    def told(engine: Engine) -> Flow[None]:
        result = yield from flow(engine)
        engine.emit(Notify("done", {"result": result}))

    config = PhoneConfig(remote="ws://unused", code="ABC123", device_name="caller")
    program = world.start_phone(config, lambda config: FlowService(told))
    world.wait_until(lambda: bool(program.count("done")))
    assert program.stop() == 0
    return program.news[-1].fields["result"]


@pytest.mark.parametrize("secure", [True, False], ids=["alpn", "prior-knowledge"])
def test_requests_and_a_websocket_to_our_own_relay(world: Environment, secure: bool) -> None:
    world.start_relay(tls=secure)
    base = world.phone_url(tls=secure)
    code = world.client(tls=True).request("POST", "/pairing").json["code"] if secure else world.register()

    def flow(engine: Engine) -> Flow[object]:
        url = base.replace("ws", "http", 1)
        health = yield from fetch(engine, "GET", f"{url}/health", prior_knowledge=not secure)
        large = yield from fetch(engine, "POST", f"{url}/pairing/register", body=BIG, prior_knowledge=not secure)
        assert isinstance(health, HttpResult)
        assert isinstance(large, HttpResult)
        talk = Talk(engine)
        socket = yield from fetch(engine, "GET", f"{base}/ws", into=websocket_upgrade(talk), prior_knowledge=not secure)
        assert isinstance(socket, WebSocketConnection)
        payload = {"pairing_code": code, "device_name": "H2", "device_id": "h2", "client_surface": "desktop"}
        socket.send_text(json.dumps({"channel": "system", "type": "auth", "id": "1", "payload": payload}))
        answer = json.loads((yield from talk.next()))
        declined = yield from fetch(
            engine, "GET", f"{base}/nothing", into=websocket_upgrade(talk), prior_knowledge=not secure
        )
        assert isinstance(declined, HttpResult)
        two = type(socket._carrier.conn).__name__ == "Http2Connection"
        socket.close(1000, "bye")
        end = yield from talk.next()
        return [health.status, large.status, answer["type"], declined.status, two, end]

    refused = 413 if isinstance(world, LiveEnvironment) else 403  # the simulation's phones are on other hosts
    assert outcome(world, flow) == [200, refused, "auth.ok", 404, True, "closed 1000"]


# --- a server that shares no code with us ---


@contextmanager
def node_server(certificate: tuple[Path, Path], mode: str) -> Iterator[tuple[int, list[str]]]:
    """Run the HTTP/2 server `http2_server.cjs`; yield its port, and a list that has its requests at the end."""
    command = ["node", str(PEER), *map(str, certificate), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen: list[str] = []
        try:
            yield int(process.stdout.readline().removeprefix("port ")), seen
        finally:
            process.kill()
            seen += process.stdout.read().splitlines()


@pytest.fixture
def loop_world(host: Environment, certificate: tuple[Path, Path]) -> Environment:
    if which("node") is None:
        pytest.skip("node is not installed")
    assert isinstance(host, LiveEnvironment)
    host.client_tls = client_context(certificate[0])
    return host


@pytest.mark.parametrize("mode", ["sockets", "none"])
def test_a_server_that_shares_no_code_with_us(
    loop_world: Environment, certificate: tuple[Path, Path], mode: str
) -> None:
    def flow(engine: Engine) -> Flow[object]:
        sent = yield from fetch(engine, "POST", f"https://{here}/sent", body=BIG)
        reset = yield from fetch(engine, "GET", f"https://{here}/reset")
        reader = yield from fetch(engine, "GET", f"https://{here}/events", into=event_stream())
        assert isinstance(sent, HttpResult)
        assert isinstance(reset, Failure)
        assert isinstance(reader, EventReader)
        told: list[str] = []
        while isinstance(batch := (yield from reader.read()), tuple):
            told += [event.data for event in batch]
        reader.abandon()
        heard: list[str] = []
        for _ in range(2):
            talk = Talk(engine)
            socket = yield from fetch(engine, "GET", f"wss://{here}/ws", into=websocket_upgrade(talk))
            assert isinstance(socket, WebSocketConnection)
            socket.send_text("over")
            heard.append((yield from talk.next()))
            socket.close()
            heard.append((yield from talk.next()))
        return [json.loads(sent.body), reset.kind.value, told, heard]

    digest = {"size": len(BIG), "hash": hashlib.sha256(BIG).hexdigest()}
    with node_server(certificate, mode) as (port, seen):
        here = f"localhost:{port}"
        assert outcome(loop_world, flow) == [digest, "unreachable", ["1", "2", "3"], ["over", "closed 1000"] * 2]
    over = "2.0 CONNECT:websocket /ws" if mode == "sockets" else "1.1 UPGRADE /ws"
    assert seen == ["2.0 POST /sent", "2.0 GET /reset", "2.0 GET /events", over, over]
