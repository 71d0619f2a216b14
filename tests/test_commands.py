"""Commands: values; an operation has the type of its answer and the command that undoes a late answer."""

import pytest

from svc_proto.commands import (
    Abort,
    AppendFile,
    Command,
    Compute,
    Connect,
    Connected,
    CreateBlob,
    DiscardBlob,
    OpenedFile,
    OpenFile,
    Operation,
    Query,
    ReadFile,
    ReleaseFile,
    Spawn,
    Spawned,
    WriteConfig,
)
from svc_proto.facts import Address, ChannelId, OperationId
from svc_proto.store_requests import LoadSessions, SaveSession

OP, CH = OperationId(7), ChannelId(1)


@pytest.mark.parametrize(
    ("operation", "right", "wrong"),
    [
        (ReadFile(OP, 1, 0, 5), b"bytes", "text"),
        (OpenFile(OP, "/tmp/x"), OpenedFile(1, "/tmp/x", 5, 0.0), 1),
        (Connect(OP, CH, "h", 1), Connected(Address("h", 1)), None),
        (WriteConfig(OP, "a", "b"), None, "a"),
        (AppendFile(OP, "a", b"b"), 1, None),
        (Compute(OP, "any"), {"any": "thing"}, None),
        (Query(OP, LoadSessions()), (), []),
        (Query(OP, SaveSession("hash", {})), None, 1),
    ],
)
def test_an_operation_has_the_type_of_its_answer(operation: Operation[object], right: object, wrong: object) -> None:
    assert operation.accepts(right)
    assert not operation.accepts(wrong) or operation.answer is object


@pytest.mark.parametrize(
    ("operation", "result", "undone"),
    [
        (OpenFile(OP, "/tmp/x"), OpenedFile(9, "/tmp/x", 5, 0.0), ReleaseFile(9)),
        (CreateBlob(OP), 9, DiscardBlob(9)),
        (Connect(OP, CH, "h", 1), Connected(Address("h", 1)), Abort(CH)),
        (Spawn(OP, CH, ("true",)), Spawned(1), Abort(CH)),
        (ReadFile(OP, 1, 0, 5), b"", None),
    ],
)
def test_a_late_answer_is_given_back(operation: Operation[object], result: object, undone: Command | None) -> None:
    assert operation.undo(result) == undone
