"""Tests of `SendFile`, by which the runtime sends a file itself, over plain TCP and over TLS."""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svc_proto.commands import Abort, Cancel, CloseWrite, OpenFile, ReleaseFile, Send, SendFile
from svc_proto.facts import ChannelId, Closed, Done, Failed, FailureKind, Sent
from tests.runtimes.scripted_core import TIMEOUT, Files, RunningCore, close, connected, new_op, read_all, read_exactly
from tests.runtimes.test_operations import refusal

pytestmark = pytest.mark.usefixtures("nothing_is_left")  # no descriptor of a file or of a duplicated socket

SIZE = 10 * 1024 * 1024
AHEAD = 2 * 1024 * 1024  # bytes: the kernel would buffer more by itself


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "big.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "digits"
    path.write_bytes(b"0123456789")
    return path


@contextmanager
def opened(
    runtime: str, path: Path, files: Files | None = None
) -> Iterator[tuple[RunningCore, int, socket.socket, ChannelId]]:
    """Run a core with one peer and with an open file; yield both, the file's handle, and the peer's channel id."""
    with connected(runtime, certificate=files) as (live, sock, ch):
        yield live, live.done(OpenFile(new_op(), str(path))).handle, sock, ch


def test_ten_megabytes_between_two_sends(runtime: str, big: Path, files: Files | None) -> None:
    with opened(runtime, big, files) as (live, handle, sock, ch):
        sending, second = new_op(), new_op()
        live.order(
            Send(ch, b"head"),
            SendFile(sending, ch, handle, 1, SIZE - 1),
            SendFile(second, ch, handle, 0, 0),
            ReleaseFile(handle),
            Send(ch, b"tail"),
            CloseWrite(ch),
        )
        assert read_all(sock) == b"head" + big.read_bytes()[1:] + b"tail"
        assert live.answer(sending) == Done(sending, SIZE - 1)
        assert live.answer(second) == Done(second, 0)
        close(sock)
        live.closed(ch)
        assert sum(fact.n for fact in live.seen if isinstance(fact, Sent) and fact.ch == ch) == 7 + SIZE


def test_refusals(runtime: str, digits: Path, files: Files | None) -> None:
    with opened(runtime, digits, files) as (live, handle, sock, ch):
        assert refusal(live, SendFile(new_op(), ch, handle, 5, 100)) is FailureKind.INVALID
        assert read_exactly(sock, 5) == b"56789"
        assert refusal(live, SendFile(new_op(), ch, 999, 0, 1)) is FailureKind.INVALID
        assert refusal(live, SendFile(new_op(), ChannelId(999), handle, 0, 1)) is FailureKind.CANCELLED
        live.order(CloseWrite(ch))
        assert refusal(live, SendFile(new_op(), ch, handle, 0, 1)) is FailureKind.CANCELLED


def test_abort_on_the_way(runtime: str, big: Path, files: Files | None) -> None:
    with opened(runtime, big, files) as (live, handle, sock, ch):
        sending = new_op()
        live.order(SendFile(sending, ch, handle, 0, SIZE))
        read_exactly(sock, 1000)
        live.order(Abort(ch))
        assert refusal(live, sending) is FailureKind.CANCELLED
        live.closed(ch)
        with pytest.raises((ConnectionResetError, ssl.SSLError, AssertionError)):
            read_exactly(sock, SIZE)


@pytest.mark.parametrize("file", [False, True])
def test_progress_is_reported_before_the_end(runtime: str, big: Path, files: Files | None, file: bool) -> None:
    """Sent bytes are reported before all are sent, so that the core can measure a slow reader's progress."""
    with opened(runtime, big, files) as (live, handle, _, ch):
        live.order(SendFile(new_op(), ch, handle, 0, SIZE) if file else Send(ch, bytes(SIZE)))
        assert 0 < live.expect(Sent).n < (AHEAD if hasattr(socket, "TCP_NOTSENT_LOWAT") else SIZE)
        live.order(Abort(ch))
        live.closed(ch)


def test_cancel_on_the_way(runtime: str, big: Path, files: Files | None) -> None:
    with opened(runtime, big, files) as (live, handle, sock, ch):
        first, second = new_op(), new_op()
        live.order(SendFile(first, ch, handle, 0, SIZE), SendFile(second, ch, handle, 0, SIZE), CloseWrite(ch))
        read_exactly(sock, 1000)
        live.order(Cancel(second), Cancel(first))
        for number in (second, first):
            assert refusal(live, number) is FailureKind.CANCELLED
        assert len(read_all(sock)) < SIZE
        sock.close()
        live.closed(ch)


def test_the_peer_disconnects_while_a_worker_sends(
    runtime: str, big: Path, files: Files | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(*args: int) -> bytes:
        begun.set()
        go.wait(TIMEOUT)
        raise BlockingIOError

    with opened(runtime, big, files) as (live, handle, _, ch):
        monkeypatch.setattr(os, "sendfile", slow)
        monkeypatch.setattr(os, "pread", slow)
        sending = new_op()
        live.order(SendFile(sending, ch, handle, 0, SIZE), ReleaseFile(handle))
        assert begun.wait(TIMEOUT)
        live.order(Abort(ch))
        assert isinstance(live.answer(sending), Failed)
        assert isinstance(live.expect(Closed), Closed)
        go.set()


@pytest.mark.parametrize(("call", "error"), [("dup", 24), ("sendfile", 5)], ids=["no descriptor", "a failing disk"])
def test_a_failing_call(runtime: str, big: Path, call: str, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: int) -> int:
        raise OSError(error, os.strerror(error))

    with opened(runtime, big) as (live, handle, sock, ch):
        monkeypatch.setattr(os, call, broken)
        sending = new_op()
        live.order(SendFile(sending, ch, handle, 0, SIZE), Send(ch, b"goes on"))
        assert refusal(live, sending) is FailureKind.INTERNAL
        assert read_exactly(sock, 7) == b"goes on"
