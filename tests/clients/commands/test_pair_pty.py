"""Pairing as a person does it, at a terminal: what is typed, pasted and read there."""

from __future__ import annotations

import base64
import json
import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import define, evolve

from runtimes.run import run
from runtimes.waker import Handle
from servers.relay_program import read_config, relay_program
from svc_proto.basics.moment import Moment
from svc_proto.client.stored import FILE_NAME
from svc_proto.commands import Command
from svc_proto.config import RelayConfig
from svc_proto.engine.boundary import Core
from svc_proto.facts import Fact
from svc_proto.machines.qr import parse_invite
from tests.clients.commands.support import Shelf, finish
from tests.clients.commands.test_desktop import code_for, invite, stored, tls
from tests.servers.support import call, running_relay


def test_by_code(desk: Shelf) -> None:
    code_for(desk)
    status, shown = finish(desk.spawn("svc-relay", "pair", "Q7M2ZK", "--remote", desk.url))
    assert status == 0
    assert shown.splitlines()[0] == f"Paired with {desk.url}"
    assert shown.splitlines()[-1] == f"  Stored    {desk.home}/svc/{FILE_NAME}"


PASTED = [
    "\x1b[200~Q7M2ZK\x1b[201~",  # bracketed paste
    "\x1b[31mq7m\x1b[0m-2zk",  # colours of a chat
    "\x1b]0;a title\x07Q7M 2ZK99",  # a title, and more than six
]


@pytest.mark.parametrize("pasted", PASTED)
def test_by_prompt(desk: Shelf, pasted: str) -> None:
    code_for(desk)
    terminal = desk.spawn("svc-relay", "pair", "--remote", desk.url)
    terminal.expect_exact("Pairing code: ")
    terminal.sendline(pasted)
    terminal.expect_exact("Paired with ")
    assert finish(terminal)[0] == 0
    assert list(stored(desk)) == [desk.url]


def test_an_invite_at_the_prompt(desk: Shelf) -> None:
    terminal = desk.spawn("svc-relay", "pair", "--remote", "ws://127.0.0.1:9")
    terminal.expect_exact("Pairing code: ")
    terminal.sendline(invite(desk))
    terminal.expect_exact(f"Paired with {desk.url}")
    assert finish(terminal)[0] == 0


@pytest.mark.parametrize("form", ["url", "json", "base64", "variable"])
def test_by_qr(desk: Shelf, form: str) -> None:
    url = invite(desk)
    text = json.dumps(parse_invite(url))
    given = {"url": url, "json": text, "base64": base64.b64encode(text.encode()).decode(), "variable": url}[form]
    arguments = [] if form == "variable" else ["--pair-qr", given]
    env = {"SVC_RELAY_PAIR_QR": given} if form == "variable" else {}
    status, shown = finish(desk.spawn("svc-relay", "pair", *arguments, env=env))
    assert status == 0
    assert shown.splitlines()[0] == f"Paired with {desk.url}"
    assert "  Route     public" in shown.splitlines()


# --- codes that do not work ---------------------------------------------------------------------------------------

REFUSED = "the relay refuses: the pairing code is invalid, expired or already used; make a new code with svc pair"


def test_a_wrong_code(desk: Shelf) -> None:
    status, shown = finish(desk.spawn("svc-relay", "pair", "AAAAAA", "--remote", desk.url))
    assert (status, shown) == (1, f"error: {REFUSED} on its host\r\n")
    assert not (desk.home / "svc" / FILE_NAME).exists()


def test_the_sixth_try(desk: Shelf) -> None:
    for _ in range(5):
        desk.run("svc-relay", "pair", "AAAAAA", "--remote", desk.url)
    terminal = desk.spawn("svc-relay", "pair", "--remote", desk.url)
    terminal.expect_exact("Pairing code: ")
    terminal.sendline("AAAAAA")
    status, shown = finish(terminal)
    assert status == 1  # and it does not ask again
    assert "too many wrong codes from this address: the relay takes no further one for " in shown
    assert shown.count("Pairing code: ") == 0


@define
class Clock:
    """A core, and how late it is there."""

    core: Core
    late: float = 0.0  # s

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        return self.core.handle(fact, Moment(now.mono + self.late, now.wall + self.late))

    def next_deadline(self) -> float | None:
        when = self.core.next_deadline()
        return None if when is None else when - self.late


@contextmanager
def relay_with_a_clock(home: Path) -> Iterator[tuple[Clock, int]]:
    """A relay on a thread of this process, on a real loop, and its port."""
    bound: queue.SimpleQueue[RelayConfig] = queue.SimpleQueue()
    handle, log = Handle(), logging.getLogger("svc")
    before = (log.handlers[:], log.level, log.propagate)
    config = read_config({"SVC_HOME": str(home / "svc")}, {"host": "127.0.0.1", "port": 0})
    program = relay_program(config, on_ready=bound.put)
    clock = Clock(program.core)
    thread = threading.Thread(
        target=lambda: run(evolve(program, core=clock, on_exit=None), "anyio", handle=handle, grace=1.0, signals=False)
    )
    thread.start()
    try:
        yield clock, bound.get(timeout=10).port
    finally:
        handle.stop()
        thread.join(10)
        assert program.claim is not None
        program.claim.release()
        log.handlers[:], log.level, log.propagate = before


@pytest.mark.parametrize(("late", "works"), [(540.0, True), (601.0, False)])
def test_an_expired_code(tmp_path: Path, late: float, works: bool) -> None:
    with relay_with_a_clock(tmp_path / "host") as (clock, port):
        desk = Shelf(tmp_path, port)
        code_for(desk)
        clock.late = late
        terminal = desk.spawn("svc-relay", "pair", "--remote", desk.url)
        terminal.expect_exact("Pairing code: ")
        terminal.sendline("Q7M2ZK")
        if works:
            terminal.expect_exact("Paired with ")
            assert finish(terminal)[0] == 0
            return
        terminal.expect_exact(REFUSED)
        terminal.expect_exact("Try again.")
        call(port, "POST", "/pairing/register", {"code": "AAAAA1"})
        terminal.expect_exact("Pairing code: ")
        terminal.sendline("AAAAA1")
        terminal.expect_exact("Paired with ")
        assert finish(terminal)[0] == 0


def test_a_changed_certificate(tmp_path: Path, certificate: tuple[Path, Path], other: tuple[Path, Path]) -> None:
    desk = Shelf(tmp_path, more=tls(certificate))
    with running_relay(tmp_path, env=tls(certificate)) as (_, desk.port):
        url = f"wss://127.0.0.1:{desk.port}"
        desk.run("svc-pair", "--register-code", "Q7M2ZK")
        status, shown = finish(desk.spawn("svc-relay", "pair", "Q7M2ZK", "--remote", url))
        assert status == 0
        assert "\n  Pin       " in shown
    desk.more = tls(other)
    with running_relay(tmp_path, env=tls(other), port=desk.port):
        status, shown = finish(desk.spawn("svc-relay", "shell"))
        assert status == 1
        assert "shows another certificate than when you paired" in shown
        assert "svc-relay pair --pair-qr" in shown
        assert len(shown.splitlines()) == 1
