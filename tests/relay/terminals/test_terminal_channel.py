"""The terminal channel: attach, type, resize, detach, kill, list (wire terminal 1)."""

import pytest
from attrs import evolve

from svc_proto.commands import Compute, Level, SignalName, Spawn, TerminalSize
from svc_proto.facts import FailureKind
from svc_proto.relay.terminals import terminal_channel
from svc_proto.relay.terminals.terminal_channel import MAX_QUEUED, MAX_UNREAD
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.relay.child_process_harness import (
    ChildProcessHarness,
    Tmux,
    attach,
    attached,
    describe_messages,
    desktop_relay,
    send_and_collect,
)
from tests.support.channel_ends import HarnessChild


def are_held(*shells: HarnessChild) -> list[bool]:
    return [shell.held for shell in shells]


def test_a_bare_shell() -> None:
    book = ChildProcessHarness()
    answer = attach(book.client(), cols=100, rows=32)
    attached = {"session_name": "default", "pid": 4001, "shell": "/bin/zsh", "cols": 100, "rows": 32}
    assert answer["payload"] == {**attached, "tmux_available": False, "reattach": False}
    assert (answer["type"], answer["id"]) == ("terminal.attached", "a-1")
    (log,) = [log for log in book.logs if log.event == "shell opened"]
    assert (log.level, log.fields["terminal"], log.fields["reattach"]) == (Level.INFO, "default", False)
    order = book.children[0].order
    assert (order.argv, order.terminal, order.stderr) == (("/bin/zsh", "-l"), TerminalSize(100, 32), None)
    assert dict(order.env) == {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SVC_RELAY_TERMINAL": "default"}


@pytest.mark.parametrize("name", [None, "", "  ", 7, ["x"]])
def test_a_name_is_invented(name: object) -> None:
    _, phone = desktop_relay()
    phone.send("terminal", "terminal.attach", {"session_name": name})
    invented = phone.only()["payload"]["session_name"]
    assert invented.startswith("shell-")
    assert len(invented) == 14


def test_attaching_may_be_refused_and_a_fifth_shell_is() -> None:
    phone = ChildProcessHarness().client()
    answer = attach(phone, cols=70_000)
    assert (answer["type"], answer["id"]) == ("terminal.error", "a-1")
    assert answer["payload"]["session_name"] == "default"
    assert "cols" in answer["payload"]["message"]
    book, phone = desktop_relay()
    book.problem = FailureKind.UNSUPPORTED
    answer = attach(phone)
    assert answer["payload"] == {"message": "the shell could not be started: unsupported", "session_name": "default"}
    assert send_and_collect(phone, "input", data="x") == []
    assert attach(phone)["type"] == "terminal.attached"
    book, phone = desktop_relay()
    for number in range(4):
        assert attach(phone, f"t{number}")["payload"]["reattach"] is False
    refused = attach(phone, "t4")
    assert refused["payload"]["session_name"] == "t4"
    again = attach(phone, "t0", cols=97, rows=31)
    assert again["payload"]["reattach"] is True
    assert "replay" not in again["payload"]
    assert again["payload"]["pid"] == book.children[0].pid
    assert book.children[0].size == TerminalSize(97, 31)
    assert len(book.children) == 4
    send_and_collect(phone, "input", data="x")  # for the session that was attached last
    assert book.children[0].heard == b"x"
    book.children[1].exit()
    phone.envelopes()
    assert attach(phone, "t4")["type"] == "terminal.attached"


def test_output_is_batched_as_valid_json() -> None:
    book, phone, shell = attached()
    shell.write_output(b"one ")
    book.after(0.010)
    shell.write_output(b"two")
    assert phone.envelopes() == []
    book.after(0.006)
    (envelope,) = phone.envelopes()
    assert envelope["type"] == "terminal.output"
    assert envelope["payload"] == {"session_name": "default", "data": "one two"}
    shell.write_output(b"x" * 4095)
    assert phone.envelopes() == []
    shell.write_output(b"y")
    assert len(phone.only()["payload"]["data"]) == 4096
    book.after(1.0)
    assert phone.envelopes() == []
    book, phone = desktop_relay()
    name, text = 'a "b"\\é', 'c:\\"d"\r\n\t\x1b[1mé€😀\0\x7f'
    attach(phone, name)
    book.children[0].write_output(text.encode() + b"\xff")
    book.after(0.016)
    envelope = phone.only()
    assert envelope.pop("id") not in ("", None)
    payload = {"session_name": name, "data": f"{text}\ufffd"}
    assert envelope == {"channel": "terminal", "type": "terminal.output", "payload": payload}


def test_input_behind_an_attach_is_delivered_in_order_up_to_a_limit() -> None:
    book, phone = desktop_relay()
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.attach", {"session_name": "a"})
    for text in ("ls", "\r", "", None, 5):
        phone.send("terminal", "terminal.input", {"data": text})
    phone.send("terminal", "terminal.resize", {"cols": 43, "rows": 12})
    assert phone.envelopes() == []
    book.hold = ()
    book.release()
    shell = book.children[0]
    assert (bytes(shell.heard), shell.size) == (b"ls\r", TerminalSize(43, 12))
    assert [envelope["type"] for envelope in phone.envelopes()] == ["terminal.attached"]
    book, phone = desktop_relay()
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.attach", {"session_name": "a"})
    phone.send("terminal", "terminal.input", {"data": "x" * MAX_UNREAD})
    assert phone.envelopes() == []
    (refused,) = send_and_collect(phone, "input", data="y", session_name="a")
    assert (refused["type"], refused["payload"]["session_name"], refused["id"]) == ("terminal.error", "a", "m-1")
    for _ in range(MAX_QUEUED - 2):
        phone.send("terminal", "terminal.list")
    assert phone.envelopes() == []
    (refused,) = send_and_collect(phone, "list")
    assert refused["type"] == "terminal.error"
    book.hold = ()
    book.release()
    assert book.children[0].heard == b"x" * MAX_UNREAD
    phone.envelopes()
    assert send_and_collect(phone, "input", data="y") == []
    assert book.children[0].heard.endswith(b"xy")
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.attach", {"session_name": "b"})
    assert send_and_collect(phone, "input", data="z", session_name="b") == []
    book.hold = ()
    book.release()
    assert book.children[1].heard == b"z"


def test_input_to_a_blocked_shell_is_limited() -> None:
    book, phone, shell = attached()
    shell.reads = False
    assert send_and_collect(phone, "input", data="x" * MAX_UNREAD) == []
    assert send_and_collect(phone, "input", data="x") == []  # a paste may be as long as a message
    (refused,) = send_and_collect(phone, "input", data="y")
    assert (refused["type"], refused["payload"]["session_name"], refused["id"]) == ("terminal.error", "default", "m-1")
    shell.write_output(b"still speaking")
    book.after(0.016)
    assert describe_messages(phone) == [("output", "still speaking")]
    shell.read()
    assert send_and_collect(phone, "input", data="y") == []
    assert shell.heard.endswith(b"xy")
    book.after(3600.0)
    assert not shell.gone


def test_messages_that_name_nothing_are_refused_or_ignored() -> None:
    book, phone, shell = attached()
    for kind in ("input", "resize", "detach", "kill"):
        assert send_and_collect(phone, kind, session_name="other", data="x", cols=1, rows=1) == []
    assert (bytes(shell.heard), shell.size, shell.gone) == (b"", TerminalSize(80, 24), False)
    absent = book.client()
    for kind in ("input", "resize", "detach", "kill"):
        assert send_and_collect(absent, kind, data="x") == []
    _, phone, _ = attached()
    (answer,) = send_and_collect(phone, "dance" * 100)
    assert (answer["type"], answer["id"]) == ("terminal.error", "m-1")
    assert len(answer["payload"]["message"]) < 100
    _, phone, shell = attached()
    (answer,) = send_and_collect(phone, "resize", cols="wide")
    assert (answer["type"], answer["id"]) == ("terminal.error", "m-1")
    assert shell.size == TerminalSize(80, 24)


def test_slow_client_pauses_its_shells() -> None:
    book, phone, shell = attached(limits=evolve(DEFAULT_LIMITS, high_water=5000, low_water=1000))
    other = book.client()
    attach(other, "theirs")
    theirs = book.children[-1]
    attach(phone, "second")
    second = book.children[-1]
    phone.reads = False
    noise = bytes(range(33, 127)) * 60
    for number in range(40):
        if are_held(shell) == [True]:
            break
        shell.write_output(noise[number:])
    assert are_held(shell, second) == [True, False]
    second.write_output(noise)
    assert are_held(shell, second) == [True, True]
    theirs.write_output(b"quick")
    book.after(0.016)
    assert describe_messages(other) == [("output", "quick")]
    phone.envelopes()
    phone.read()
    assert are_held(shell, second, theirs) == [False, False, False]
    phone.envelopes()
    shell.write_output(b"more")
    book.after(0.016)
    assert describe_messages(phone) == [("output", "more")]


def test_slow_clients_get_output_while_their_grant_lasts() -> None:
    book = ChildProcessHarness(limits=evolve(DEFAULT_LIMITS, high_water=5000, low_water=1000))
    phone = book.client(terminal=60)
    for name in ("one", "two"):
        attach(phone, name)
    book.after(45)
    phone.send("system", "ping")
    phone.reads = False
    phone.send("system", "ping", {"ts": "x" * 50_000})
    for shell in book.children:
        shell.write_output(b"hidden")
    phone.envelopes()
    book.after(16)
    phone.read()
    error, *rest = phone.envelopes()
    assert error["payload"]["error"] == "grant_required"
    assert [envelope["payload"].get("reason") for envelope in rest] == ["grant expired"] * 2
    limits = evolve(DEFAULT_LIMITS, high_water=5000, low_water=1000, max_unsent=20_000)
    book, phone, shell = attached(limits=limits)
    phone.reads = False
    phone.send("system", "ping", {"ts": "x" * 50_000})
    phone.envelopes()
    for number in range(3):
        shell.write_output(b"<%d>" % number)
        book.after(0.016)
    assert are_held(shell) == [True]
    assert describe_messages(phone) == []
    phone.read()
    assert describe_messages(phone) == [("output", "<0><1><2>")]
    assert are_held(shell) == [False]


def test_shells_that_end_themselves() -> None:
    book, phone, shell = attached()
    shell.write_output(b"logout\r\n")
    shell.exit(-15)
    output, detached = phone.envelopes()
    assert output["payload"] == {"session_name": "default", "data": "logout\r\n"}
    assert detached["payload"] == {"session_name": "default", "reason": "eof", "exit_status": 143}
    assert send_and_collect(phone, "input", data="x") == []
    book.after(1.0)
    assert phone.envelopes() == []
    _, phone, shell = attached(tmux=Tmux())
    shell.exit(0)
    assert phone.only()["payload"] == {"session_name": "default", "reason": "eof"}


def test_shells_are_hung_up_and_then_killed() -> None:
    book, phone, shell = attached()
    shell.write_output(b"last")
    phone.send("terminal", "terminal.detach", {"session_name": "default"}, "d-1")
    assert describe_messages(phone) == [("output", "last"), ("detached", "client detach")]
    assert shell.signals == [SignalName.HANGUP]
    shell.write_output(b"words without a reader")
    book.after(1.0)
    assert (shell.signals, shell.gone) == ([SignalName.HANGUP, SignalName.KILL], True)
    assert phone.envelopes() == []
    book, phone, shell = attached()
    phone.send("terminal", "terminal.kill")
    assert describe_messages(phone) == [("detached", "client kill")]
    shell.exit(-1)
    book.after(2.0)
    assert shell.signals == [SignalName.HANGUP]
    book, phone, shell = attached()
    phone.vanish()
    assert shell.signals == [SignalName.HANGUP]
    book.after(1.0)
    assert shell.gone
    book, phone = desktop_relay()
    book.hold = (Spawn,)
    phone.send("terminal", "terminal.attach")
    phone.vanish()
    assert book.held == []  # cancelled: a program that starts late is stopped
    assert book.relay.clients == {}


def test_shells_end_with_the_relay() -> None:
    book, phone, shell = attached()
    shell.write_output(b"last")
    book.hold = (Compute,)
    phone.send("terminal", "terminal.attach", {"session_name": "late"})
    book.stop()
    assert describe_messages(phone) == [("output", "last"), ("detached", "server shutdown")]
    assert shell.signals == [SignalName.HANGUP]
    assert book.exits == []  # the shell has one second left
    shell.exit(-1)
    assert [exit_.code for exit_ in book.exits] == [0]
    book, _, shell = attached()
    book.stop()
    book.after(1.0)
    assert shell.signals == [SignalName.HANGUP, SignalName.KILL]
    assert [exit_.code for exit_ in book.exits] == [0]


@pytest.mark.parametrize("kind", ["attach", "input", "resize", "detach", "kill", "list"])
def test_every_message_needs_the_grant(kind: str) -> None:
    book = ChildProcessHarness()
    phone = book.client(terminal=60)
    attach(phone)
    (shell,) = book.children
    book.after(60)
    answer, detached = send_and_collect(phone, kind, data="x")
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "m-1")
    assert answer["payload"]["message"] == "terminal grant expired or missing"
    assert detached["payload"] == {"session_name": "default", "reason": "grant expired"}
    assert (bytes(shell.heard), shell.signals) == (b"", [SignalName.HANGUP])
    assert phone.is_open
    (answer,) = send_and_collect(phone, kind)
    assert (answer["channel"], answer["type"]) == ("system", "error")


