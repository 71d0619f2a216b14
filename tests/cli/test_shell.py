from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.one_shot_service import INTERRUPTED
from svc_proto.cli.session_store import StoredSession
from svc_proto.cli.shell import ShellRequest, ShellResult, ShellService
from svc_proto.commands import Abort, Exit, Notify
from svc_proto.engine.core import Engine
from svc_proto.facts import ChannelId, Failure, FailureKind, Stopping
from tests.cli.harness import LAN, PUBLIC, REFUSED, ROUTES, SILENT, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.playbook import Playbook, accepted, counting_entropy

SESSION = StoredSession(url=LAN, token="t0ken-1234")
MANY = evolve(SESSION, candidates=ROUTES)
ORDER = ShellRequest(session=SESSION)
OK = {"channel": "system", "type": "auth.ok", "id": "1", "payload": {"session_token": "t0ken-1234"}}


def terminal(kind: str, identity: str = "1", /, **payload: object) -> dict[str, Any]:
    return {"channel": "terminal", "type": f"terminal.{kind}", "id": identity, "payload": payload}


class Relay:
    """Relay whose answers to each attach are scripted, the last one repeatedly; None drops the connection."""

    def __init__(self, *attach: list[Mapping[str, Any]] | None) -> None:
        self.attach = list(attach) or [[terminal("attached", session_name="default")]]

    def __call__(self, message: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        match message["type"]:
            case "auth":
                return [OK]
            case "terminal.attach":
                answers = self.attach.pop(0) if len(self.attach) > 1 else self.attach[0]
                return None if answers is None else [{**each, "id": message["id"]} for each in answers]
            case _:
                return []


Step = tuple[float, Callable[[OneShotHarness[ShellResult]], None]]


def says(at: float, kind: str, identity: str = "1", /, **payload: object) -> Step:
    """Return the step in which the relay sends a message."""
    return at, lambda world: world.push(terminal(kind, identity, **payload))


def over(at: float) -> Step:
    """Return the step in which the shell ends."""
    return says(at, "detached", reason="eof")


def keys(at: float, data: bytes | None) -> Step:
    """Return the step in which the user types."""
    return at, lambda world: world.keys(data)


def drop(at: float) -> Step:
    """Return the step in which the connection breaks."""
    return at, lambda world: world.break_connections()


def shell(order: ShellRequest, *script: Step, relay: Relay | None = None, **more: Any) -> OneShotHarness[ShellResult]:
    compute = {"terminal.size": lambda: (100, 30), "terminal.resized": lambda: SILENT}
    given = {"socket": relay or Relay(), "compute": compute, "http": as_json({"status": "ok"})}
    return OneShotHarness(ShellService(order), script=script, **{"stdio": True, **given, **more})


def said(world: OneShotHarness[ShellResult], kind: str) -> list[dict[str, Any]]:
    return [message["payload"] for message in world.said if message["type"] == f"terminal.{kind}"]


def test_a_session_at_a_terminal() -> None:
    there = shell(
        ORDER,
        keys(1, b"l"),
        keys(1.1, b"\xc3"),
        keys(2, b"\xa9\r\x03"),
        says(3, "output", session_name="default", data="\x1b[1mok\r\n"),
        says(4, "output", session_name="default", data=7),
        (5, lambda w: w.push({"channel": "system", "type": "pong", "id": "9", "payload": {}})),
        says(6, "detached", session_name="default", reason="eof"),
    )
    assert there.run() == ShellResult(0, "[the shell has ended]")
    assert said(there, "attach") == [{"session_name": "default", "cols": 100, "rows": 30}]
    assert "".join(each["data"] for each in said(there, "input")) == "l\u00e9\r\x03"
    assert there.screen == "\x1b[1mok\r\n"
    assert Notify("raw", {}) in there.told


@pytest.mark.parametrize(("reason", "status"), [("client kill", 0), ("pty closed", 1), ("grant expired", 1), (None, 1)])
def test_other_ends(reason: object, status: int) -> None:
    there = shell(ORDER, says(1, "detached", reason=reason))
    assert there.run() == ShellResult(status, f"[{reason or ''}]")


@pytest.mark.parametrize(
    ("told", "status"), [(0, 0), (3, 3), (143, 143), (255, 255), (-1, 0), (256, 0), (True, 0), ("3", 0)]
)
def test_the_status_of_the_shell(told: object, status: int) -> None:
    there = shell(ORDER, says(1, "detached", reason="eof", exit_status=told))
    note = f"[the shell has ended with status {status}]" if status else "[the shell has ended]"
    assert there.run() == ShellResult(status, note)


@pytest.mark.parametrize("reason", ["server shutdown", "ws closed during flush"])
def test_a_restart_of_the_relay_is_a_lost_connection(reason: str) -> None:
    relay = Relay([terminal("attached")], None, [terminal("attached", reattach=True)])
    there = shell(ORDER, says(1, "detached", reason=reason), drop(1.1), keys(8, b"ls"), over(9), relay=relay)
    assert there.run() == ShellResult(0, "[the shell has ended]")
    assert f"[connection lost: {reason}; trying again in 1 s]" in there.screen
    assert len(said(there, "attach")) == 3
    assert [each["data"] for each in said(there, "input")] == ["ls"]


def test_detaching() -> None:
    there = shell(ORDER, keys(1, b"ls\x1dmore"))
    assert there.run() == ShellResult(0, "[detached from default; svc-relay shell --session default comes back to it]")
    assert [each["data"] for each in said(there, "input")] == ["ls"]
    assert said(there, "detach") == [{"session_name": "default"}]


def test_without_an_escape_key() -> None:
    order = evolve(ORDER, escape=None, shell="/bin/zsh")
    there = shell(order, keys(1, b"\x1d"), over(2))
    assert there.run().status == 0
    assert [each["data"] for each in said(there, "input")] == ["\x1d"]
    assert said(there, "attach")[0]["shell"] == "/bin/zsh"


def test_standard_input_is_sent_to_its_end() -> None:
    order = evolve(ORDER, person=False)
    there = shell(order, keys(1, b"\x1dls\n\xc3"), keys(2, None), over(2.9))
    assert there.run().status == 0
    assert "".join(each["data"] for each in said(there, "input")) == "\x1dls\n\ufffd\x04"
    assert said(there, "attach") == [{"session_name": "default", "cols": 250, "rows": 200}]


def test_end_of_input_is_repeated_until_the_shell_ends() -> None:
    """Repeat the end of input until the shell ends, since a tmux that is starting may take one for a character."""
    there = shell(evolve(ORDER, person=False), keys(1, b"ls\n"), keys(2, None), drop(3.5), over(7.2))
    assert there.run().status == 0
    assert [each["data"] for each in said(there, "input")] == ["ls\n", *("\x04" * 5)]  # at 2, 3, 5, 6 and 7


@pytest.mark.parametrize(("again", "kind"), [(False, "kill"), (True, "detach")])
def test_empty_standard_input(again: bool, kind: str) -> None:
    relay = Relay([terminal("attached", session_name="default", reattach=again)])
    there = shell(evolve(ORDER, person=False), keys(1, None), relay=relay)
    assert there.run() == ShellResult(0, "[nothing to type: standard input is empty]")
    assert said(there, "input") == []
    assert said(there, kind) == [{"session_name": "default"}]


def test_changed_window_size() -> None:
    sizes: list[object] = [Failure(FailureKind.INTERNAL), (0, 0), SILENT]
    compute = {"terminal.size": lambda: "nonsense", "terminal.resized": lambda: sizes.pop(0)}
    there = shell(ORDER, over(5), compute=compute).finished()
    assert said(there, "attach")[0] == {"session_name": "default", "cols": 80, "rows": 24}
    assert said(there, "resize") == [{"session_name": "default", "cols": 1, "rows": 1}]


def test_size_change_while_disconnected_is_sent_with_the_next_attach() -> None:
    def resized(at: float, size: int) -> Step:
        return at, lambda world: world.answer("terminal.resized", (size, size))

    sizes = iter([(100, 30), (2, 2)])
    compute = {"terminal.size": lambda: next(sizes), "terminal.resized": lambda: SILENT}
    there = shell(ORDER, drop(1), resized(1.1, 1), resized(1.2, 2), resized(5, 3), over(6), compute=compute)
    assert there.run().status == 0
    assert [each["cols"] for each in said(there, "resize")] == [3]
    assert [each["cols"] for each in said(there, "attach")] == [100, 2]


def test_standard_input_ends_before_the_attach() -> None:
    there = shell(evolve(ORDER, person=False), keys(1, None), says(2, "attached"), relay=Relay([]))
    assert there.run().status == 0
    assert said(there, "kill") == [{"session_name": "default"}]


def test_late_terminal() -> None:
    lost, seen = says(1, "output", data="lost"), says(3, "output", data="seen")
    there = shell(ORDER, lost, (2, lambda w: w.open_terminal()), seen, over(4), stdio=False)
    assert there.run().status == 0
    assert there.screen == "seen"


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([terminal("error", message="no\x1b usable shell")], "the relay gives no terminal: no  usable shell"),
        ([{"channel": "system", "type": "error", "payload": {"message": 7}}], "the relay gives no terminal: no answer"),
        ([], "the relay gives no terminal: no answer"),
        (None, "connection lost: reset"),
    ],
)
def test_no_terminal(answers: list[Mapping[str, Any]] | None, says: str) -> None:
    assert shell(ORDER, relay=Relay(answers)).fails() == Exit(1, says)


