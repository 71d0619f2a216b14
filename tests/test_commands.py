"""Commands: values; an operation has the type of its answer and the command that undoes a late answer."""

import pytest

from svc_proto import commands
from svc_proto.facts import Address, ChannelId, OperationId
from svc_proto.store_requests import LoadSessions, SaveSession

OP, CH = OperationId(7), ChannelId(1)


@pytest.mark.parametrize(
    ("operation", "right", "wrong"),
    [
        (commands.ReadFile(OP, 1, 0, 5), b"bytes", "text"),
        (commands.OpenFile(OP, "/tmp/x"), commands.OpenedFile(1, "/tmp/x", 5, 0.0), 1),
        (commands.Connect(OP, CH, "h", 1), commands.Connected(Address("h", 1)), None),
        (commands.WriteConfig(OP, "a", "b"), None, "a"),
        (commands.AppendFile(OP, "a", b"b"), 1, None),
        (commands.Compute(OP, "any"), {"any": "thing"}, None),
        (commands.Query(OP, LoadSessions()), (), []),
        (commands.Query(OP, SaveSession("hash", {})), None, 1),
    ],
)
def test_an_operation_has_the_type_of_its_answer(
    operation: commands.Operation[object], right: object, wrong: object
) -> None:
    assert operation.accepts(right)
    assert not operation.accepts(wrong) or operation.answer is object


@pytest.mark.parametrize(
    ("operation", "result", "undone"),
    [
        (commands.OpenFile(OP, "/tmp/x"), commands.OpenedFile(9, "/tmp/x", 5, 0.0), commands.ReleaseFile(9)),
        (commands.CreateBlob(OP), 9, commands.DiscardBlob(9)),
        (commands.Connect(OP, CH, "h", 1), commands.Connected(Address("h", 1)), commands.Abort(CH)),
        (commands.Spawn(OP, CH, ("true",)), commands.Spawned(1), commands.Abort(CH)),
        (commands.ReadFile(OP, 1, 0, 5), b"", None),
    ],
)
def test_a_late_answer_is_given_back(
    operation: commands.Operation[object], result: object, undone: commands.Command | None
) -> None:
    assert operation.undo(result) == undone
