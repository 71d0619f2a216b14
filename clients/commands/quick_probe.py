"""Small HTTP client for servers of this host (`svc status`, `top`, `drain`), which starts faster than an engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtimes.service_home.home import EnvFileError, with_env_file
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    import socket

    from svc_proto.cli.cluster_nodes import ServiceNodes

__all__ = ["accepts", "probe", "probe_json", "metrics_headers", "nodes_at"]

STEP_TIMEOUT = 1.0  # s for each step
MOST = 4 * 1024 * 1024  # bytes of an answer
# Equal to `svc_proto.service_clients.local_secret`, whose import would load half of the engine.
SECRET_FILE = "local-secret"
SECRET_FIELD = "x-svc-local-secret"


def probe_json(url: str, path: str, home: Path) -> JsonObject | None:
    """Return the JSON object of a `GET` answered with 200; None for any other outcome."""
    status, body = probe(url, path, home)
    return JsonObject.parse(body) if status == 200 else None


def probe(url: str, path: str, home: Path, *fields: str) -> tuple[int, bytes]:
    """Send a `GET` with these header lines and the local secret, if any; return status and body.

    The status is 0 if there is no HTTP/1.1 answer in time.
    """
    import socket  # not needed for `--help`

    where = urlsplit(url)
    try:
        # as bytes, because a str would load the IDNA codec, which takes 2 ms
        host, address = (_encoded(name or "") for name in (where.netloc, where.hostname))
        lines = [f"GET {path} HTTP/1.1", f"Host: {host.decode()}", "Connection: close", *_secret(home), *fields, "", ""]
        to: Any = (address, where.port or 80)  # typeshed does not permit bytes here
        with socket.create_connection(to, STEP_TIMEOUT) as sock:
            sock.sendall("\r\n".join(lines).encode("ascii"))
            head, _, body = _all(sock).partition(b"\r\n\r\n")
        return (int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0), body
    except (OSError, ValueError):
        return 0, b""


def accepts(host: str, port: int) -> bool:
    """Report whether a connection to the address can be opened; nothing is sent."""
    import socket  # not needed for `--help`

    try:
        socket.create_connection((host, port), STEP_TIMEOUT).close()
    except OSError:
        return False
    return True


def metrics_headers() -> list[str]:
    """Return the Authorization field for /metrics if `SVC_METRICS_TOKEN` is set, else an empty list."""
    try:
        token = with_env_file(os.environ).get("SVC_METRICS_TOKEN", "").strip()
    except EnvFileError:  # unreadable for this user: use only the environment
        token = os.environ.get("SVC_METRICS_TOKEN", "").strip()
    return [f"Authorization: Bearer {token}"] if token else []


def nodes_at(url: str, home: Path) -> ServiceNodes | None:
    """Return the nodes that a server's metrics list; None for a single server, or without an answer with status 200."""
    status, body = probe(url, "/metrics", home, *metrics_headers())
    if status != 200 or b"svc_cluster_up" not in body:
        return None
    from svc_proto.cli.cluster_nodes import parse_nodes  # few services have several nodes
    from svc_proto.schema.openmetrics import MetricSamples

    return parse_nodes(MetricSamples(body.decode("utf-8", "replace")))


def _encoded(host: str) -> bytes:
    return host.encode("ascii" if host.isascii() else "idna")


def _all(sock: socket.socket) -> bytes:
    data = bytearray()
    while len(data) < MOST and (more := sock.recv(65_536)):
        data += more
    return bytes(data)


def _secret(home: Path) -> list[str]:
    try:
        text = (home / SECRET_FILE).read_text("ascii")
    except (OSError, ValueError):
        return []
    return [f"{SECRET_FIELD}: {text}"] if text.isalnum() else []
