from __future__ import annotations

from svc_proto.commands import Cancel, Command, Connect, Connected, Exit, Ready
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.errand import Errand
from svc_proto.engine.flow import Flow
from svc_proto.facts import (
    Address,
    ChannelId,
    Done,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    Received,
    Started,
    Stopping,
)
from tests.playbook import Playbook, accepted, counting_entropy

ONE, OP = ChannelId(1), OperationId(1)
PEER = Connected(Address("127.0.0.1", 80))


def plan(engine: Engine) -> Flow[int]:
    answer = yield from fetch(engine, "GET", "http://127.0.0.1/")
    if isinstance(answer, Fetched):
        raise RuntimeError("a secret")
    return 4


def setting_out() -> Playbook:
    book = Playbook(Engine(Errand(plan), entropy=counting_entropy()))
    book >> Started() << [Ready(), Connect(OP, ONE, "127.0.0.1", 80)]
    return book


def test_the_result_is_the_exit_code() -> None:
    book = setting_out()
    book >> Failed(OP, Failure(FailureKind.TLS)) << [Exit(4)]


def test_a_bug_is_70() -> None:
    book = setting_out()
    book >> Done(OP, PEER)
    book.take()
    book >> Received(ONE, b"HTTP/1.1 204 No Content\r\n\r\n")
    last: Command = book.take()[-1]
    assert last == Exit(70, "internal error, reference bug-1")


def test_stopped() -> None:
    book = setting_out()
    book >> Stopping(5.0) << [Cancel(OP), Exit(1, "stopped")]


def test_nobody_is_let_in() -> None:
    book = setting_out()
    book >> accepted()
    assert len(book.take()) == 1
