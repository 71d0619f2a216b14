"""Tests of operations: files, uploads, state folder, store, host work, and cancelling."""

import errno
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import frozen

from runtimes.files import file_service as files_module
from runtimes.files.private_files import ensure_private_folder
from runtimes.files.state_folder import FILE_LIMIT
from runtimes.host.host import Services
from runtimes.store.store_factory import open_store
from svc_proto import commands
from svc_proto.facts import Failed, FailureKind, OperationId
from svc_proto.store_requests import LoadSessions, SaveSession
from tests.runtimes.scripted_core import TIMEOUT, RunningCore, new_op, running


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(live: RunningCore, what: commands.Operation[object] | int) -> FailureKind:
    """Return the kind of failure of an operation; it is ordered now, unless `what` is the number of one in progress."""
    answer = live.answer(what) if isinstance(what, int) else live.run_operation(what)
    assert isinstance(answer, Failed), answer
    return answer.error.kind


def test_a_file_system_that_reads_less_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, offset: pread(fd, min(n, 3), offset))
    with running("threads") as live:
        handle = live.done(commands.OpenFile(new_op(), str(path))).handle
        assert live.done(commands.ReadFile(new_op(), handle, 1, 8)) == b"12345678"
        assert live.done(commands.ReadFile(new_op(), handle, 5, 100)) == b"56789"


@pytest.mark.parametrize("before", [0o770, 0o707, 0o710, 0o701])
def test_the_state_folder_is_private(tmp_path: Path, before: int) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(before)
    assert mode(ensure_private_folder(folder)) == 0o700