def attach_id(world: OneShotHarness[ShellResult]) -> str:
    identity: str = next(message["id"] for message in world.said if message["type"] == "terminal.attach")
    return identity


def test_unrelated_error_is_ignored() -> None:
    late: Step = (1.5, lambda w: w.push(terminal("error", attach_id(w), message="late")))
    there = shell(ORDER, says(1, "error", "other", message="too fast"), late, over(2))
    assert there.run().status == 0


@pytest.mark.parametrize(
    "socket", [lambda message: [], Relay([]), Relay()], ids=["in the sign-in", "before the attach", "after the attach"]
)
def test_ctrl_c_ends_the_shell(socket: Any) -> None:
    assert shell(ORDER, (1, lambda w: w.feed(Stopping(2.0))), socket=socket).fails() == Exit(INTERRUPTED)


def test_one_terminal_only() -> None:
    service = ShellService(ORDER)
    book = Playbook(Engine(service, entropy=counting_entropy()))
    book >> accepted()
    book.drain_commands()
    book >> accepted(4) << [Abort(ChannelId(4))]


def test_connection_lost_before_the_attach() -> None:
    compute = {"terminal.size": lambda: SILENT, "terminal.resized": lambda: SILENT}
    there = shell(ORDER, drop(1), (2, lambda w: w.answer("terminal.size", (9, 9))), compute=compute)
    assert there.fails() == Exit(1, "connection lost: reset")


