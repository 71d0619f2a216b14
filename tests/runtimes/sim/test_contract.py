"""Tests of the simulator's contract: steps that break a rule, and permitted steps."""

from typing import Any

import pytest

from runtimes.sim.contract import Contract, ContractError
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Connect,
    Connected,
    CreateBlob,
    DeleteBlob,
    Exit,
    FinishBlob,
    Level,
    Log,
    Notify,
    OpenedFile,
    OpenFile,
    PauseReading,
    ReadFile,
    Ready,
    ReleaseFile,
    ResizeTerminal,
    Send,
    SendFile,
    Signal,
    SignalName,
    Spawn,
    Spawned,
    TerminalSize,
    WriteBlob,
)
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)

HERE = Address("10.0.0.1", 80)
IN, OUT = ChannelId(2), ChannelId(1)
ONE, TWO = OperationId(1), OperationId(2)
FAILURE = Failure(FailureKind.NOT_FOUND)
ACCEPTED = Accepted(IN, HERE, HERE)
CONNECT = Connect(ONE, OUT, "h", 80)
OPENED = [OpenFile(ONE, "/a"), Done(ONE, OpenedFile(5, "/a", 1, 0.0))]
SENDING = [ACCEPTED, *OPENED, SendFile(TWO, IN, 5, 0, 1)]
ERR = ChannelId(3)
SPAWN = [Spawn(ONE, OUT, ("sh",), stderr=ERR), Done(ONE, Spawned(7))]
SHELL = [Spawn(ONE, OUT, ("sh",), terminal=TerminalSize(80, 24)), Done(ONE, Spawned(7))]
BLOB = [CreateBlob(ONE), Done(ONE, 6)]


def play(*steps: Command | Fact | None) -> None:
    contract = Contract("toy")
    contract.fact(Started())
    for step in steps:
        if step is None or isinstance(step, Fact):
            contract.fact(step)
        else:
            contract.command(step)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([Started()], "comes once"),
        ([Exit(0), None], "a fact after Exit"),
        ([Exit(0), Exit(0)], "Exit was given before"),
        ([Ready(), Ready()], "Ready was given before"),
        ([Received(IN, b"x")], "not open"),
        ([ACCEPTED, Received(IN, b"")], "without data"),
        ([ACCEPTED, ReadClosed(IN), Received(IN, b"x")], "data after ReadClosed"),
        ([ACCEPTED, ReadClosed(IN), ReadClosed(IN)], "second ReadClosed"),
        ([ACCEPTED, Send(IN, b"ab"), Sent(IN, 3)], "2 bytes were unsent"),
        ([ACCEPTED, Send(IN, b"ab"), Sent(IN, 0)], "2 bytes were unsent"),
        ([ACCEPTED, Closed(IN), Closed(IN)], "a fact after Closed"),
        ([ACCEPTED, ACCEPTED], "used twice"),
        ([ACCEPTED, Closed(IN), ACCEPTED], "used twice"),
        ([Accepted(OUT, HERE, HERE)], "odd"),
        ([Connect(ONE, IN, "h", 80)], "odd"),
        ([Connect(ONE, ChannelId(-1), "h", 80)], "negative"),
        ([CONNECT, Send(OUT, b"x")], "not open yet"),
        ([CONNECT, Closed(OUT)], "not open"),
        ([CONNECT, Failed(ONE, FAILURE), Send(OUT, b"x")], "the channel is closed"),
        ([CONNECT, Failed(ONE, FAILURE), Connect(TWO, OUT, "h", 80)], "channel number used twice"),
        ([Send(IN, b"x")], "no such channel"),
        ([Abort(IN)], "no such channel"),
        ([ACCEPTED, CloseWrite(IN), Send(IN, b"x")], "after CloseWrite"),
        ([ACCEPTED, CloseWrite(IN), CloseWrite(IN)], "after CloseWrite"),
        ([ACCEPTED, Closed(IN), Send(IN, b"x")], "the channel is closed"),
        ([*SENDING, Send(IN, b"x")], "SendFile is under way"),
        ([*SENDING, Closed(IN)], "before the answer to SendFile"),
        ([Done(ONE, 1)], "an answer to nothing"),
        ([*BLOB, Done(ONE, 6)], "a second answer"),
        ([CreateBlob(ONE), Done(ONE, "x")], "not an answer to CreateBlob"),
        ([CreateBlob(ONE), CreateBlob(ONE)], "operation number used twice"),
        ([Cancel(ONE)], "no such operation"),
        ([*BLOB, Cancel(ONE)], "has been answered"),
        ([ReadFile(ONE, 5, 0, 1)], "no such handle"),
        ([*OPENED, ReleaseFile(5), ReleaseFile(5)], "no such handle"),
        ([*OPENED, WriteBlob(TWO, 5, b"x")], "no such handle"),
        ([Spawn(ONE, IN, ("sh",))], "odd"),
        ([Spawn(ONE, OUT, ("sh",), stderr=OUT)], "used twice"),
        ([Spawn(ONE, OUT, ("sh",), terminal=TerminalSize(0, 1))], "one column"),
        ([Spawn(ONE, OUT, ("sh",), stderr=ERR), Received(ERR, b"x")], "not open"),
        ([*SPAWN, Send(ERR, b"x")], "for reading"),
        ([*SPAWN, CloseWrite(ERR)], "for reading"),
        ([*SPAWN, Closed(OUT, "", 0)], "before that of its error output"),
        ([*SPAWN, Closed(ERR, "", 0)], "what is no child"),
        ([ACCEPTED, Closed(IN, "", 0)], "what is no child"),
        ([ACCEPTED, Signal(IN, SignalName.KILL)], "is no child"),
        ([*SPAWN, Signal(ERR, SignalName.KILL)], "is no child"),
        ([*SPAWN, ResizeTerminal(OUT, TerminalSize(1, 1))], "no terminal"),
        ([*SHELL, ResizeTerminal(OUT, TerminalSize(1, 0))], "one column"),
        ([SPAWN[0], Failed(ONE, FAILURE), Send(OUT, b"x")], "the channel is closed"),
        ([*BLOB, FinishBlob(TWO, 6), Done(TWO, "/p"), WriteBlob(OperationId(3), 6, b"")], "no such handle"),
    ],
)
def test_breaches(steps: list[Command | Fact | None], why: str) -> None:
    with pytest.raises(ContractError, match=why):
        play(*steps)


