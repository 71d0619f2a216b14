"""Tests of the examples with the codecs alone, and with the decoder of event streams alone."""

import socket
import threading
from collections.abc import Iterator

import pytest

from examples.codecs import ask, serve
from examples.event_stream import deltas
from svc_proto.wire import encode_comment, encode_event


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with theirs:
            serve(theirs)

    thread = threading.Thread(target=run)
    thread.start()
    with ours:
        ours.settimeout(10.0)
        yield ours
        ours.close()
        thread.join(10.0)
        assert not thread.is_alive()


def test_hello(peer: socket.socket) -> None:
    peer.sendall(b"GET /there HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert peer.recv(4096).endswith(b"\r\n\r\nhello, GET /there\n")
    peer.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
    assert peer.recv(4096).endswith(b"\r\n\r\nhello, POST /\n")


def test_an_echo(peer: socket.socket) -> None:
    assert ask(peer, "/echo", "one", "two" * 1000) == ["one", "two" * 1000]


def test_an_invalid_request(peer: socket.socket, capsys: pytest.CaptureFixture[str]) -> None:
    peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(4096) == b""
    assert "the peer broke the protocol" in capsys.readouterr().err


def test_the_text_of_a_stream_cut_anywhere() -> None:
    stream = b"".join(
        (
            encode_event("{}", event="run.started"),
            encode_event('{"delta": "He"}', event="assistant.delta"),
            encode_comment("still here"),
            encode_event('{"delta": "llo"}', event="assistant.delta"),
        )
    )
    assert list(deltas([stream])) == list(deltas(bytes([each]) for each in stream)) == ["He", "llo"]
