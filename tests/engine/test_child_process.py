from typing import Any

from svc_proto import commands, facts
from svc_proto.commands import Abort, CloseWrite, ResizeTerminal, Send, Signal, SignalName, Spawn, Spawned, TerminalSize
from svc_proto.engine.child_process import INHERITED, ChildProcess, CommandResult, run_command, spawn
from tests.engine.test_flow import Owner
from tests.engine.toy_service import ToyPlaybook, open_book

ONE, THREE, OP = facts.ChannelId(1), facts.ChannelId(3), facts.OperationId(1)
TICKETED = facts.OperationId(2)  # `run_command` uses the first ticket itself


class Output:
    """A `ChildHandler` that records its calls."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def on_output(self, data: bytes) -> None:
        self.told.append(data)

    def on_exit(self, status: int | None) -> None:
        self.told.append(status)


def running(errors: Output | None = None) -> tuple[ToyPlaybook, ChildProcess, Output]:
    book, output = open_book(), Output()
    owner = Owner(book)
    owner.spawn(spawn(book.engine, ("sh",), output, errors=errors))
    book >> facts.Done(OP, Spawned(77)) << []
    (child,) = owner.told
    assert isinstance(child, ChildProcess)
    assert child.pid == 77
    return book, child, output


def of_the_child(book: ToyPlaybook) -> list[Any]:
    """Return the commands of the last step for the child's channel."""
    return [command for command in book.drain_commands() if getattr(command, "ch", None) == ONE]


def commanded(said: bytes = b"") -> tuple[ToyPlaybook, list[Any]]:
    book = open_book()
    owner = Owner(book)
    book.act(lambda: owner.spawn(run_command(book.engine, ("ls",), said=said))) << [
        Spawn(TICKETED, ONE, ("ls",), inherited_env=INHERITED)
    ]
    return book, owner.told


def test_the_life_of_a_child() -> None:
    book, child, output = running()
    book.act(lambda: child.write(b"in")) << [Send(ONE, b"in")]
    book.act(lambda: child.resize(TerminalSize(80, 24))) << [ResizeTerminal(ONE, TerminalSize(80, 24))]
    book.act(child.close_input) << [CloseWrite(ONE)]
    book >> facts.Received(ONE, b"out") << []
    book >> facts.ReadClosed(ONE) << []
    book >> facts.Closed(ONE, exit=3) << []
    assert output.told == [b"out", 3]
    errors = Output()  # standard error is a separate channel
    book, _, output = running(errors)
    book >> facts.Received(THREE, b"oops") << []
    book >> facts.Closed(THREE) << []
    assert (output.told, errors.told) == ([], [b"oops", None])


def test_terminate_signals_and_then_kills() -> None:
    book, child, output = running()
    book.act(child.terminate) << [Signal(ONE, SignalName.HANGUP)]
    book >> facts.Received(ONE, b"last words") << []
    book.after(1.0) << [Signal(ONE, SignalName.KILL), Abort(ONE)]
    book >> facts.Closed(ONE, exit=-9) << []
    assert output.told == []
    book, child, _ = running()
    book.act(lambda: child.set_read_paused(True)) << [commands.PauseReading(ONE)]
    book.act(child.terminate) << [commands.ResumeReading(ONE), Signal(ONE, SignalName.HANGUP)]  # so that it can exit
    book >> facts.Closed(ONE, exit=-1) << []  # in time: it is not killed
    book.after(5.0) << []
    book.act(child.terminate) << []


def test_unread_input_is_counted_without_a_deadline() -> None:
    book, child, output = running()
    book.act(lambda: child.write(b"x" * 1_000_000)) << [Send(ONE, b"x" * 1_000_000)]
    book.after(3600.0)
    assert of_the_child(book) == []
    book >> facts.Received(ONE, b"still listened to") << []
    book >> facts.Sent(ONE, 400_000) << []
    assert child.credit.unsent == 600_000
    book.after(3600.0)
    assert of_the_child(book) == []
    assert output.told == [b"still listened to"]


def test_detach_aborts_the_channel_silently() -> None:
    book, child, output = running()
    book.act(child.detach) << [Abort(ONE)]
    book >> facts.Closed(ONE) << []
    assert output.told == []


def test_a_child_with_stays_outlives_the_stop() -> None:
    book, child, output = running()
    child.stays = True
    book >> facts.Stopping(10.0)
    assert of_the_child(book) == []
    book.act(lambda: child.signal(SignalName.TERMINATE)) << [Signal(ONE, SignalName.TERMINATE)]
    (book >> facts.Closed(ONE, "exited", 0)).drain_commands()
    assert output.told == [0]


def test_stopping_detaches_running_children() -> None:
    errors = Output()
    book, _, output = running(errors)
    book >> facts.Stopping(9.0)
    assert Abort(ONE) in book.drain_commands()
    assert Abort(THREE) not in book.drain_commands()
    book >> facts.Closed(THREE) << []
    book >> facts.Closed(ONE) << []
    assert (output.told, errors.told) == ([None], [None])
    book, child, _ = running()
    child.terminate(SignalName.TERMINATE, patience=2.0)  # which stopping keeps
    book >> facts.Stopping(9.0)
    assert Abort(ONE) not in book.drain_commands()
    book.after(2.0)
    assert of_the_child(book) == [Signal(ONE, SignalName.KILL), Abort(ONE)]


def test_run_command_collects_output_and_exit_status() -> None:
    book, told = commanded(b"in")
    book >> facts.Done(TICKETED, Spawned(5)) << [Send(ONE, b"in"), CloseWrite(ONE)]
    book >> facts.Received(ONE, b"a") << []
    book >> facts.Received(ONE, b"b") << []
    book >> facts.Closed(ONE, exit=0) << []
    assert told == [CommandResult(0, b"ab")]
    book, told = commanded()
    book >> facts.Failed(TICKETED, facts.Failure(facts.FailureKind.NOT_FOUND)) << []
    assert told == [facts.Failure(facts.FailureKind.NOT_FOUND)]
    book, told = commanded()
    book >> facts.Done(TICKETED, Spawned(5)) << [CloseWrite(ONE)]
    book.after(5.0) << [Signal(ONE, SignalName.KILL), Abort(ONE)]
    assert told[0].kind is facts.FailureKind.TIMED_OUT


def test_environment_variables_that_children_inherit() -> None:
    # decision 9: a list, since ours holds keys and passwords
    assert " ".join(sorted(INHERITED)) == (
        "ALSA_* COLORTERM DBUS_SESSION_BUS_ADDRESS DISPLAY EDITOR HERMES_HOME HOME HOSTNAME LANG LANGUAGE LC_* "
        "LD_LIBRARY_PATH LOGNAME MAIL MANPATH PAGER PATH PIPEWIRE_* PULSE_* PWD PYTHON* SHELL SSH_AUTH_SOCK "
        "SSL_CERT_DIR SSL_CERT_FILE SVC_HOME TERM TERMINFO TERMINFO_DIRS TMPDIR TMUX_TMPDIR TZ USER VIRTUAL_ENV "
        "VISUAL WAYLAND_DISPLAY XAUTHORITY XDG_*"
    )
