"""Fuzz targets of whole cores: a relay that receives bytes, and scripts of any facts for a relay or an API."""

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
    """Check a relay that receives bytes: no exception, logged error or `Exit`; the chunking changes no sent byte."""
    check_chunking_invariance(_relay, data)


def core(data: bytes) -> None:
    """Check a script of actions (`fuzz.cores`) with the rules of its driver."""
    run_core_script(data)


def _relay(pieces: list[bytes]) -> list[object]:
    engine = Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=bytes, log_level=Level.ERROR)
    said = _answered(engine, engine.handle(Started(), NOW))
    orders = engine.handle(Accepted(CH, PEER, PEER), NOW)
    for piece in filter(None, pieces):  # a `Received` fact is never empty
        orders += engine.handle(Received(CH, piece), NOW)
    said += _answered(engine, orders)  # answered last, so that the chunking does not influence the order
    assert not any(isinstance(command, Log | Exit) for command in said), f"a bug was logged: {said}"
    sent = b"".join(command.data for command in said if isinstance(command, Send))
    # The number of reading pauses depends on the chunking.
    quiet = (Send, Operation, PauseReading, ResumeReading)
    return [sent, *(type(command).__name__ for command in said if not isinstance(command, quiet))]


def _answered(engine: Engine, commands: list[Command]) -> list[Command]:
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
