"""Commands: values; an operation has the type of its answer and the command that undoes a late answer."""

from __future__ import annotations

import logging

import attrs
import pytest

from svc_proto import commands
from svc_proto.commands import (
    Abort,
    AppendFile,
    Command,
    Compute,
    Connect,
    Connected,
    CreateBlob,
    DiscardBlob,
    Level,
    OpenedFile,
    OpenFile,
    Operation,
    Query,
    ReadFile,
    ReleaseFile,
    SignalName,
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


def test_every_command_is_frozen_and_comparable() -> None:
    public = [getattr(commands, name) for name in commands.__all__]
    for kind in (each for each in public if isinstance(each, type) and attrs.has(each)):
        assert kind.__setattr__ is not object.__setattr__, kind
        assert kind.__eq__ is not object.__eq__, kind


def test_levels_are_those_of_the_standard_library() -> None:
    assert {level.name: int(level) for level in Level} == {
        name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR")
    }


def test_signals_have_their_names() -> None:
    assert [each.value for each in SignalName] == ["SIGHUP", "SIGINT", "SIGTERM", "SIGKILL"]


def test_defaults_of_commands() -> None:
    found = {
        kind.__name__: {each.name: each.default for each in attrs.fields(kind) if each.default is not attrs.NOTHING}
        for kind in vars(commands).values()
        if isinstance(kind, type) and attrs.has(kind)
    }
    assert {name: defaults for name, defaults in found.items() if defaults} == {
        "Exit": {"reason": ""},
        "Send": {"low_priority": False},
        "Connected": {"alpn": None},
        "Connect": {"tls": False, "alpn": ("http/1.1",)},
        "Spawn": {"env": (), "cwd": None, "terminal": None, "stderr": None, "inherited_env": (), "detached": False},
        "OpenedFile": {"regular": True},
        "CreateBlob": {"suffix": "", "min_free_bytes": 0},
        "AppendFile": {"head": b""},
        "SweepFolder": {"prefix": ""},
        "Compute": {"args": ()},
    }
