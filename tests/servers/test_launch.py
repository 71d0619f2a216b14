import gc
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from runtimes.host.host import Program, Services
from runtimes.net.listener import bind
from runtimes.service_home.server_registry import find_running_server, lock_home
from servers.launch import (
    CannotStartError,
    format_authority,
    inner_url,
    launch,
    open_resources,
    print_exit_reason,
    private_home,
    publish_running_server,
)
from servers.options import ProgramCommand
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, StoreRequest
from svc_proto.facts import Fact
from svc_proto.relay_config import RelayConfig


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Restore the SIGINT handler and the garbage collector of this process after the test."""
    before, callbacks, threshold = signal.getsignal(signal.SIGINT), list(gc.callbacks), gc.get_threshold()
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    gc.unfreeze()
    signal.signal(signal.SIGINT, before)


class Short:
    """A core that exits as soon as it is started."""

    def __init__(self, outcome: Exit) -> None:
        self.outcome = outcome

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        return [self.outcome]

    def next_deadline(self) -> float | None:
        return None


class WatchedStore:
    closed = False

    def execute(self, request: StoreRequest[Any]) -> object:
        raise NotImplementedError

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("code", [0, 1, 70])
def test_the_exit_code_is_the_cores(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    store, listener = WatchedStore(), bind("127.0.0.1", 0)
    program = Program(
        core=Short(Exit(code, "because")),
        services=Services(store=store),
        listeners=[listener],
        on_exit=print_exit_reason,
    )
    with pytest.raises(SystemExit) as caught:
        launch(lambda: [program], "asyncio")
    assert caught.value.code == code
    assert capsys.readouterr().err == ("error: because\n" if code else "")
    assert store.closed
    assert listener.sock.fileno() == -1


@pytest.mark.parametrize("problem", ["the home is claimed", "the home is a file"])
def test_given_listeners_are_closed_when_the_home_is_unusable(tmp_path: Path, problem: str) -> None:
    listeners = [bind("127.0.0.1", 0), bind("127.0.0.1", 0)]
    home = tmp_path / "home"
    held = lock_home(home, "relay", version="1") if problem == "the home is claimed" else None
    if held is None:
        home.write_text("")
    with pytest.raises(CannotStartError):
        open_resources(
            RelayConfig(home=str(home)),
            "relay",
            lambda: listeners[0],
            claimed=None,
            listener=listeners[0],
            inner=listeners[1],
            store=WatchedStore(),
        )
    assert [listener.sock.fileno() for listener in listeners] == [-1, -1]
    if held is not None:
        held.release()


@pytest.mark.parametrize("claimed", [False, True])
def test_a_failed_start_releases_the_home_and_its_listeners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: bool
) -> None:
    listeners = [bind("127.0.0.1", 0), bind("127.0.0.1", 0)]
    monkeypatch.setattr("servers.launch.open_inner_listener", lambda listener: listeners[1])
    monkeypatch.setenv("SVC_DATABASE_URL", "unknown:")
    claim = lock_home(tmp_path, "relay", version="1") if claimed else None
    with pytest.raises(CannotStartError):
        open_resources(
            RelayConfig(home=str(tmp_path)),
            "relay",
            lambda: listeners[0],
            claimed=claim,
            listener=None,
            inner=None,
            store=None,
        )
    assert [listener.sock.fileno() for listener in listeners] == [-1, -1]
    lock_home(tmp_path, "relay", version="1").release()


def test_programs_of_this_host_find_the_inner_listener(tmp_path: Path) -> None:
    claim, listener, inner = lock_home(tmp_path, "relay", version="1"), bind("0.0.0.0", 0), bind("127.0.0.1", 0)
    publish_running_server(claim, RelayConfig(), listener, inner)
    running = find_running_server(tmp_path, "relay")
    assert running is not None
    assert (running.port, running.inside) == (listener.address.port, inner_url(inner))
    claim.release()
    for each in (listener, inner):
        each.sock.close()


@pytest.mark.parametrize(
    ("raised", "code", "err"),
    [(KeyboardInterrupt(), 130, ""), (CannotStartError("no disk", code=2), 2, "error: no disk\n")],
)
def test_errors_before_the_loop(raised: BaseException, code: int, err: str, capsys: pytest.CaptureFixture[str]) -> None:
    def programs() -> Sequence[Program]:
        raise raised

    with pytest.raises(SystemExit) as caught:
        launch(programs, "asyncio")
    assert caught.value.code == code
    assert capsys.readouterr().err == err


@pytest.mark.parametrize(
    ("raised", "code", "err"),
    [(click.UsageError("first\n  second"), 2, "error: first second\n"), (click.Abort(), 130, ""), (None, 0, "")],
)
def test_command_lines(raised: Exception | None, code: int, err: str, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command(cls=ProgramCommand)
    def command() -> None:
        if raised is not None:
            raise raised

    with pytest.raises(SystemExit) as caught:
        command.main([])
    assert (caught.value.code or 0) == code
    assert capsys.readouterr().err == err


def test_addresses_in_urls() -> None:
    assert format_authority("127.0.0.1", 80) == "127.0.0.1:80"
    assert format_authority("::1", 80) == "[::1]:80"


def test_startup_objects_are_frozen_for_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def run(programs: Sequence[Program], *_: object, handle: object) -> int:
        for program in programs:
            assert program.on_ready is not None
            program.on_ready()
            seen.extend((gc.get_freeze_count() > 1000, gc.isenabled()))
            gc.unfreeze()
        return 0

    monkeypatch.setattr("servers.launch.run", run)
    core = Short(Exit(0))
    with pytest.raises(SystemExit):
        launch(lambda: [Program(core=core), Program(core=core, on_ready=lambda: seen.append("ready"))], "asyncio")
    assert seen == [True, True, "ready", True, True]


PIECES = """
from resource import RUSAGE_SELF, getrusage
from servers.launch import set_malloc_trim_threshold

def new_pages():
    before = getrusage(RUSAGE_SELF).ru_minflt
    for _ in range(100):
        pieces = [b"x" * 60_000 for _ in range(8)]
        del pieces
    return getrusage(RUSAGE_SELF).ru_minflt - before

set_malloc_trim_threshold()
new_pages()
print(new_pages())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others keep what they like")
def test_freed_memory_is_reused() -> None:
    said = subprocess.run([sys.executable, "-c", PIECES], capture_output=True, text=True, check=True).stdout
    assert int(said) < 100  # else 5,700


@pytest.mark.parametrize(
    ("mode", "owner", "problem"), [(0o700, None, ""), (0o755, None, ""), (0o700, 54321, "belongs")]
)
def test_a_home_that_another_user_can_change_is_refused(
    mode: int, owner: int | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "svc"
    home.mkdir(mode=mode)
    if owner is not None:
        monkeypatch.setattr(os, "geteuid", lambda: owner)
        if home.stat().st_uid == 0:  # root may own the home of a service
            assert private_home(str(home)) == home
            home.chmod(0o777)
            problem = "other users can write"
    if problem:
        with pytest.raises(CannotStartError, match=problem):
            private_home(str(home))
    else:
        assert private_home(str(home)) == home
