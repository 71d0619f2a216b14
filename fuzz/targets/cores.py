"""Whole cores: a relay that is sent bytes, and scripts of anything that may happen to a relay or an API."""

from __future__ import annotations

from fuzz.cores.script import run_core_script
from fuzz.targets.common import check_chunking_invariance
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Level, Log, Operation, PauseReading, Query, ResumeReading, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Address, ChannelId, Done, Failed, Failure, FailureKind, Received, Started
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import LoadSessions

NOW = Moment(1000.0, 1_800_000_000.0)
CH = ChannelId(2)
PEER = Address("127.0.0.1", 40_000)


def relay(data: bytes) -> None:
    """A relay that is sent bytes: never an exception, never a command after `Exit`, the same for any chunking."""
    check_chunking_invariance(_relay, data)


def core(data: bytes) -> None:
    """A script of deeds, see `fuzz.cores`: the rules of its driver hold."""
    run_core_script(data)


def _relay(pieces: list[bytes]) -> list[object]:
    engine = Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=bytes, log_level=Level.ERROR)
    said = _answered(engine, engine.handle(Started(), NOW))
    orders = engine.handle(Accepted(CH, PEER, PEER), NOW)
    for piece in filter(None, pieces):  # what is received is never empty
        orders += engine.handle(Received(CH, piece), NOW)
    said += _answered(engine, orders)  # only now, or the pieces would decide what comes before an answer
    assert not any(isinstance(command, Log | Exit) for command in said), f"a bug was logged: {said}"
    sent = b"".join(command.data for command in said if isinstance(command, Send))
    # How often reading pauses does depend on the chunking.
    quiet = (Send, Operation, PauseReading, ResumeReading)
    return [sent, *(type(command).__name__ for command in said if not isinstance(command, quiet))]


def _answered(engine: Engine, commands: list[Command]) -> list[Command]:
    """Carry out operations at once: the store is empty and there are no files."""
    said: list[Command] = []
    while commands:
        said += commands
        answers = [_answer(command) for command in commands if isinstance(command, Operation)]
        commands = [command for answer in answers for command in engine.handle(answer, NOW)]
    return said


def _answer(order: Operation[object]) -> Done | Failed:
    if isinstance(order, Query):
        return Done(order.op, () if isinstance(order.request, LoadSessions) else None)
    return Failed(order.op, Failure(FailureKind.NOT_FOUND))
