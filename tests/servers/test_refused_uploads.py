"""Test of chunked uploads that the server refuses early, behind Caddy, nginx, and nginx with kept connections to it."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.servers.program_process import SYSTEM_PATH, TIMEOUT, call, running
from tests.servers.proxies import in_front
from tests.servers.test_proxies import CADDY_FOR_ONE, NGINX_FOR_ONE

KEY = "sk-refused-uploads-1"
ROUNDS = 20
UPLOAD = 400_000  # bytes, more than a server skips after an early answer
# Connections to the server are kept, and the body is passed on as it arrives.
UPSTREAM = "upstream api { server 127.0.0.1:8767; keepalive 4; }"
NGINX_KEEPS = """
location / {
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; client_max_body_size 0;
    proxy_pass http://api;
}
"""


def refused_upload(port: int, path: str) -> int | None:
    """Send an upload without credentials; return the status, or None if the connection breaks before."""

    def body() -> Iterator[bytes]:
        for _ in range(UPLOAD // 10_000):
            yield b"x" * 10_000

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", path, body(), {"transfer-encoding": "chunked"}, encode_chunked=True)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("kind", "block", "around"),
    [("caddy", CADDY_FOR_ONE[1], ""), ("nginx", NGINX_FOR_ONE[1], ""), ("nginx", NGINX_KEEPS, UPSTREAM)],
    ids=["caddy", "nginx", "nginx with kept connections"],
)
def test_a_refused_upload_breaks_no_request_of_another_client(
    kind: str, block: str, around: str, tmp_path: Path
) -> None:
    if which(kind, path=SYSTEM_PATH) is None:
        pytest.skip(f"{kind} is not installed")
    env = {"API_SERVER_KEY": KEY}
    with running(tmp_path, "servers.api", "--port", "0", env=env) as api:
        port = api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1]
        block, around = (each.replace("8767", port) for each in (block, around))
        block = block.replace("relay.example", "http://127.0.0.1:{port}")
        with in_front(tmp_path / "proxy", kind, block, around) as front:
            for path in ("/v1/chat/completions", "/nothing"):
                for _ in range(ROUNDS // 2):
                    assert refused_upload(front, path) in (401, 404, None)
                    assert call(front, "POST", "/api/sessions", {}, token=KEY).status == 201