@pytest.mark.parametrize(
    "steps",
    [
        [None, Stopping(1.0), Ready(), Log(Level.INFO, "x", {}), Notify("x", {}), Exit(0)],
        [ACCEPTED, Send(IN, b"ab"), Sent(IN, 1), Sent(IN, 1), Received(IN, b"x"), ReadClosed(IN), Closed(IN)],
        [ACCEPTED, Closed(IN), Abort(IN), PauseReading(IN)],
        [ACCEPTED, Abort(IN), Send(IN, b"x"), CloseWrite(IN), Abort(IN), Closed(IN)],
        [CONNECT, Done(ONE, Connected(HERE)), Send(OUT, b"x"), Sent(OUT, 1)],
        [CONNECT, Cancel(ONE), Failed(ONE, FAILURE)],
        [*SPAWN, Send(OUT, b"x"), Received(ERR, b"x"), Closed(ERR), Closed(OUT, "", 0), Signal(OUT, SignalName.KILL)],
        [*SHELL, ResizeTerminal(OUT, TerminalSize(1, 1)), CloseWrite(OUT), Closed(OUT, "", -9), DeleteBlob("/x")],
        [*SENDING, Done(TWO, 1), Send(IN, b"x"), Closed(IN)],
        [*BLOB, FinishBlob(TWO, 6), Failed(TWO, FAILURE), FinishBlob(OperationId(3), 6)],
        [OpenFile(ONE, "/a"), Failed(ONE, FAILURE), *[CreateBlob(TWO), Failed(TWO, FAILURE)]],
    ],
)
def test_permitted_steps(steps: list[Command | Fact | None]) -> None:
    play(*steps)


def test_started_comes_first() -> None:
    with pytest.raises(ContractError, match="first fact"):
        Contract("toy").fact(None)


def test_nonsense_is_not_a_command() -> None:
    nonsense: Any = "nonsense"
    with pytest.raises(ContractError, match="toy: 'nonsense': not a command"):
        Contract("toy").command(nonsense)
