"""Tests of `SendFile`, by which the runtime sends a file itself, over plain TCP and over TLS."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtimes.tls.contexts import server_context
from svc_proto.commands import Abort, Cancel, CloseWrite, OpenFile, ReleaseFile, Send, SendFile
from svc_proto.facts import ChannelId, Closed, Done, Failed, FailureKind, OperationId, Sent
from tests.runtimes.scripted_core import TIMEOUT, RunningCore, ops, read_all, read_exactly, running
from tests.runtimes.test_operations import refusal
from tests.runtimes.tls.test_contexts import Files, secured

SIZE = 10 * 1024 * 1024
AHEAD = 2 * 1024 * 1024  # bytes: the kernel would buffer more by itself


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "big.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def op() -> Iterator[OperationId]:
    return ops()


def open_file(live: RunningCore, op: Iterator[OperationId], path: Path) -> int:
    handle: int = live.done(OpenFile(next(op), str(path))).handle
    return handle


def peer_of(live: RunningCore, certificate: Files | None) -> tuple[socket.socket, ChannelId]:
    """Connect a peer, over TLS if there is a certificate; return it with its channel id."""
    return live.accept() if certificate is None else secured(live, certificate)


def test_ten_megabytes_between_two_sends(runtime: str, op: Iterator[OperationId], big: Path) -> None:
    with running(runtime) as live:
        handle = open_file(live, op, big)
        sock, ch = live.accept()
        sending = next(op)
        live.order(
            Send(ch, b"head"),
            SendFile(sending, ch, handle, 0, SIZE),
            ReleaseFile(handle),
            Send(ch, b"tail"),
            CloseWrite(ch),
        )
        data = read_all(sock)
        assert data == b"head" + big.read_bytes() + b"tail"
        assert live.answer(sending) == Done(sending, SIZE)
        sock.close()
        live.closed(ch)
        assert sum(fact.n for fact in live.seen if isinstance(fact, Sent) and fact.ch == ch) == 8 + SIZE


def test_ten_megabytes_over_tls(runtime: str, op: Iterator[OperationId], big: Path, certificate: Files) -> None:
    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, big)
        sock, ch = secured(live, certificate)
        sending, second = next(op), next(op)
        live.order(
            Send(ch, b"head"),
            SendFile(sending, ch, handle, 1, SIZE - 1),
            SendFile(second, ch, handle, 0, 0),
            Send(ch, b"tail"),
            CloseWrite(ch),
        )
        assert read_all(sock) == b"head" + big.read_bytes()[1:] + b"tail"
        assert live.answer(sending) == Done(sending, SIZE - 1)
        assert live.answer(second) == Done(second, 0)
        sock.unwrap().close()
        live.closed(ch)


def test_a_stretch_of_a_file(runtime: str, op: Iterator[OperationId], tmp_path: Path) -> None:
    path = tmp_path / "digits"
    path.write_bytes(b"0123456789")
    with running(runtime) as live:
        handle = open_file(live, op, path)
        sock, ch = live.accept()
        assert live.done(SendFile(next(op), ch, handle, 3, 4)) == 4
        assert read_exactly(sock, 4) == b"3456"
        assert live.done(SendFile(next(op), ch, handle, 0, 0)) == 0
        sock.close()


def test_refusals(runtime: str, op: Iterator[OperationId], tmp_path: Path, certificate: Files) -> None:
    path = tmp_path / "digits"
    path.write_bytes(b"0123456789")
    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, path)
        sock, ch = live.accept()
        over_tls, tls_ch = secured(live, certificate)
        for channel, peer in ((ch, sock), (tls_ch, over_tls)):
            assert refusal(live, SendFile(next(op), channel, handle, 5, 100)) is FailureKind.INVALID
            assert read_exactly(peer, 5) == b"56789"
        assert refusal(live, SendFile(next(op), ch, 999, 0, 1)) is FailureKind.INVALID
        assert refusal(live, SendFile(next(op), ChannelId(999), handle, 0, 1)) is FailureKind.CANCELLED
        live.order(CloseWrite(ch))
        assert refusal(live, SendFile(next(op), ch, handle, 0, 1)) is FailureKind.CANCELLED
        sock.close()
        over_tls.close()


@pytest.mark.parametrize("tls", [False, True])
def test_abort_on_the_way(runtime: str, op: Iterator[OperationId], big: Path, certificate: Files, tls: bool) -> None:
    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, big)
        sock, ch = peer_of(live, certificate if tls else None)
        sending = next(op)
        live.order(SendFile(sending, ch, handle, 0, SIZE))
        read_exactly(sock, 1000)
        live.order(Abort(ch))
        assert refusal(live, sending) is FailureKind.CANCELLED
        live.closed(ch)
        with pytest.raises((ConnectionResetError, ssl.SSLError, AssertionError)):
            read_exactly(sock, SIZE)
        sock.close()


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("tls", [False, True])
def test_progress_is_reported_before_the_end(
    runtime: str, op: Iterator[OperationId], big: Path, certificate: Files, tls: bool, file: bool
) -> None:
    """Sent bytes are reported before all are sent, so that the core can measure a slow reader's progress."""
    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, big)
        sock, ch = peer_of(live, certificate if tls else None)
        live.order(SendFile(next(op), ch, handle, 0, SIZE) if file else Send(ch, bytes(SIZE)))
        assert 0 < live.expect(Sent).n < (AHEAD if hasattr(socket, "TCP_NOTSENT_LOWAT") else SIZE)
        live.order(Abort(ch))
        live.closed(ch)
        sock.close()