# --- reconnecting -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [SESSION, evolve(MANY, candidates=MANY.candidates[:1])])
def test_shell_reconnects(session: StoredSession) -> None:
    relay = Relay([terminal("attached")], [terminal("attached", reattach=True)])
    shown: list[str] = []
    steps = drop(1), (1.5, lambda w: shown.append(w.screen)), keys(1.5, b"lost"), keys(10, b"found"), over(11)
    there = shell(evolve(ORDER, session=session), *steps, relay=relay)
    assert there.run().status == 0
    assert there.asked == []  # no probe: there is only one route
    assert shown == [there.screen] == ["\r\n[connection lost: reset; trying again in 1 s]\r\n"]
    assert [each["data"] for each in said(there, "input")] == ["found"]


def test_pause_doubles_and_a_new_shell_is_announced() -> None:
    up = True

    def turn(on: bool, world: OneShotHarness[ShellResult]) -> None:
        nonlocal up
        up = on
        if not on:
            world.break_connections()

    steps: list[Step] = [(1, lambda w: turn(False, w)), (100, lambda w: turn(True, w)), over(140)]
    there = shell(ORDER, *steps, dial=lambda host, port: None if up else REFUSED)
    assert there.run().status == 0
    pauses = [line.rpartition(" in ")[2] for line in there.screen.split("\r\n") if "trying again" in line]
    assert pauses == ["1 s]", "2 s]", "4 s]", "8 s]", "16 s]", "30 s]", "30 s]", "30 s]"]
    assert there.screen.endswith("[the old shell is gone: this is a new one]\r\n")


