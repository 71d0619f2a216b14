"""Relays as nodes of one service, with a Redis, a store and a proxy, and phones that reconnect through the proxy."""

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from shutil import which
from typing import Any, Generic, Self, TypeVar

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from tests.loops.clients import Declined, WebSocketTestClient
from tests.runtimes.redis_server import RedisServer, needs_redis
from tests.runtimes.store.postgresql_server import needs_postgresql, server
from tests.servers.program_process import SYSTEM_PATH, TIMEOUT, ProgramProcess, call, running_relay, websocket
from tests.servers.proxies import in_front
from tests.support.ports import free_port

T = TypeVar("T")
FOREVER = 3600.0  # s; longer than any test
FIRST_NUMBER = 1_000  # of the requests of a load
needs_nodes = [
    needs_postgresql,
    needs_redis,
    pytest.mark.skipif(which("nginx", path=SYSTEM_PATH) is None, reason="nginx is not installed"),
]
UPSTREAM = """
proxy_http_version 1.1;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection "upgrade";
proxy_set_header Host $http_host;
proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
proxy_read_timeout 1h;
location / {{ proxy_pass http://nodes; }}
}}
upstream nodes {{ {servers} }}
server {{ listen 127.0.0.1:{spare};
"""


def until(is_so: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds. Raise AssertionError after `TIMEOUT` seconds."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + TIMEOUT, f"{what}: not within {TIMEOUT} s"


class BackgroundLoad(Generic[T]):
    """Threads that repeat numbered requests until `end`; `told` has the results."""

    def __init__(self, asks: Iterable[Callable[[int], T]], counts: Callable[[T], bool] = lambda told: True) -> None:
        self.told: list[T] = []
        self._counts, self._numbers = counts, count(FIRST_NUMBER)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(ask,), daemon=True) for ask in asks]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop the threads after their current requests."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def more(self, n: int) -> None:
        """Wait until `n` further results satisfy `counts`."""
        wanted = sum(map(self._counts, self.told)) + n
        until(lambda: sum(map(self._counts, self.told)) >= wanted, "what was asked")

    def _work(self, ask: Callable[[int], T]) -> None:
        while not self._over.is_set():
            self.told.append(ask(next(self._numbers)))


