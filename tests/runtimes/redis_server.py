"""Redis servers of the tests: processes on ports of their own, without persistence, killed at the end of `with`."""

import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Self

import pytest

from svc_proto.settings import RedisAddress
from tests.runtimes.scripted_core import TIMEOUT
from tests.support.ports import free_port

_SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
needs_redis = pytest.mark.needs("redis-server", _SERVER is None)
PASSWORD = "redis-password-4711"
SENTINEL_PASSWORD = "sentinel-password-4711"
MASTER = "svc"
DOWN_AFTER = (500, 10_000, 10_000)  # ms without an answer, after which each Sentinel considers the master down
READY = "eady to accept connections"


class RedisServer:
    """A Redis server as a context manager; `kill` and `start` restart it."""

    def __init__(self, folder: Path, *, db: int = 0, tls: tuple[Path, Path] | None = None, **options: str) -> None:
        self._folder = folder
        self._options = options
        self._tls = tls  # the files of its certificate and key
        self.port = free_port()  # the same after a restart
        self.address = RedisAddress("127.0.0.1", self.port, password=PASSWORD, db=db)

    @property
    def url(self) -> str:
        return f"redis{'s' if self._tls else ''}://:{PASSWORD}@127.0.0.1:{self.port}/{self.address.db}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        assert _SERVER is not None
        told: dict[str, object] = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        told["requirepass"] = PASSWORD
        if self._tls is not None:
            cert, key = self._tls
            files = {"tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": cert}
            told |= {"port": 0, "tls-port": self.port, "tls-auth-clients": "no", **files}
        words = [word for name, value in (told | self._options).items() for word in (f"--{name}", str(value))]
        self._process = _begun([_SERVER, *words], self._folder, READY)

    def kill(self) -> None:
        """Kill the server with SIGKILL, which loses all its data."""
        _end(self._process)

    def cut(self) -> None:
        """Close the connections of all subscribers; the keys stay."""
        self.execute("CLIENT", "KILL", "TYPE", "pubsub")

    def subscribers(self) -> set[str]:
        """Return the ids of the connections that have subscribed."""
        lines = self.execute("CLIENT", "LIST", "TYPE", "pubsub").splitlines()
        return {line.split()[0] for line in lines if line.startswith("id=")}

    @property
    def role(self) -> str:
        """Return `master` or `slave`, as the server reports."""
        return self.execute("ROLE").splitlines()[2]

    def execute(self, *words: str) -> str:
        """Execute a command and return the answer in RESP2."""
        with self._connect() as sock:
            sock.sendall(f"AUTH {PASSWORD}\r\n{' '.join(words)}\r\nQUIT\r\n".encode())
            data = b"".join(iter(lambda: sock.recv(4096), b""))
        return data.decode().removeprefix("+OK\r\n").removesuffix("+OK\r\n")

    def _connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        if self._tls is None:
            return sock
        return ssl.create_default_context(cafile=self._tls[0]).wrap_socket(sock, server_hostname="127.0.0.1")


class RedisWithSentinels:
    """A Redis master, its replica, and three Sentinels that watch them, as a context manager.

    The quorum is 1, and the first Sentinel notices the loss of the master long before the others (`DOWN_AFTER`). So
    they do not split their votes, which would delay the failover.
    """

    def __init__(self, folder: Path) -> None:
        folders = [folder / name for name in ("a", "b", "one", "two", "three")]
        for each in folders:
            each.mkdir()
        auth = {"masterauth": PASSWORD, "repl-diskless-sync-delay": "0"}
        self.master = RedisServer(folders[0], db=0, tls=None, **auth)
        self.replica = RedisServer(folders[1], db=0, tls=None, **auth, replicaof=f"127.0.0.1 {self.master.port}")
        self._sentinels = [(place, RedisServer(place).port) for place in folders[2:]]
        self._processes: list[subprocess.Popen[str]] = []
        self.address = RedisAddress(
            password=PASSWORD,
            sentinels=tuple(("127.0.0.1", port) for _, port in self._sentinels),
            master=MASTER,
            sentinel_password=SENTINEL_PASSWORD,
        )

    def __enter__(self) -> Self:
        self.master.start()
        self.replica.start()
        while "state=online" not in self.master.execute("INFO", "replication"):
            pass
        for (place, port), down_after in zip(self._sentinels, DOWN_AFTER, strict=True):
            lines = [
                f"port {port}", "bind 127.0.0.1", f"requirepass {SENTINEL_PASSWORD}",
                f"sentinel monitor {MASTER} 127.0.0.1 {self.master.port} 1", f"sentinel auth-pass {MASTER} {PASSWORD}",
                f"sentinel sentinel-pass {SENTINEL_PASSWORD}",
                f"sentinel down-after-milliseconds {MASTER} {down_after}",
                f"sentinel failover-timeout {MASTER} 3000",
            ]  # fmt: skip
            (place / "sentinel.conf").write_text("\n".join(lines) + "\n")
            assert _SERVER is not None
            command = [_SERVER, "sentinel.conf", "--sentinel"]
            self._processes.append(_begun(command, place, f"+slave slave 127.0.0.1:{self.replica.port}"))
        for _ in DOWN_AFTER[1:]:
            _read_until(self._processes[0], "+sentinel sentinel")  # it can request the vote of another one
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            _end(process)
        self.replica.kill()
        self.master.kill()

    def in_step(self) -> bool:
        """Report whether the replica had all data of the master when the master's offset was read."""
        behind, ahead = (
            int(server.execute("INFO", "replication").partition("master_repl_offset:")[2].split()[0])
            for server in (self.replica, self.master)
        )
        return behind >= ahead


def _begun(command: list[str], folder: Path, ready: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    _read_until(process, ready)
    return process


def _read_until(process: subprocess.Popen[str], text: str) -> None:
    """Read the log of a server up to a line with this text. Raise AssertionError if the log ends before."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        if text in line:
            return
        lines.append(line)
    raise AssertionError(f"Redis ended before {text!r}: exit code {process.wait()}: {''.join(lines[-5:])}")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
