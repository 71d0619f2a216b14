"""Tests of the echo server as a program on a real socket."""

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_proto.wire.events import BinaryMessage, TextMessage
from tests.conformance.external_tools import echo_server
from tests.loops.clients import PATIENCE, HttpClient, WebSocketTestClient
from tests.loops.live_environment import LiveConnection
from tests.support.http2_client import Http2Client

AUTHORITY = "localhost"


@contextmanager
def connected(port: int, context: ssl.SSLContext) -> Iterator[LiveConnection]:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock,
        context.wrap_socket(sock, server_hostname=AUTHORITY) as secured,
    ):
        yield LiveConnection(secured)


def converse(ws: WebSocketTestClient, version: str) -> None:
    """Check compression, greeting, text, binary and close of a WebSocket."""
    assert ws.compressed
    assert ws.receive() == TextMessage(ws._stream, version)
    ws.send_text("h\u00e9" * 1000)
    assert ws.receive() == TextMessage(ws._stream, "h\u00e9" * 1000)
    data = bytes(range(256)) * 8000
    ws.send_binary(data)
    assert ws.receive() == BinaryMessage(ws._stream, data)
    assert ws.close().clean


def over_http1(port: int, context: ssl.SSLContext) -> None:
    with connected(port, context) as wire:
        client = HttpClient(wire, AUTHORITY, os.urandom)
        assert client.request("GET", "/").body == b"hello\n"
        assert client.request("POST", "/x", body=b"a" * 100_000).body == b"a" * 100_000
    with connected(port, context) as wire:
        converse(WebSocketTestClient(HttpClient(wire, AUTHORITY, os.urandom), path="/version"), "1.1")


def over_http2(port: int, context: ssl.SSLContext) -> None:
    with connected(port, context) as wire:
        client = HttpClient(wire, AUTHORITY, os.urandom, http2=True)
        ws = WebSocketTestClient(client, path="/version")
        uploading = client.begin("POST", "/x", body=b"a" * 100_000)  # a concurrent stream
        assert client.request("GET", "/").body == b"hello\n"
        assert uploading.finish().body == b"a" * 100_000
        converse(ws, "2")
        assert client.request("GET", "/cookie", headers={"cookie": "a=1"}).body == b"a=1\n"
        assert isinstance(client.conn, Http2Client)
        assert not client.conn.is_open(ws._stream)  # it ended with its closing handshake


def test_tls_on_every_loop(runtime: str, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with echo_server(runtime, certificate) as port:
        context.set_alpn_protocols(["http/1.1"])
        over_http1(port, context)
        context.set_alpn_protocols(["h2"])
        over_http2(port, context)