def test_reading_a_file(runtime: str, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(bytes(range(256)))
    link = tmp_path / "link"
    link.symlink_to(path)
    with running(runtime) as live:
        opened = live.done(commands.OpenFile(new_op(), str(link)))
        assert isinstance(opened, commands.OpenedFile)
        assert opened.real_path == str(path.resolve())
        assert opened.size == 256
        assert opened.regular
        assert opened.modified == path.stat().st_mtime
        assert live.done(commands.ReadFile(new_op(), opened.handle, 10, 5)) == bytes(range(10, 15))
        assert live.done(commands.ReadFile(new_op(), opened.handle, 250, 100)) == bytes(range(250, 256))
        assert live.done(commands.ReadFile(new_op(), opened.handle, 1000, 1)) == b""
        assert refusal(live, commands.ReadFile(new_op(), opened.handle, 0, 1 << 40)) is FailureKind.TOO_LARGE
        live.order(commands.ReleaseFile(opened.handle), commands.ReleaseFile(opened.handle))
        assert refusal(live, commands.ReadFile(new_op(), opened.handle, 0, 1)) is FailureKind.INVALID


def test_a_link_that_is_swapped_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real path and the bytes are those of the file that was opened."""
    public, private, link, real_open = tmp_path / "public", tmp_path / "private", tmp_path / "link", os.open
    public.write_bytes(b"public")
    private.write_bytes(b"secret")
    link.symlink_to(public)

    def swapping(path: str, flags: int, mode: int = 0o777) -> int:
        fd = real_open(path, flags, mode)
        if path == str(link):
            link.unlink()
            link.symlink_to(private)
        return fd

    with running("threads") as live:
        monkeypatch.setattr(os, "open", swapping)
        for real, data in ((public, b"public"), (private, b"secret")):
            opened = live.done(commands.OpenFile(new_op(), str(link)))
            assert opened.real_path == str(real.resolve())
            assert live.done(commands.ReadFile(new_op(), opened.handle, 0, 9)) == data


def test_files_that_cannot_be_opened(runtime: str, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with running(runtime) as live:
        assert refusal(live, commands.OpenFile(new_op(), str(tmp_path / "none"))) is FailureKind.NOT_FOUND
        assert refusal(live, commands.OpenFile(new_op(), str(loop))) is FailureKind.INVALID
        assert refusal(live, commands.OpenFile(new_op(), "a\0b")) is FailureKind.INVALID
        assert refusal(live, commands.OpenFile(new_op(), "x" * 10_000)) is FailureKind.INVALID
        assert not live.done(commands.OpenFile(new_op(), str(tmp_path))).regular
        assert not live.done(commands.OpenFile(new_op(), str(fifo))).regular


def test_uploads(runtime: str, tmp_path: Path) -> None:
    spool = tmp_path / "state" / "spool"
    with running(runtime, services=Services(spool=spool)) as live:
        handle = live.done(commands.CreateBlob(new_op(), ".png"))
        first, second = new_op(), new_op()
        live.order(commands.WriteBlob(first, handle, b"abc"), commands.WriteBlob(second, handle, b"defg"))
        assert live.answer(first) != live.answer(second)
        path = Path(live.done(commands.FinishBlob(new_op(), handle)))
        assert path.is_absolute()
        assert path.parent == spool
        assert path.suffix == ".png"
        assert path.read_bytes() == b"abcdefg"
        assert (mode(path), mode(spool), mode(spool.parent)) == (0o600, 0o700, 0o700)
        other = live.done(commands.CreateBlob(new_op()))
        live.order(commands.DiscardBlob(other), commands.DiscardBlob(other))
        assert refusal(live, commands.WriteBlob(new_op(), other, b"x")) is FailureKind.INVALID
        assert refusal(live, commands.FinishBlob(new_op(), other)) is FailureKind.INVALID
        assert refusal(live, commands.CreateBlob(new_op(), "/../x")) is FailureKind.INVALID
        greedy = live.done(commands.CreateBlob(new_op(), min_free_bytes=1 << 60))
        assert refusal(live, commands.WriteBlob(new_op(), greedy, b"x")) is FailureKind.NO_SPACE
        left = live.done(commands.CreateBlob(new_op(), min_free_bytes=1))
        assert live.done(commands.WriteBlob(new_op(), left, b"unfinished")) == 10
    assert list(spool.iterdir()) == [path]


def test_an_upload_is_written_cancelled_or_discarded_while_it_ends(runtime: str, tmp_path: Path) -> None:
    with running(runtime, services=Services(spool=tmp_path)) as live:
        handle = live.done(commands.CreateBlob(new_op()))
        cancelled, late = new_op(), new_op()
        live.order(commands.FinishBlob(cancelled, handle), commands.Cancel(cancelled))
        assert isinstance(live.answer(cancelled), Failed)
        assert refusal(live, commands.WriteBlob(late, handle, b"x")) is FailureKind.INVALID
        other = live.done(commands.CreateBlob(new_op()))
        assert other > handle
        finish = new_op()
        live.order(
            commands.WriteBlob(new_op(), other, b"x"), commands.FinishBlob(finish, other), commands.DiscardBlob(other)
        )
        live.answer(finish)
        live.done(commands.CreateBlob(new_op()))  # after the others on the same thread
    assert list(tmp_path.iterdir()) == []


def test_deleting_a_finished_upload(runtime: str, tmp_path: Path) -> None:
    spool, other = tmp_path / "spool", tmp_path / "other"
    other.write_bytes(b"")
    (tmp_path / "alias").symlink_to(spool)
    with running(runtime, services=Services(spool=spool)) as live:
        path = Path(live.done(commands.FinishBlob(new_op(), live.done(commands.CreateBlob(new_op())))))
        (spool / "below").mkdir()
        (spool / "below" / "file").write_bytes(b"")
        (spool / "link").symlink_to(other)
        (spool / "out").symlink_to(tmp_path)
        names = ["other", "spool/../other", "spool/below/file", "spool/link", "spool/out/other", "spool/below", "no/x"]
        live.order(
            commands.DeleteBlob("other"),
            commands.DeleteBlob("/\0"),
            *[commands.DeleteBlob(f"{tmp_path}/{name}") for name in names],
        )
        live.order(commands.DeleteBlob(str(tmp_path / "alias" / path.name)))
        live.done(commands.CreateBlob(new_op()))
    assert sorted(entry.name for entry in spool.iterdir()) == ["below", "link", "out"]
    assert (spool / "below" / "file").exists()
    assert other.exists()
    with running(runtime) as live:
        live.order(commands.DeleteBlob(str(other)))
    assert other.exists()


def test_files_of_the_state_folder(runtime: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(runtime, services=Services(state=state)) as live:
        path = Path(live.done(commands.WriteFile(new_op(), "audio/a.mp3", b"\xff\x00")))
        assert path == state / "audio" / "a.mp3"
        assert path.read_bytes() == b"\xff\x00"
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)
        live.done(commands.WriteFile(new_op(), "audio/b.mp3", b""))
        os.utime(path, (1000.0, 1000.0))
        (path.parent / "below").mkdir()
        (path.parent / "link").symlink_to(path)
        assert live.done(commands.SweepFolder(new_op(), "audio", 1000.0)) == 0
        assert live.done(commands.SweepFolder(new_op(), "audio", 1000.5)) == 1
        assert sorted(entry.name for entry in path.parent.iterdir()) == ["b.mp3", "below", "link"]
        assert live.done(commands.SweepFolder(new_op(), "none", 1000.5)) == 0
        for name in ("", "..", "/etc"):
            assert refusal(live, commands.SweepFolder(new_op(), name, 1e12)) is FailureKind.INVALID
            assert refusal(live, commands.WriteFile(new_op(), name, b"")) is FailureKind.INVALID
        assert refusal(live, commands.SweepFolder(new_op(), "audio/b.mp3", 1e12)) is FailureKind.NOT_FOUND
        assert live.done(commands.SweepFolder(new_op(), "audio", 1e12, "b.mp4")) == 0
        assert live.done(commands.SweepFolder(new_op(), "audio", 1e12, "b")) == 1


def test_extra_state_folders(runtime: str, tmp_path: Path) -> None:
    state, room = tmp_path / "state", tmp_path / "room"
    room.mkdir(mode=0o755)
    with running(runtime, services=Services(state=state, extra_state_folders=[tmp_path / "other", room])) as live:
        assert live.done(commands.WriteConfig(new_op(), f"{room}/config.yaml", "a: 1")) is None
        assert live.done(commands.ReadConfig(new_op(), f"{room}/config.yaml")) == "a: 1"
        assert live.done(commands.WriteConfig(new_op(), f"{room}/sub/config.yaml", "b: 2")) is None
        # A foreign folder keeps its mode; folders and files made here are private.
        assert (mode(room), mode(room / "sub"), mode(room / "config.yaml")) == (0o755, 0o700, 0o600)
        assert live.done(commands.SweepFolder(new_op(), str(room), 4e9)) == 1
        for name in (f"{tmp_path}/x", f"{room}s/x", f"{room}/../x", f"{room}/", "/etc/svc-relay-test"):
            assert refusal(live, commands.WriteConfig(new_op(), name, "x")) is FailureKind.INVALID
    assert sorted(path.name for path in tmp_path.iterdir()) == ["room"]


def test_files_that_grow(runtime: str, tmp_path: Path) -> None:
    state, room = tmp_path / "state", tmp_path / "room"
    room.mkdir(mode=0o755)
    with running(runtime, services=Services(state=state, extra_state_folders=[room])) as live:
        assert live.done(commands.AppendFile(new_op(), "runs/a.jsonl", b"{}\n")) == 3
        assert live.done(commands.AppendFile(new_op(), "runs/a.jsonl", b"[]\n", b"<>")) == 6
        assert live.done(commands.AppendFile(new_op(), "runs/a.jsonl", b"", b"()\n")) == 6
        path = state / "runs" / "a.jsonl"
        assert path.read_bytes() == b"()\n[]\n"
        assert (mode(state), mode(path.parent), mode(path)) == (0o700, 0o700, 0o600)
        assert live.done(commands.AppendFile(new_op(), f"{room}/b.jsonl", b"1")) == 1
        assert (mode(room), mode(room / "b.jsonl")) == (0o755, 0o600)
        (room / "link").symlink_to(path)
        os.mkfifo(room / "fifo")
        for name in ("", "..", f"{tmp_path}/c.jsonl", f"{room}/link"):
            assert refusal(live, commands.AppendFile(new_op(), name, b"x")) is FailureKind.INVALID
        assert (
            refusal(live, commands.AppendFile(new_op(), f"{room}/fifo", b"x")) is FailureKind.NOT_FOUND
        )  # no process reads it
        assert refusal(live, commands.AppendFile(new_op(), "runs", b"x")) is FailureKind.INVALID
    assert path.read_bytes() == b"()\n[]\n"


def test_a_full_disk_leaves_no_half_a_line(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(fd: int, data: memoryview, offset: int) -> int:
        if len(data) < 4:
            raise OSError(errno.ENOSPC, "no space left")
        return write(fd, data[: len(data) // 2], offset)

    with running(runtime, services=Services(state=tmp_path)) as live:
        assert live.done(commands.AppendFile(new_op(), "log", b"one\n")) == 4
        write = os.pwrite
        monkeypatch.setattr(os, "pwrite", half)
        assert refusal(live, commands.AppendFile(new_op(), "log", b"second\n")) is FailureKind.NO_SPACE
        monkeypatch.undo()
        assert (tmp_path / "log").read_bytes() == b"one\n"
        assert live.done(commands.AppendFile(new_op(), "log", b"two\n")) == 8


def test_config(runtime: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(runtime, services=Services(state=state)) as live:
        assert refusal(live, commands.ReadConfig(new_op(), "config.yaml")) is FailureKind.NOT_FOUND
        assert live.done(commands.WriteConfig(new_op(), "config.yaml", "a: é\n")) is None
        assert live.done(commands.WriteConfig(new_op(), "config.yaml", "a: ö\n")) is None
        assert live.done(commands.ReadConfig(new_op(), "config.yaml")) == "a: ö\n"
        assert live.done(commands.WriteConfig(new_op(), "profiles/x.yaml", "x")) is None
        for name in ("", "..", "../x", "/etc/passwd", "a//b", "a/../../b", ".", "x\0"):
            assert refusal(live, commands.ReadConfig(new_op(), name)) is FailureKind.INVALID
        (state / "latin").write_bytes(b"\xe9")
        assert refusal(live, commands.ReadConfig(new_op(), "latin")) is FailureKind.INVALID
        (state / "huge").write_bytes(b"x" * (FILE_LIMIT + 1))
        assert refusal(live, commands.ReadConfig(new_op(), "huge")) is FailureKind.TOO_LARGE
        (state / "huge").unlink()
        (state / "folder").mkdir()
        assert refusal(live, commands.WriteConfig(new_op(), "folder", "x")) is FailureKind.INVALID
    assert sorted(path.name for path in state.iterdir()) == ["config.yaml", "folder", "latin", "profiles"]
    assert (mode(state), mode(state / "profiles"), mode(state / "config.yaml")) == (0o700, 0o700, 0o600)


def test_a_linked_configuration_file(runtime: str, tmp_path: Path) -> None:
    """A configuration file that is a link stays a link, and its target is written; other files replace a link."""
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir(mode=0o700)
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "mine.yaml").write_text("a: 1\n")
    (state / "config.yaml").symlink_to("../elsewhere/mine.yaml")
    (state / "blob").symlink_to("../elsewhere/mine.yaml")
    with running(runtime, services=Services(state=state)) as live:
        assert live.done(commands.WriteConfig(new_op(), "config.yaml", "a: 2\n")) is None
        assert live.done(commands.ReadConfig(new_op(), "config.yaml")) == "a: 2\n"
        live.done(commands.WriteFile(new_op(), "blob", b"ours"))
    assert (state / "config.yaml").is_symlink()
    assert (elsewhere / "mine.yaml").read_text() == "a: 2\n"
    assert (mode(elsewhere), [path.name for path in elsewhere.iterdir()]) == (0o755, ["mine.yaml"])
    assert not (state / "blob").is_symlink()


def test_secrets(runtime: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with running(runtime, services=Services(state=tmp_path)) as live:
        assert live.done(commands.EnsureSecret(new_op(), "secret", b"a" * 32)) == b"a" * 32
        assert live.done(commands.EnsureSecret(new_op(), "secret", b"b" * 32)) == b"a" * 32
        (tmp_path / "secret").write_bytes(b"short")
        assert live.done(commands.EnsureSecret(new_op(), "secret", b"c" * 32)) == b"c" * 32
        assert refusal(live, commands.EnsureSecret(new_op(), "secret", b"short")) is FailureKind.INVALID
        (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
        assert refusal(live, commands.EnsureSecret(new_op(), "dangling", b"c" * 32)) is FailureKind.INVALID
    assert (mode(tmp_path), mode(tmp_path / "secret")) == (0o700, 0o600)
    assert len(list(tmp_path.iterdir())) == 2


def test_unconfigured_operations_are_unsupported(runtime: str) -> None:
    @frozen
    class Unheard(commands.Operation[None]):
        pass

    with running(runtime) as live:
        operations: list[commands.Operation[object]] = [
            commands.ReadConfig(new_op(), "x"),
            commands.WriteConfig(new_op(), "x", "y"),
            commands.EnsureSecret(new_op(), "x", b""),
            commands.WriteFile(new_op(), "x", b""),
            commands.SweepFolder(new_op(), "x", 0.0),
            commands.AppendFile(new_op(), "x", b""),
            commands.CreateBlob(new_op()),
            commands.Query(new_op(), LoadSessions()),
            commands.Compute(new_op(), "no.such.work"),
            Unheard(new_op()),
        ]
        for operation in operations:
            assert refusal(live, operation) is FailureKind.UNSUPPORTED


def test_queries(runtime: str) -> None:
    with running(runtime, services=Services(store=open_store("memory:"))) as live:
        live.order(*[commands.Query(new_op(), SaveSession("a", {"n": n})) for n in range(3)])  # in this order
        assert live.done(commands.Query(new_op(), LoadSessions())) == ({"n": 2, "token_hash": "a"},)
        assert refusal(live, commands.Query(new_op(), commands.StoreRequest())) is FailureKind.UNSUPPORTED


def test_host_work(runtime: str) -> None:
    with running(runtime) as live:
        assert live.done(commands.Compute(new_op(), "yaml.load", ("a: [1, 2]",))) == {"a": [1, 2]}
        assert refusal(live, commands.Compute(new_op(), "yaml.load", ("a: [",))) is FailureKind.INVALID
        assert live.done(commands.Compute(new_op(), "network_addresses"))
        assert live.done(commands.Compute(new_op(), "which", ("sh",))).endswith("/sh")
        assert live.done(commands.Compute(new_op(), "which", ("no-such-program",))) is None
        assert live.done(commands.Compute(new_op(), "executable", ("/bin/sh",))) is True
        assert live.done(commands.Compute(new_op(), "executable", ("/bin",))) is False
        assert refusal(live, commands.Compute(new_op(), "yaml.load", ())) is FailureKind.INTERNAL


def test_cancelling_running_and_queued_work(runtime: str) -> None:
    begun, go = threading.Event(), threading.Event()
    ran: list[str] = []

    def slow() -> None:
        begun.set()
        go.wait(TIMEOUT)

    table = {"slow": slow, "note": lambda: ran.append("note")}
    with running(runtime, services=Services(compute=table)) as live:
        running_ops = [new_op() for _ in range(4)]
        live.order(*[commands.Compute(number, "slow") for number in running_ops])
        waiting, last = new_op(), new_op()
        live.order(commands.Compute(waiting, "note"))
        assert begun.wait(TIMEOUT)
        live.order(*[commands.Cancel(number) for number in [waiting, *running_ops, OperationId(99)]])
        for number in [waiting, *running_ops]:
            assert refusal(live, number) is FailureKind.CANCELLED
        go.set()
        assert live.done(commands.Compute(last, "note")) is None
        assert ran == ["note"]


def test_late_results_are_released(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    path = tmp_path / "file"
    path.write_bytes(b"x")
    opened: list[int] = []
    real_open, real_create = files_module._open, files_module._create

    def slow_open(name: str) -> tuple[int, commands.OpenedFile]:
        found = real_open(name)
        opened.append(found[0])
        begun.set()
        go.wait(TIMEOUT)
        return found

    def slow_create(spool: Path, command: commands.CreateBlob) -> files_module._Blob:
        made = real_create(spool, command)
        begun.set()
        go.wait(TIMEOUT)
        return made

    monkeypatch.setattr(files_module, "_open", slow_open)
    monkeypatch.setattr(files_module, "_create", slow_create)
    spool = tmp_path / "spool"
    with running(runtime, services=Services(spool=spool)) as live:
        for operation in (commands.OpenFile(new_op(), str(path)), commands.CreateBlob(new_op())):
            begun.clear()
            go.clear()
            live.order(operation)
            assert begun.wait(TIMEOUT)
            live.order(commands.Cancel(operation.op))
            assert isinstance(live.answer(operation.op), Failed)
            go.set()
        monkeypatch.undo()
    assert list(spool.iterdir()) == []
    for fd in opened:
        with suppress(OSError):  # its number may be reused by now
            assert not os.path.samestat(os.fstat(fd), path.stat())


def test_a_file_released_while_it_is_read(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    path = tmp_path / "file"
    path.write_bytes(b"still there")
    real = files_module._read_exactly

    def slow(fd: int, offset: int, n: int) -> bytes:
        begun.set()
        go.wait(TIMEOUT)
        return real(fd, offset, n)

    monkeypatch.setattr(files_module, "_read_exactly", slow)
    with running(runtime) as live:
        handle = live.done(commands.OpenFile(new_op(), str(path))).handle
        reading = commands.ReadFile(new_op(), handle, 0, 100)
        live.order(reading)
        assert begun.wait(TIMEOUT)
        live.order(commands.ReleaseFile(handle))
        assert refusal(live, commands.ReadFile(new_op(), handle, 0, 1)) is FailureKind.INVALID
        go.set()
        answer = live.answer(reading.op)
        assert not isinstance(answer, Failed)
        assert answer.result == b"still there"