def test_reconnect_over_another_candidate() -> None:
    up = [LAN]

    def leave(world: OneShotHarness[ShellResult]) -> None:
        up.clear()
        world.break_connections()

    def answer(asked: UpstreamRequest) -> Reply:
        return as_json({}) if any(asked.url.startswith(url.replace("ws", "http")) for url in up) else (503, b"")

    steps: list[Step] = [(1, leave), (5, lambda w: up.append(PUBLIC)), over(20)]
    there = shell(evolve(ORDER, session=MANY), *steps, http=answer)
    assert there.run().status == 0
    assert "[no route to the relay answers; trying again in 2 s]" in there.screen


def test_no_route_at_the_start() -> None:
    there = shell(evolve(ORDER, session=MANY), http=(503, b""))
    assert there.fails().reason.startswith("no route to the relay answers: lan ws://192.0.2.1:8767: status 503; ")


@pytest.mark.parametrize(
    ("at", "key"), [(1.5, b"\x03"), (1.5, b"\x1d"), (2.5, b"\x03")], ids=["waiting", "detaching", "connecting"]
)
def test_interrupt_while_disconnected(at: float, key: bytes) -> None:
    there = shell(ORDER, drop(1), keys(1.2, b"x"), keys(at, key), relay=Relay([terminal("attached")], []))
    assert there.fails() == Exit(INTERRUPTED)