def test_shells_end_with_their_grant_or_session() -> None:
    book = ChildProcessHarness()
    phone = book.client(terminal=60)
    attach(phone)
    book.after(60)
    book.children[0].write_output(b"secret")
    book.after(0.016)
    assert describe_messages(phone) == [("", None), ("detached", "grant expired")]
    assert phone.is_open
    book, phone, shell = attached()
    phone.mute = True  # the shell does not wait until the client closes its socket
    assert book.request("DELETE", f"/sessions/{book.sessions()[0]['token_prefix']}").status == 200
    assert shell.signals == [SignalName.HANGUP]
    assert [envelope["type"] for envelope in phone.envelopes()] == ["error"]


def test_pending_input_is_discarded_with_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_channel, "MAX_UNREAD", 1_000)
    book, phone = desktop_relay()
    path = f"/sessions/{book.sessions()[0]['token_prefix']}"
    for name in ("a", "b"):
        book.hold = (Spawn,)
        phone.send("terminal", "terminal.attach", {"session_name": name})
        assert send_and_collect(phone, "input", session_name=name, data="x" * 900) == []
        assert book.request("PATCH", path, {"grants": {"terminal": False}}).status == 200
        assert send_and_collect(phone, "list")[-1]["type"] == "error"  # and pending output is discarded
        book.hold = ()
        book.release()
        assert book.request("PATCH", path, {"grants": {"terminal": 0}}).status == 200
    phone.envelopes()
    assert attach(phone)["type"] == "terminal.attached"


def test_list_without_tmux_has_own_sessions_only() -> None:
    book, phone, _ = attached("a.b")
    attach(phone, "a_b")
    other = book.client()
    (answer,) = send_and_collect(phone, "list")
    assert (answer["type"], answer["id"]) == ("terminal.sessions", "m-1")
    assert answer["payload"]["tmux_available"] is False
    assert answer["payload"]["sessions"] == [
        {"name": name, "pid": child.pid, "shell": "/bin/zsh", "live": True, "owned_by_client": True}
        for name, child in zip(("a.b", "a_b"), book.children, strict=True)
    ]
    (answer,) = send_and_collect(other, "list")
    assert answer["payload"] == {"sessions": [], "tmux_available": False}


def test_bug_fails_one_message_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _, phone, shell = attached()
    with monkeypatch.context() as patch:
        patch.setattr(terminal_channel, "parse_terminal_size", lambda payload: 1 / 0)
        (answer,) = send_and_collect(phone, "resize")
    assert answer["payload"]["message"].startswith("internal error bug-")
    assert send_and_collect(phone, "input", data="x") == []
    assert shell.heard == b"x"
