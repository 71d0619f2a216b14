"""Tests of parts without a loop: addresses, failures, logs, host work, threads, the waker."""

import errno
import io
import json
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtimes.failures import HostError, failure_of, short_reason
from runtimes.host import compute
from runtimes.host.logs import LogMessage, LogWriter, setup_logging
from runtimes.host.thread_pool import ThreadPool
from runtimes.loops.loop import Source
from runtimes.loops.waker import Waker
from runtimes.net.listener import BindError, bind, plain_address
from svc_proto.commands import Level, Log
from svc_proto.facts import Address, Failure, FailureKind
from tests.runtimes.scripted_core import TIMEOUT
from tests.support.restored_logger import restored_logger

# --- listening ---------------------------------------------------------------------------------------------------


def test_bind_picks_a_port() -> None:
    listener = bind("127.0.0.1", 0)
    assert listener.address.host == "127.0.0.1"
    assert listener.address.port > 0
    with pytest.raises(BindError, match="in use"):
        bind("127.0.0.1", listener.address.port)
    listener.sock.close()


def test_error_texts_of_bind() -> None:
    with pytest.raises(BindError, match="the name is not known"):
        bind("no.such.name.invalid", 0)
    with pytest.raises(BindError, match="no such port"):
        bind("127.0.0.1", 99_999_999_999)
    with pytest.raises(BindError, match="cannot listen on"):
        bind("192.0.2.1", 0)


def test_both_families_on_one_socket() -> None:
    try:
        listener = bind("::", 0)
    except BindError:
        pytest.skip("no IPv6 on this host")
    listener.sock.setblocking(True)
    with listener.sock, socket.create_connection(("127.0.0.1", listener.address.port)):
        sock, peer = listener.sock.accept()
        assert plain_address(peer).host == "127.0.0.1"
        sock.close()


def test_plain_addresses() -> None:
    assert plain_address(("::ffff:10.0.0.1", 80, 0, 0)) == Address("10.0.0.1", 80)
    assert plain_address(("::ffff:0", 80, 0, 0)) == Address("::ffff:0", 80)


# --- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(errno.ENOENT, "x"), FailureKind.NOT_FOUND),
        (PermissionError(errno.EACCES, "x"), FailureKind.DENIED),
        (FileExistsError(errno.EEXIST, "x"), FailureKind.EXISTS),
        (OSError(errno.ENOSPC, "x"), FailureKind.NO_SPACE),
        (OSError(errno.EFBIG, "x"), FailureKind.TOO_LARGE),
        (OSError(errno.ETIMEDOUT, "x"), FailureKind.TIMED_OUT),
        (OSError(errno.EIO, "x"), FailureKind.INTERNAL),
        (OSError("no number"), FailureKind.INTERNAL),
        (socket.gaierror(socket.EAI_NONAME, "x"), FailureKind.UNREACHABLE),
        (ssl.SSLError(1, "x"), FailureKind.TLS),
        (ValueError("secret"), FailureKind.INVALID),
        (KeyError("secret"), FailureKind.INTERNAL),
        (HostError(FailureKind.CANCELLED, "x"), FailureKind.CANCELLED),
    ],
)
def test_failures(error: BaseException, kind: FailureKind) -> None:
    failure = failure_of(error)
    assert failure.kind is kind
    assert "secret" not in failure.detail


def test_failures_name_no_path() -> None:
    with pytest.raises(OSError, match="secret") as caught, open("/no/such/secret"):
        pass
    assert failure_of(caught.value) == Failure(FailureKind.NOT_FOUND, "no such file or directory")
    assert short_reason(caught.value) == "no such file or directory"


# --- logs --------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with restored_logger("test.svc"):
        yield io.StringIO()


def test_text_logs(stream: io.StringIO) -> None:
    writer = LogWriter(setup_logging(logging.INFO, stream=stream, name="test.svc"))
    fields = {"n": 1, "ok": True, "none": None, "word": "plain", "text": 'a "b"\n', "eq": "a=b", "empty": ""}
    writer.write(Log(Level.INFO, "it.happened", fields))
    writer.write(Log(Level.DEBUG, "hidden", {}))
    writer.log(logging.DEBUG, "hidden")
    line = stream.getvalue()
    assert line.endswith(
        'Z INFO test.svc it.happened n=1 ok=true none=null word=plain text="a \\"b\\"\\n" eq="a=b" empty=""\n'
    )
    assert line[10] == "T"
    assert line.count("\n") == 1
    writer.bug("core.bug", ZeroDivisionError("x"))
    assert "core.bug error=ZeroDivisionError\nZeroDivisionError: x" in stream.getvalue()


def test_json_logs(stream: io.StringIO) -> None:
    logger = setup_logging("INFO", as_json=True, stream=stream, name="test.svc")
    writer = LogWriter(logger)
    writer.write(Log(Level.WARNING, "it.happened", {"n": 1, "event": "hidden by the event", "odd": {1}}))
    logger.info("from %s", "elsewhere")
    writer.bug("core.bug", ZeroDivisionError("x"))
    first, second, third = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["level"] == "WARNING"
    assert first["event"] == "it.happened"
    assert (first["n"], first["odd"], first["logger"]) == (1, "{1}", "test.svc")
    assert second["event"] == "from elsewhere"
    assert "ZeroDivisionError: x" in third["traceback"]


def test_log_fields_are_formatted_on_demand(stream: io.StringIO) -> None:
    class Loud:
        def __str__(self) -> str:
            raise AssertionError

    logger = setup_logging(logging.ERROR, stream=stream, name="test.svc")
    LogWriter(logger).write(Log(Level.INFO, "quiet", {"loud": Loud()}))
    assert str(LogMessage("event", {})) == "event"