def test_a_refused_session_is_not_tried_again() -> None:
    answers = [OK, {**OK, "type": "auth.fail", "payload": {"reason": "the session token is unknown"}}]
    relay = Relay()

    def answer(message: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        return [answers.pop(0)] if message["type"] == "auth" else relay(message)

    there = shell(ORDER, drop(1), socket=answer)
    assert there.fails().reason == "the relay refuses: the session token is unknown; pair again: svc-relay pair"


@pytest.mark.parametrize("person", [True, False])
def test_keys_are_read_while_the_relay_takes_them(person: bool) -> None:
    """Read keys while a terminal is attached; a person's also between connections, since they can end the waiting."""
    held: list[bool] = []

    def stall(world: OneShotHarness[ShellResult]) -> None:
        world.upstreams[-1].reads = False
        world.keys(Random(1).randbytes(300_000).hex().encode())  # too much even when compressed
        world.keys(b"x")

    acts: list[Callable[[OneShotHarness[ShellResult]], None]] = [
        lambda w: None,  # the attach is not answered yet
        lambda w: w.push(terminal("attached")),
        stall,
        lambda w: w.upstreams[-1].read_on(),
        lambda w: w.break_connections(),
        lambda w: w.push(terminal("attached", reattach=True)),
    ]
    steps = [step for at, act in enumerate(acts) for step in ((2 * at + 1, act), look(2 * at + 2, held))]
    there = shell(evolve(ORDER, person=person), *steps, over(20), relay=Relay([]))
    assert there.run().status == 0
    assert held == [True, False, True, False, not person, False]


def look(at: float, held: list[bool]) -> Step:
    """Return the step that records whether the keyboard is not read."""
    return at, lambda world: held.append(world.terminal.held)


# --- the screen ---------------------------------------------------------------------------------------------------


BIG = "x" * 300_000


def fill(world: OneShotHarness[ShellResult]) -> None:
    """Send more than an unread terminal accepts."""
    world.terminal.reads = False
    world.push(terminal("output", data=BIG))


def test_blocked_terminal_pauses_the_relay_for_up_to_15_minutes() -> None:
    checked: list[bool] = []
    looks: list[Step] = [(at, lambda w: checked.append(w.stalled)) for at in (900, 902)]
    there = shell(ORDER, (1, fill), looks[0], (901, lambda w: w.terminal.read_on()), looks[1], over(903))
    assert there.run().status == 0
    assert BIG in there.screen
    assert checked == [True, False]


def last(world: OneShotHarness[ShellResult]) -> None:
    """Send output that the terminal does not read, then the end of the shell."""
    world.terminal.reads = False
    world.push(terminal("output", data="bye"))
    world.push(terminal("detached", reason="eof"))


def unread(world: OneShotHarness[ShellResult]) -> None:
    """Send output that the terminal does not read, then type the escape key."""
    world.terminal.reads = False
    world.push(terminal("output", data="bye"))
    world.keys(b"\x1d")


@pytest.mark.parametrize("end", [last, unread], ids=["end of the shell", "detaching"])
def test_last_output_is_waited_for(end: Callable[[OneShotHarness[ShellResult]], None]) -> None:
    there = shell(ORDER, (1, end), (50, lambda w: w.terminal.read_on()))
    began = there.now.mono
    assert there.run().status == 0
    assert there.now.mono == began + 50


def test_interrupt_does_not_wait_for_the_last_output() -> None:
    assert shell(ORDER, (1, last), keys(2, b"\x03")).fails() == Exit(INTERRUPTED)


GONE = Exit(1, "the terminal cannot be shown any more: standard output is closed")


@pytest.mark.parametrize("before", [[], [drop(1)]], ids=["connected", "disconnected"])
def test_closed_terminal(before: list[Step]) -> None:
    assert shell(ORDER, *before, (1.5, lambda w: w.terminal.finish("gone"))).fails() == GONE


def test_terminal_reads_again_while_disconnected() -> None:
    there = shell(ORDER, (1, fill), drop(2), (2.5, lambda w: w.terminal.read_on()), over(9))
    assert there.run().status == 0


# --- one command --------------------------------------------------------------------------------------------------

EXEC = ShellRequest(session=SESSION, name="exec-1", command="ls", keyboard=False, person=False)


def nonce(world: OneShotHarness[ShellResult]) -> str:
    typed: str = said(world, "input")[0]["data"]
    return "svc" + typed.partition(" svc")[2].partition(" ")[0]


def outcome(end: str) -> list[Step]:
    return [
        (1, lambda w: w.push(terminal("output", data=f"$ echo\r\n{nonce(w)}B\nhi\n"))),
        (2, lambda w: w.push(terminal("output", data=end.replace("NONCE", nonce(w))))),
        over(3),
    ]


@pytest.mark.parametrize(("person", "shown"), [(False, "hi\n"), (True, "hi\r\n")])
@pytest.mark.parametrize("tmux", [False, True])
def test_exec(person: bool, shown: str, tmux: bool) -> None:
    order = evolve(EXEC, person=person)
    relay = Relay([terminal("attached", tmux_available=tmux)])
    there = shell(order, *outcome("NONCEE3.\n"), relay=relay)
    assert there.run() == ShellResult(3)
    assert there.screen == shown
    attach = said(there, "attach")[0]
    assert (attach["shell"], attach["login"]) == ("/bin/sh", False)
    typed, *answer = [each["data"] for each in said(there, "input")]
    assert ("tmux lock-client" in typed) is tmux
    assert answer == ([f"{nonce(there)}\n"] if tmux else [])  # once


def test_input_after_the_command_is_dropped() -> None:
    end = says(2.5, "output", data="what is echoed")
    script = [keys(1.5, b"for it"), *outcome("NONCEE3.\n"), keys(2.4, b"too late"), end]
    script.append(keys(2.6, None))
    relay = Relay([terminal("attached", tmux_available=True)])
    there = shell(evolve(EXEC, keyboard=True), *sorted(script, key=lambda each: each[0]), relay=relay)
    assert there.run() == ShellResult(3)
    assert [each["data"] for each in said(there, "input")][1:] == ["for it", f"{nonce(there)}\n"]
    assert there.screen == "hi\n"


AT_A_TERMINAL = evolve(EXEC, keyboard=True, person=True)


def begun(at: float) -> Step:
    return at, lambda w: w.push(terminal("output", data=f"{nonce(w)}B\nhi\n"))


@pytest.mark.parametrize(
    "script",
    [
        [keys(1, b"\x03")],  # the command does not run yet
        [begun(1), keys(2, b"\x03"), keys(4, b"\x03")],
        [begun(1), keys(2, b"\x03\x03")],
        [begun(1), keys(2, b"\x1d")],  # there is nothing to return to
    ],
)
def test_command_ended_by_the_user(script: list[Step]) -> None:
    there = shell(AT_A_TERMINAL, *script)
    assert there.run() == ShellResult(INTERRUPTED)
    assert said(there, "kill") == [{"session_name": "exec-1"}]
    assert said(there, "detach") == []


def test_occasional_ctrl_c_goes_to_the_command() -> None:
    last = [(at + 4, act) for at, act in outcome("NONCEE0.\n")[1:]]
    there = shell(AT_A_TERMINAL, begun(1), keys(2, b"\x03"), keys(4.1, b"\x03"), keys(5, b"x"), *last)
    assert there.run() == ShellResult(0)
    assert [each["data"] for each in said(there, "input")][1:] == ["\x03", "\x03", "x"]
    assert said(there, "kill") == []


def test_ctrl_c_after_the_command_before_the_detach() -> None:
    script = [*outcome("NONCEE3.\n")[:2], keys(3, b"\x03")]
    assert shell(AT_A_TERMINAL, *script).run() == ShellResult(3)


def test_piped_input_has_no_ctrl_c() -> None:
    there = shell(evolve(EXEC, keyboard=True), keys(0.5, b"\x03"), *outcome("NONCEE0.\n"))
    assert there.run() == ShellResult(0)


def test_stop_ends_the_command() -> None:
    def stop(world: OneShotHarness[ShellResult]) -> None:
        world.node.post(Stopping(2.0))
        world.terminal.finish("gone")  # the terminal closes, too

    there = shell(EXEC, begun(1), (2, stop))
    assert there.fails() == Exit(INTERRUPTED)
    assert said(there, "kill") == [{"session_name": "exec-1"}]


def test_exec_without_an_end() -> None:
    slow = (2.5, lambda w: setattr(w.terminal, "reads", False)), (20, lambda w: w.terminal.read())
    there = shell(EXEC, *sorted([*outcome("NONCE"), *slow], key=lambda each: each[0]))
    assert there.fails() == Exit(1, "the command ended without a word of its status: eof")
    assert (there.screen, there.clock.now) == (f"hi\n{nonce(there)}", 1020.0)


@pytest.mark.parametrize(
    ("output", "words"),
    [("", "it printed nothing"), ("Welcome\r\n\x1b[1mStart? [y/N]\x1b[0m ", "its last output was 'Start? [y/N]'")],
)
def test_a_shell_that_does_not_start_the_command(output: str, words: str) -> None:
    there = shell(EXEC, says(4, "output", data=output))
    assert there.fails() == Exit(1, f"the shell on the relay's host has not started the command: {words}")
    assert there.clock.now >= 14
    assert said(there, "kill") == [{"session_name": "exec-1"}]
    ended = shell(EXEC, says(1, "output", data=output), over(2))
    assert ended.fails() == Exit(1, f"the shell on the relay's host ended before the command: {words}")


def test_a_started_command_may_be_silent() -> None:
    last = [(at + 100, act) for at, act in outcome("NONCEE0.\n")[1:]]
    slow = [says(9, "output", data="loading"), (18, begun(1)[1])]
    assert shell(EXEC, *slow, *last).run() == ShellResult(0)


@pytest.mark.parametrize(
    ("how", "loss"), [(drop(1), "reset"), (says(1, "detached", reason="server shutdown"), "server shutdown")]
)
def test_exec_does_not_come_back(how: Step, loss: str) -> None:
    there = shell(EXEC, how)
    assert there.fails() == Exit(1, f"the connection was lost while the command ran: connection lost: {loss}")
    assert len(said(there, "attach")) == 1


def test_too_long_command_makes_no_connection() -> None:
    there = shell(evolve(EXEC, command="x" * 4000))
    assert there.fails().code == 2
    assert there.said == []
