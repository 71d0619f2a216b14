"""Tests of concurrent streams, and of clients that do not read."""

import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import frozen

from svc_proto.engine.core import Service
from tests.loops.conftest import open_world
from tests.loops.environment import ApiHandle, Environment
from tests.loops.live_environment import ChildRelay
from tests.loops.session_events import check_turn
from tests.support.servers.model_server import ScriptedModel, counted, counting

KEY = "sk-streams-e1c7"
NOWHERE = "http://127.0.0.1:9"
DELTA = re.compile(rb'event: assistant\.delta\ndata: [^\n]*"delta":"([^"]*)"}\n\n')
MIB = 1024 * 1024
PATIENCE = 50.0  # s
LOOKS = 60  # without a change, after which the state counts as final


@frozen
class Load:
    """Size of a load test: the number of concurrent streams, and of deltas in each."""

    streams: int
    deltas: int


FULL = Load(200, 1_000)  # with --full; less shows the same
LESS = Load(100, 300)
SILENT = Load(20, 2_500)  # clients that do not read, and the size of their streams: some 2.7 MB each, text and events
SIZE = 400  # characters of each of their deltas
# Bytes for each of them, however long the stream: up to 256 KiB and one piece on its channel, a piece in its stream,
# one unread from the model, and the text so far. A piece is the data of one read, in both forms some 200 KB.
HELD = 1_500_000


def text_of(start: int, deltas: int, size: int = 0) -> str:
    return "".join(counted(number, size) for number in range(start, start + deltas))


def start(world: Environment, model: ScriptedModel, **config: Any) -> ApiHandle:
    config = {"max_concurrent_runs": 0, "relay_url": NOWHERE, **config}
    return world.api(key=KEY, model_base_url=f"{world.peer(model)}/v1", model="m", **config)


Ask = Callable[..., HTTPConnection]


@pytest.fixture
def ask() -> Iterator[Ask]:
    """Yield a function that starts a turn on a new connection; the connections are closed at the end.

    A `stingy` client has small buffers for what it does not read.
    """
    with ExitStack() as connections:

        def asked(api: ApiHandle, session: str, *, stingy: bool = False) -> HTTPConnection:
            connection = connections.enter_context(closing(HTTPConnection("127.0.0.1", api.server.port)))
            connection.sock = sock = socket.socket()
            if stingy:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                # The server's kernel sizes its send buffer by the segment size.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            sock.settimeout(PATIENCE)
            sock.connect(("127.0.0.1", api.server.port))
            connection.request("POST", f"/api/sessions/{session}/chat/stream", '{"message": "Count"}', api.headers)
            return connection

        yield asked


def read(connection: HTTPConnection) -> bytes:
    """Read the stream of a turn to its end."""
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


def check_stream(body: bytes, deltas: int) -> int:
    """Check that each of `deltas` deltas came once and in order; return the number of the first."""
    told = [piece.decode() for piece in DELTA.findall(body)]
    first = int(told[0])
    assert told == [counted(number) for number in range(first, first + deltas)]
    assert body.endswith(b'"state":"final"}\n\n')
    return first


# --- many -----------------------------------------------------------------------------------------------------------


def test_many_streams_at_once(host: Environment, full: bool, ask: Ask) -> None:
    load = FULL if full else LESS
    model = ScriptedModel(counting(10_000 * number, load.deltas) for number in range(load.streams))
    api = start(host, model)
    sessions = [api.session() for _ in range(load.streams)]
    clients = [ask(api, session) for session in sessions]
    with ThreadPoolExecutor(load.streams) as threads:
        bodies = list(threads.map(read, clients))
    firsts = [check_stream(body, load.deltas) for body in bodies]
    assert sorted(firsts) == [10_000 * number for number in range(load.streams)]
    check_turn(bodies[0])
    for session, first in zip(sessions[::20], firsts[::20], strict=True):
        rows = [row["content"] for row in api.messages(session)]
        assert rows == ["Count", text_of(first, load.deltas)]


# --- clients that read nothing --------------------------------------------------------------------------------------


def rss(server: object) -> int:
    """Return the resident memory of a server's process, in bytes."""
    assert isinstance(server, ChildRelay)
    return psutil.Process(server._process.pid).memory_info().rss


def wait_stalled(world: Environment, api: ApiHandle, model: ScriptedModel, sessions: list[str]) -> None:
    """Wait until every turn has started and the model writes no more; check that none has ended."""
    looks: list[int] = []

    def still() -> bool:
        looks.append(model.written)
        return len(looks) > LOOKS and len(set(looks[-LOOKS:])) == 1

    for session in sessions:
        world.eventually(lambda session=session: bool(api.messages(session)))  # type: ignore[misc]
    world.eventually(still)
    for session in sessions:
        assert [row["role"] for row in api.messages(session)] == ["user"], "it was read further than it was told"


@pytest.fixture
def silent_server(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Environment, ApiHandle, ScriptedModel]]:
    """Start an API server as a process of its own, so that its memory can be measured, with a model."""
    with open_world("asyncio", tmp_path, request) as world:
        model = ScriptedModel([counting(0, 10)])
        env = {
            "API_SERVER_KEY": KEY,
            "API_SERVER_MAX_CONCURRENT_RUNS": "0",
            "SVC_MODEL_BASE_URL": f"{world.peer(model)}/v1",
            "SVC_MODEL": "m",
            "SVC_RELAY_URL": NOWHERE,
        }
        yield world, ApiHandle(world, world.start_program("servers.api", env, _never, port=0), KEY), model


def _never(port: int, home: str) -> Service:
    raise NotImplementedError("it is a process of its own")


def test_memory_with_clients_that_read_nothing(
    silent_server: tuple[Environment, ApiHandle, ScriptedModel], ask: Ask
) -> None:
    world, api, model = silent_server
    api.turn(api.session(), "Warm up")
    sessions = [api.session() for _ in range(SILENT.streams)]
    model.answers[:] = [counting(0, SILENT.deltas, size=SIZE) for _ in sessions]
    before = rss(api.server)
    clients = [ask(api, session, stingy=True) for session in sessions]
    wait_stalled(world, api, model, sessions)
    grown = rss(api.server) - before
    assert grown < SILENT.streams * HELD, f"{grown / MIB:.1f} MiB for {SILENT.streams} clients"
    for client in clients:
        client.close()
    answer = text_of(0, SILENT.deltas, SIZE)
    for session in sessions:
        world.eventually(lambda session=session: len(api.messages(session)) == 2)  # type: ignore[misc]
        last = api.messages(session)[1]
        assert (last["finish_reason"], last["content"]) == ("stop", answer)
