"""One quick look at a server of this host (`svc status`, `svc top`): by hand, since an engine takes longer to load.

It speaks to our own servers only, over their plain door on loopback, and believes no more than that they answer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtimes.service_home.home import with_env_file
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    import socket

    from svc_proto.cli.cluster_nodes import ServiceNodes

__all__ = ["probe", "probe_json", "metrics_headers", "nodes_at"]

STEP_TIMEOUT = 1.0  # s for each step
MOST = 4 * 1024 * 1024  # bytes of an answer
# As `svc_proto.service_clients.local_secret` has them, which brings half of the engine along.
SECRET_FILE = "local-secret"
SECRET_FIELD = "x-svc-local-secret"


def probe_json(url: str, path: str, home: Path) -> JsonObject | None:
    """The object that `GET` answers with 200; None for anything else."""
    status, body = probe(url, path, home)
    return JsonObject.parse(body) if status == 200 else None


def probe(url: str, path: str, home: Path, *fields: str) -> tuple[int, bytes]:
    """Status and body of a `GET` with these fields; status 0 where nobody answers. Shows the local secret of the home,
    if there is one."""
    import socket  # not for `--help`

    where = urlsplit(url)
    lines = [f"GET {path} HTTP/1.1", f"Host: {where.netloc}", "Connection: close", *_secret(home), *fields, "", ""]
    address = (where.hostname or "").encode("ascii")  # a text would be taken for a name of any alphabet: 2 ms to load
    try:
        to: Any = (address, where.port or 80)  # typeshed knows no bytes here
        with socket.create_connection(to, STEP_TIMEOUT) as sock:
            sock.sendall("\r\n".join(lines).encode("ascii"))
            head, _, body = _all(sock).partition(b"\r\n\r\n")
        return (int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0), body
    except (OSError, ValueError):
        return 0, b""


def metrics_headers() -> list[str]:
    """What is shown to who guards what was counted."""
    try:
        token = with_env_file(os.environ).get("SVC_METRICS_TOKEN", "").strip()
    except (OSError, UnicodeDecodeError):  # somebody else's: then there is the environment
        token = os.environ.get("SVC_METRICS_TOKEN", "").strip()
    return [f"Authorization: Bearer {token}"] if token else []


def nodes_at(url: str, home: Path) -> ServiceNodes | None:
    """The nodes that a server shows; None for one that is alone, or does not say."""
    status, body = probe(url, "/metrics", home, *metrics_headers())
    if status != 200 or b"svc_cluster_up" not in body:
        return None
    from svc_proto.cli.cluster_nodes import parse_nodes  # few have any
    from svc_proto.schema.openmetrics import MetricSamples

    return parse_nodes(MetricSamples(body.decode("utf-8", "replace")))


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
