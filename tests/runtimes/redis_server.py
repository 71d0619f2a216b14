"""A Redis of the tests' own: a process on a port of its own, which keeps nothing, and goes with the test."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

import pytest

from svc_proto.settings import RedisAddress

__all__ = ["RedisServer", "needs_redis"]

_SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
needs_redis = pytest.mark.skipif(_SERVER is None, reason="no redis-server is installed")
PASSWORD = "redis-password-4711"
READY = "eady to accept connections"


class RedisServer:
    """A context: it answers from the beginning to the end. `kill` and `start` in between."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port: int = sock.getsockname()[1]
        self.address = RedisAddress("127.0.0.1", self.port, password=PASSWORD)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it takes connections."""
        assert _SERVER is not None
        told = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "requirepass": PASSWORD}
        options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen([_SERVER, *options], cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if READY in line:
                return
        raise AssertionError(f"Redis did not start: exit code {self._process.wait()}")

    def kill(self) -> None:
        """`kill -9`, and all that it held is gone."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