# --- host work ---------------------------------------------------------------------------------------------------


def test_yaml() -> None:
    assert compute.load_yaml("") == {}
    document = "a: 1\n2: [x, null, true, 1.5]\nday: 2026-01-31\nat: 2026-01-31T01:02:03Z\n"
    assert compute.load_yaml(document) == {
        "a": 1,
        "2": ["x", None, True, 1.5],
        "day": "2026-01-31",
        "at": "2026-01-31T01:02:03+00:00",
    }


@pytest.mark.parametrize(
    ("value", "found"),
    [
        *((word, word) for word in ("no", "NO", "on", "Yes", "off", "y", "truely", "'true'")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
    ],
)
def test_only_true_and_false_are_booleans(value: str, found: object) -> None:
    assert compute.load_yaml(f"language: {value}") == {"language": found if found is not value else value.strip("'")}


@pytest.mark.parametrize(
    ("path", "line"), [("a", 1), ("b", 3), ("b.c", 3), ("b.d", 4), ("b.d.e", 4), ("b.x", 3), ("x", None), ("2", 6)]
)
def test_the_line_of_a_member(path: str, line: int | None) -> None:
    document = "a: no\nb: {}\nb: {c: on,\n  d: True}\n\n2: x\n"
    assert compute.yaml_line(document, path.split(".")) == line


@pytest.mark.parametrize(
    "document",
    [
        "a: [",
        "- a",
        "text",
        "a: !!python/object:os.system x",
        "a: !!binary aGVsbG8=",
        "a: &b [*b]",
        "a: " + "[" * 600,
        f"x: &x [{'1,' * 1000}]\ny: [{'*x,' * (compute.YAML_NODES // 900)}]",
        "a: \x00",
    ],
)
def test_yaml_that_is_refused(document: str) -> None:
    with pytest.raises(HostError) as caught:
        compute.load_yaml(document)
    assert caught.value.failure.kind is FailureKind.INVALID


def test_the_addresses_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = compute.list_network_addresses()
    loopback = next(row for row in listed if row["address"] == "127.0.0.1")
    assert loopback == {**loopback, "up": True, "point_to_point": False, "default": False}

    class Lonely(socket.socket):
        def connect(self, address: object) -> None:
            raise OSError(errno.ENETUNREACH, "no network")

    monkeypatch.setattr(socket, "socket", Lonely)
    assert [row["address"] for row in compute.list_network_addresses()] == [row["address"] for row in listed]
    assert not any(row["default"] for row in compute.list_network_addresses())


# --- threads -----------------------------------------------------------------------------------------------------


def test_one_worker_keeps_the_order_and_reports_errors() -> None:
    waker = Waker()
    workers = ThreadPool("test", 1, waker.post)
    order: list[int] = []
    told: list[tuple[object, str]] = []
    for n in range(20):
        workers.submit(lambda n=n: order.append(n), lambda result, error: None)  # type: ignore[misc]
    workers.submit(lambda: 1 // 0, lambda result, error: told.append((result, type(error).__name__)))
    workers.close(TIMEOUT)
    waker.drain()
    assert order == list(range(20))
    assert told == [(None, "ZeroDivisionError")]
    waker.dispose()
    waker.post(lambda: None)  # the worker has ended


def test_workers_are_bounded() -> None:
    waker = Waker()
    workers = ThreadPool("bounded", 2, waker.post)
    go = threading.Event()
    for _ in range(6):
        workers.submit(lambda: go.wait(TIMEOUT), lambda result, error: None)
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("bounded")]
    assert sorted(names) == ["bounded-0", "bounded-1"]
    go.set()
    workers.close(TIMEOUT)
    waker.on_readable()
    waker.on_readable()  # nothing is left
    waker.dispose()


def test_thread_creation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    waker = Waker()
    workers = ThreadPool("test", 2, waker.post)
    told: list[str] = []
    workers.submit(lambda: None, lambda result, error: told.append(type(error).__name__))
    assert told == []
    waker.drain()
    assert told == ["RuntimeError"]
    workers.close(0.0)
    waker.dispose()


def test_a_source_does_nothing_by_itself() -> None:
    with socket.socket() as sock:
        source = Source(sock)
        source.on_readable()
        source.on_writable()
        assert not source.want_read


def test_the_folders_in_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert compute.list_folders(str(tmp_path)) == ("a", "b")
    assert compute.list_folders(str(tmp_path / "missing")) == ()


def test_real_paths(tmp_path: Path) -> None:
    here = tmp_path.resolve()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "broken").symlink_to("gone/far")
    asked = ("link/x/y", "real", "broken", "nowhere")
    led = compute.real_paths(*(str(tmp_path / path) for path in asked))
    assert led == tuple(str(here / path) for path in ("real/x/y", "real", "gone/far", "nowhere"))


def test_release_memory_calls_malloc_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace(malloc_trim=asked.append))
    compute.release_memory()
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace())
    compute.release_memory()
    assert asked == [0]


def test_a_qr_has_a_square_of_modules_and_a_limit() -> None:
    rows = compute.qr_rows("svc-relay")
    assert {len(rows), *map(len, rows)} == {21}  # version 1, ISO/IEC 18004
    assert [row[:7] for row in rows[:7]] == ["1111111", "1000001", *["1011101"] * 3, "1000001", "1111111"]
    with pytest.raises(HostError, match="more than a QR holds"):
        compute.qr_rows("x" * 2_954)
