"""nginx, where installed, with a configuration for one process and one file."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestants import Contestant, Server, child, wait_healthy

__all__ = ["NAME", "find_nginx", "running_nginx"]

NAME = "nginx, one process"
SYSTEM = "/usr/sbin:/usr/local/sbin:/sbin"  # usual folders that are not on every user's PATH

CONFIGURATION = """\
daemon off;
master_process off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = /health {{ return 200; }}
        location = /file {{ alias {path}; }}
    }}
}}
"""


def find_nginx() -> str | None:
    """Return the path of nginx, or None."""
    return shutil.which("nginx") or shutil.which("nginx", path=SYSTEM)


@contextmanager
def running_nginx(nginx: str, path: Path) -> Iterator[Server]:
    """Serve a file at `/file` on a free port of 127.0.0.1. Raises `BenchError` if nginx does not start."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as home:
        port = _free_port()
        configuration = Path(home, "nginx.conf")
        configuration.write_text(CONFIGURATION.format(home=home, port=port, path=path), encoding="utf-8")
        argv = [nginx, "-p", home, "-c", str(configuration)]
        with child(argv, cwd=home, env=dict(os.environ), stderr=subprocess.DEVNULL) as process:
            server = Server(Contestant(NAME, ()), process.pid, ("127.0.0.1", port))
            wait_healthy(server.address, 5.0)
            yield server


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