class NodePhone:
    """A phone on a thread that answers commands, and reconnects until it is closed or a sign-in is refused."""

    def __init__(self, name: str, port: int, code: str) -> None:
        self.name = name
        self.token = ""
        self.refused = ""  # the reason of a refused sign-in, after which it does not reconnect
        self.done: list[Any] = []  # the bodies of the received commands, in order
        self.online = threading.Event()
        self.delay = 0.0  # s until it answers a command
        self.gaps: list[float] = []  # s from each disconnection to the next sign-in
        self._left: float | None = None
        self._port = port
        self._over = False
        self._ws: WebSocketTestClient | None = None
        self._thread = threading.Thread(target=self._live, args=(code,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over = True
        if (ws := self._ws) is not None:
            with suppress(OSError):
                ws.wire.close_write()  # the other side may be waiting for data
        self._thread.join(TIMEOUT)

    def _live(self, code: str) -> None:
        while not self._over and not self.refused:
            shown = {"session_token": self.token} if self.token else {"pairing_code": code}
            with suppress(OSError, Declined, RemoteProtocolError, AssertionError), websocket(self._port) as ws:
                self._ws = ws
                if not self._over:  # else no thread would close this one
                    self._serve(ws, shown)
            if self.online.is_set():
                self._left = time.monotonic()
            self.online.clear()

    def _serve(self, ws: WebSocketTestClient, shown: dict[str, str]) -> None:
        told = {"device_name": self.name, "device_id": f"device-{self.name}", "client_surface": "android", **shown}
        answer = ws.sign_in(**told)
        if answer["type"] != "auth.ok":
            self.refused = answer["payload"]["reason"]
            return
        self.token = ws.token
        ws.send_envelope("bridge", "bridge.status", {"device": {"name": self.name}})
        self.online.set()
        if self._left is not None:
            self.gaps.append(time.monotonic() - self._left)
        while True:
            command = ws.command(FOREVER)
            self.done.append(command["body"])
            if self.delay:
                time.sleep(self.delay)
            ws.respond(command["request_id"], {})


class RelayCluster:
    """Relays, each in a home of its own, with one store and one Redis, behind nginx at `port`."""

    def __init__(
        self, folder: Path, nodes: int = 3, env: Mapping[str, str] | None = None, redis: RedisServer | None = None
    ) -> None:
        self.folder = folder
        self.env = env or {}
        self.redis = redis or RedisServer(folder)
        self.store = server()
        self.ports = [free_port() for _ in range(nodes)]
        self.port = 0
        self.nodes: list[ProgramProcess | None] = [None] * nodes
        self.phones: list[NodePhone] = []
        self._stack = ExitStack()
        self._lives = [ExitStack() for _ in range(nodes)]
        self._database = ""

    def __enter__(self) -> Self:
        self._database = self.store.fresh()
        self.redis.start()
        self._stack.callback(self.redis.kill)
        for n in range(len(self.nodes)):
            self.start_node(n)
        servers = " ".join(f"server 127.0.0.1:{each} max_fails=1 fail_timeout=1s;" for each in self.ports)
        block = UPSTREAM.format(servers=servers, spare=free_port())
        self.port = self._stack.enter_context(in_front(self.folder / "nginx", "nginx", block))
        return self

    def __exit__(self, *exc: object) -> None:
        for phone in self.phones:
            phone.close()
        for life in self._lives:
            life.close()
        self._stack.close()

    def start_node(self, n: int) -> None:
        env = {
            "SVC_CLUSTER_URL": self.redis.url, "SVC_DATABASE_URL": self._database, "RELAY_TRUST_PROXY_HEADERS": "1",
            "RELAY_LOCAL_TRUST": "address", "SVC_NODE_URL": f"http://127.0.0.1:{self.ports[n]}", **self.env,
        }  # fmt: skip
        entered = running_relay(self.folder / f"node-{n}", env=env, port=self.ports[n])
        self.nodes[n], _ = self._lives[n].enter_context(entered)

    def kill(self, n: int) -> None:
        node, self.nodes[n] = self.nodes[n], None
        assert node is not None
        node.process.kill()
        self._lives[n].close()

    def stop(self, n: int) -> None:
        node, self.nodes[n] = self.nodes[n], None
        assert node is not None
        assert node.stop() == 0
        self._lives[n].close()

    def drain(self, n: int) -> str:
        """Stop a node with `svc drain`; return the output of the command. Assert that the node exits with 0."""
        node, self.nodes[n] = self.nodes[n], None
        assert node is not None
        env = {**os.environ, "SVC_HOME": str(self.folder / f"node-{n}" / "svc")}
        command = [sys.executable, "-m", "clients.commands.svc", "drain"]
        done = subprocess.run(command, env=env, capture_output=True, timeout=TIMEOUT, text=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert node.wait() == 0
        self._lives[n].close()
        return done.stdout

    def stored(self, token: str) -> bool:
        """Report whether the store has the session of a token."""
        digest = sha256(token.encode()).hexdigest()
        return bool(self.execute(f"SELECT 1 FROM paired_sessions WHERE token_hash = '{digest}'"))

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Execute statements in the nodes' database; return the rows of the last one."""
        return self.store.execute(statement, self._database.partition("@/")[2].partition("?")[0])

    def pair(self, name: str, n: int) -> NodePhone:
        """Return a phone that has paired through the proxy with a code of node `n`."""
        code = "".join(secrets.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(6))
        registered = call(self.ports[n], "POST", "/pairing/register", {"code": code})  # clears blocked addresses
        assert registered.status == 200
        phone = NodePhone(name, self.port, code)
        self.phones.append(phone)
        assert phone.online.wait(TIMEOUT), phone.refused
        return phone

    def tap(self, port: int, phone: NodePhone, x: int, token: str) -> tuple[int, str]:
        """Send a command for a phone to a port; return status and error code, or 0 and "" without an answer in JSON."""
        try:
            answer = call(port, "POST", f"/tap?device=device-{phone.name}", {"x": x, "y": 1}, token=token)
            return answer.status, str(answer.body.get("code", ""))
        except (OSError, ValueError):  # the node is gone, or the proxy's error page is HTML
            return 0, ""

    def wait_reached(self, n: int, phone: NodePhone, token: str = "") -> None:
        """Wait until node `n` answers a command for the phone with 200; `token` is the phone's own by default."""
        port, shown = self.ports[n], token or phone.token
        until(lambda: self.tap(port, phone, 1, shown)[0] == 200, f"{phone.name} is driven from node {n}")
