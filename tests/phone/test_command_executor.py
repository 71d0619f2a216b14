from typing import Any

import pytest

from svc_proto.commands import Exit, Notify
from svc_proto.facts import Closed, Stopping
from svc_proto.phone import command_executor
from svc_proto.phone.backend import CommandReply, DelayedReply, PhoneCommand
from tests.phone.harness import PhoneHarness
from tests.phone.safety.scripted_backend import OK
from tests.support.playbook import SendMatcher


def test_a_reply(rig: PhoneHarness) -> None:
    rig.backend.answers["/tap"] = CommandReply(400, {"error": "x is missing"})
    rig.command("/tap", body={"y": 5})
    rig.book << [Notify("performed", {"method": "POST", "path": "/tap", "status": 400}), SendMatcher(rig.end.ch)]
    assert rig.responses() == [("r1", 400, {"error": "x is missing"})]
    assert rig.backend.asked == [PhoneCommand("POST", "/tap", {"y": 5}, "r1")]


@pytest.mark.parametrize(
    ("payload", "body"),
    [
        ({"body": {"a": 1}, "params": {"b": "2"}}, {"a": 1}),
        ({"body": {}, "params": {"b": "2"}}, {}),
        ({"body": None, "params": {"b": "2"}}, {"b": "2"}),
        ({"body": [1], "params": "text"}, {}),
    ],
)
def test_where_the_arguments_are(rig: PhoneHarness, payload: dict[str, Any], body: dict[str, object]) -> None:
    rig.command("/tap", **payload)
    assert rig.responses() == [("r1", 200, {"ok": True})]
    assert rig.backend.asked[0].body == body


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"method": "GET", "path": "/ping"},
        {"request_id": 7, "method": "GET", "path": "/ping"},
        {"request_id": "", "method": "GET", "path": "/ping"},
        {"request_id": "r" * 201, "method": "GET", "path": "/ping"},
        {"request_id": "r", "method": None, "path": "/ping"},
        {"request_id": "r", "method": "GET"},
    ],
)
def test_malformed_commands_are_ignored(rig: PhoneHarness, payload: object) -> None:
    rig.message("bridge", "bridge.command", payload)
    rig.book << []
    assert rig.backend.asked == []


def test_backend_bug_fails_one_command(rig: PhoneHarness) -> None:
    rig.backend.answers["/tap"] = RuntimeError("secret")
    rig.command("/tap")
    assert rig.responses() == [("r1", 500, {"error": "internal error, reference bug-1"})]
    assert "secret" not in repr(rig.book.logs)
    rig.command("/ping", "r" * 200)
    assert rig.responses() == [("r" * 200, 200, {"ok": True})]


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_non_json_result(rig: PhoneHarness, value: object) -> None:
    rig.book.logs.bugs = True
    rig.backend.answers["/screen"] = CommandReply(200, {"value": value})
    rig.command("/screen")
    assert rig.responses() == [("r1", 500, {"error": "internal error, reference bug-1"})]
    assert rig.new_notifications() == [Notify("performed", {"method": "POST", "path": "/screen", "status": 500})]


def test_delayed_replies_hold_up_nothing_and_are_limited(rig: PhoneHarness) -> None:
    rig.backend.answers["/wait"] = DelayedReply(2.0, OK)
    for number in range(64):
        rig.command("/wait", f"r{number}")
        rig.book << []
    rig.command("/wait", "late")
    assert rig.responses() == [("late", 503, {"error": "too many commands at once"})]
    rig.book.after(1.9) << []
    rig.book.after(0.1)
    assert rig.responses() == [(f"r{number}", 200, {"ok": True}) for number in range(64)]
    rig.command("/wait", "one")
    rig.command("/ping", "two")
    assert rig.responses() == [("two", 200, {"ok": True})]
    rig.book.after(2.0)
    assert rig.responses() == [("one", 200, {"ok": True})]
    rig.book.after(5.0) << []


def test_lost_socket_ends_pending_commands(rig: PhoneHarness) -> None:
    rig.backend.answers["/wait"] = DelayedReply(0.5, OK)
    rig.command("/wait")
    rig.vanish()
    (offline,) = rig.book.drain_commands()
    assert isinstance(offline, Notify)
    rig.book.after(0.9) << []


def test_stop_ends_pending_commands(rig: PhoneHarness) -> None:
    rig.backend.answers["/wait"] = DelayedReply(5.0, OK)
    rig.command("/wait")
    rig.book >> Stopping(10.0) << [SendMatcher(rig.end.ch)]
    rig.book >> Closed(rig.end.ch) << [Exit(0)]


def test_remembered_request_ids_are_limited(rig: PhoneHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_executor, "MAX_REMEMBERED_IDS", 2)
    told: list[str] = []
    for number in (1, 2, 1, 2, 3, 1, 3):
        rig.command("/ping", str(number))
        told += [request_id for request_id, _, _ in rig.responses()]
    assert told == ["1", "2", "3", "1"]
    assert [log.event for log in rig.book.logs if log.event == "repeated command"] == ["repeated command"] * 3
