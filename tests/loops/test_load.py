"""Tests of load on real sockets."""

import asyncio
import gc
import json
import os
import random
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path

import pytest

from runtimes.net.file_body import FileBody
from runtimes.net.tcp_channel import TcpChannel
from runtimes.tls.tls_channel import TlsChannel
from svc_proto.engine.exchange import Exchange
from svc_proto.engine.flow import Task
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.engine.websocket import WebSocketConnection
from tests.loops.clients import PATIENCE
from tests.loops.environment import REMOTE, Environment, bearer
from tests.loops.live_environment import LiveConnection
from tests.loops.raw_http import TEXT, frame
from tests.loops.test_hostile import SEED, UPGRADE

pytestmark = pytest.mark.full  # opens thousands of sockets

CLIENTS = 2000  # on each loop, BATCH of them at once
BATCH = 100
KINDS = (TcpChannel, TlsChannel, FileBody, ServerChannel, Exchange, WebSocketConnection, Task, asyncio.Task)
TASKS = {"trio._core._run.Task", "curio.task.Task"}  # of loops that are optional
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)  # the preface and empty SETTINGS
MIB = 1024 * 1024


# --- clients that vanish --------------------------------------------------------------------------------------------


def counter() -> Counter[str]:
    """Count this process's living connections and tasks by type, and its descriptors; the relay runs in it, too."""
    gc.collect()
    kinds = {kind for kind in set(map(type, gc.get_objects())) if is_part(kind)}
    parts = [one for one in gc.get_objects() if type(one) in kinds]
    living = (type(one) for one in parts if not getattr(one, "terminated", False))  # curio keeps its last task
    found = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in living)
    if os.path.isdir("/proc/self/fd"):
        found["descriptors"] = len(os.listdir("/proc/self/fd"))
    return found


def is_part(kind: type) -> bool:
    return issubclass(kind, KINDS) or f"{kind.__module__}.{kind.__qualname__}" in TASKS


def authorized(line: str, token: str, fields: str) -> bytes:
    return f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{fields}\r\n\r\n".encode()


def beginnings(token: str) -> list[bytes]:
    """Return the beginnings of connections after which the test's clients vanish."""
    form = "Content-Type: multipart/form-data; boundary=xyz\r\nContent-Length: 1000000"
    part = b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    hello = {"channel": "system", "type": "auth", "id": "a", "payload": {"session_token": token}}
    sign_in = UPGRADE + frame(TEXT, json.dumps(hello).encode())
    return [
        b"",
        b"GET /hea",
        HEALTH,
        HEALTH * 20,
        HEALTH + HEALTH[:30],
        b"POST /pairing/register HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
        authorized("POST /media/upload", token, form) + part + bytes(5000),
        authorized("POST /tap", token, "Content-Length: 17") + b'{"x":120,"y":640}',  # the phone receives a command
        UPGRADE,
        UPGRADE + frame(TEXT, b"{}")[:4],
        sign_in,
        sign_in + frame(TEXT, bytes(100), fin=False),
        HTTP2,
        HTTP2 + b"\x00\x00\x05\x01\x04\x00\x00\x00\x01\x82\x84\x86",  # half of a head
    ]


def vanish(sock: LiveConnection, rng: random.Random) -> None:
    match rng.randrange(4):
        case 0:
            sock.close_write()
            sock.close()
        case 1:
            sock.close()
        case _:
            sock.abort()


def test_2000_clients_that_vanish_leave_nothing_behind(host: Environment, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    host.start_relay()
    phone = host.phone()
    ping = bearer(phone.token)
    ways = beginnings(host.pair("Vanisher", grants={"bridge": 0}).token)
    normal = host.client()
    assert normal.request("GET", "/ping", headers=ping).status == 200
    host.eventually(lambda: host.http("GET", "/health").json["clients"] == 2)
    before = counter()

    for begun in range(0, CLIENTS, BATCH):
        crowd = []
        for number in range(begun, begun + BATCH):
            crowd.append(
                sock := LiveConnection(socket.create_connection(("127.0.0.1", host.relay.port), timeout=PATIENCE))
            )
            if piece := ways[number % len(ways)]:
                sock.send(piece)
        rng.shuffle(crowd)
        for sock in crowd[: BATCH // 2]:
            vanish(sock, rng)
        # the relay has processed the others meanwhile
        assert normal.request("GET", "/ping", headers=ping).status == 200
        for sock in crowd[BATCH // 2 :]:
            vanish(sock, rng)

    host.eventually(lambda: host.http("GET", "/health").json["clients"] == 2)
    deadline = host.clock() + PATIENCE
    while left := counter() - before:
        assert host.clock() < deadline, left
        # on the same connection, since a new one could be counted still
        assert normal.request("GET", "/ping", headers=ping).status == 200
    host.eventually(lambda: host.http("GET", "/relay/info").json["pending_commands"] == 0)
    host.eventually(lambda: not list((tmp_path / "spool").glob("*")))
    assert host.http("GET", "/ping", headers=ping).status == 200
    assert host.pair("Late").token
    assert phone.count("offline") == 0


# --- a stop under load ----------------------------------------------------------------------------------------------


def connected(port: int) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.connect()
    return connection


def call_until_close(client: HTTPConnection, answered: list[int]) -> None:
    """Repeat a request on an open connection until an answer has `Connection: close`; add the status of each answer.

    The relay may also close an idle connection, before the last request.
    """
    with closing(client):
        while True:
            try:
                client.request("GET", "/health")
                answer = client.getresponse()
            except (BrokenPipeError, RemoteDisconnected):  # a reset is a lost answer and fails the test
                return
            assert (answer.status, json.loads(answer.read())["status"]) == (200, "ok")
            answered.append(answer.status)
            if answer.getheader("Connection") == "close":
                return


def fetching(host: Environment, path: Path, token: str) -> LiveConnection:
    """Return a connection that has requested a large file and read little more than the head of the response."""
    answer = host.http("POST", "/media/register", {"path": str(path), "content_type": "application/octet-stream"})
    assert answer.status == 200, answer
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # so that most of the response is still at the relay
    sock.connect(("127.0.0.1", host.relay.port))
    wire = LiveConnection(sock)
    wire.send(authorized(f"GET /media/{answer.json['token']}", token, "Accept: */*"))
    assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    return wire


def test_a_stop_under_load_loses_no_answer(host: Environment, tmp_path: Path) -> None:
    relay = host.start_relay(killable=True)
    phone = host.pair(peer=REMOTE)
    large = tmp_path / "workspace" / "large.bin"
    large.parent.mkdir()
    large.write_bytes(os.urandom(8 * MIB))
    slow = [fetching(host, large, phone.token) for _ in range(3)]
    answered: list[int] = []
    with ThreadPoolExecutor(30) as threads:
        clients = [connected(relay.port) for _ in range(30)]  # a stop refuses new connections
        callers = [threads.submit(call_until_close, client, answered) for client in clients]
        host.eventually(lambda: len(answered) >= 150)
        relay.begin_stop()
        for caller in callers:
            caller.result(PATIENCE)
    body = large.read_bytes()
    for wire in slow:
        assert wire.read_exactly(len(body)) == body
        assert wire.read_all() == b""
        assert not wire.reset
        wire.close()
    assert phone.wait_closed().code == 1001
    phone.wire.close()
    assert relay.exit_code() == 0