@pytest.mark.parametrize("tls", [False, True])
def test_cancel_on_the_way(runtime: str, op: Iterator[OperationId], big: Path, certificate: Files, tls: bool) -> None:
    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, big)
        sock, ch = peer_of(live, certificate if tls else None)
        first, second = next(op), next(op)
        live.order(SendFile(first, ch, handle, 0, SIZE), SendFile(second, ch, handle, 0, SIZE), CloseWrite(ch))
        read_exactly(sock, 1000)
        live.order(Cancel(second), Cancel(first))
        for number in (second, first):
            assert refusal(live, number) is FailureKind.CANCELLED
        assert len(read_all(sock)) < SIZE
        sock.close()
        live.closed(ch)


@pytest.mark.parametrize("tls", [False, True])
def test_the_peer_disconnects_while_a_worker_sends(
    runtime: str,
    op: Iterator[OperationId],
    big: Path,
    certificate: Files,
    tls: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(*args: int) -> bytes:
        begun.set()
        go.wait(TIMEOUT)
        raise BlockingIOError

    with running(runtime, tls=server_context(*certificate)) as live:
        handle = open_file(live, op, big)
        sock, ch = peer_of(live, certificate if tls else None)
        monkeypatch.setattr(os, "sendfile", slow)
        monkeypatch.setattr(os, "pread", slow)
        sending = next(op)
        live.order(SendFile(sending, ch, handle, 0, SIZE), ReleaseFile(handle))
        assert begun.wait(TIMEOUT)
        live.order(Abort(ch))
        assert isinstance(live.answer(sending), Failed)
        assert isinstance(live.expect(Closed), Closed)
        go.set()
        sock.close()


def test_out_of_descriptors(
    runtime: str, op: Iterator[OperationId], big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(fd: int) -> int:
        raise OSError(24, "Too many open files")

    with running(runtime) as live:
        handle = open_file(live, op, big)
        sock, ch = live.accept()
        monkeypatch.setattr(os, "dup", exhausted)
        sending = next(op)
        live.order(SendFile(sending, ch, handle, 0, SIZE), Send(ch, b"goes on"))
        assert isinstance(live.answer(sending), Failed)
        assert read_exactly(sock, 7) == b"goes on"
        sock.close()


def test_a_failing_disk(runtime: str, op: Iterator[OperationId], big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: int) -> int:
        raise OSError(5, "Input/output error")

    with running(runtime) as live:
        handle = open_file(live, op, big)
        sock, ch = live.accept()
        monkeypatch.setattr(os, "sendfile", broken)
        assert refusal(live, SendFile(next(op), ch, handle, 0, SIZE)) is FailureKind.INTERNAL
        live.order(Send(ch, b"goes on"))
        assert read_exactly(sock, 7) == b"goes on"
        sock.close()
