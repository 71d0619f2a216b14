import json
from collections.abc import Callable

import pytest

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.machines.bridge_commands import (
    BRIDGE_TABLE,
    MAX_PARAMS,
    BridgeCommands,
    BridgeTrigger,
    CommandOutcome,
    Decision,
    parse_limit,
    phone_outcome,
)
from tests.machines.fixed_inputs import at
from tests.machines.specified_tables import check_table

# Wire bridge 4.3 "Decision derivation": every row begins at pending, and transitions are one-way from there.
ROWS = [
    ("pending", (BridgeTrigger.POLICY_REFUSAL,), "blocked"),  # 1
    ("pending", (BridgeTrigger.CONFIRMATION,), "confirmed"),  # 2
    ("pending", (BridgeTrigger.FAILURE,), "error"),  # 3 integer status >= 400
    ("pending", (BridgeTrigger.SUCCESS,), "executed"),  # 4 integer status < 400
    ("pending", (BridgeTrigger.NO_STATUS,), "pending"),  # 5 no integer status: stays pending
    ("pending", (BridgeTrigger.THIRTY_SECONDS,), "timeout"),
    ("pending", (BridgeTrigger.SEND_FAILED, BridgeTrigger.PHONE_LOST), "error"),
]
PHONE = 2  # a socket number


def begin(
    commands: BridgeCommands,
    name: str = "r1",
    *,
    socket: int = PHONE,
    when: float = 0.0,
    on_outcome: Callable[[CommandOutcome], object] = repr,
) -> None:
    commands.begin(
        name, socket=socket, method="POST", path="/tap", params={}, body={"x": 3}, now=at(when), on_outcome=on_outcome
    )


def made_by_relay(outcome: CommandOutcome | None) -> tuple[int, object]:
    assert outcome is not None
    assert isinstance(outcome.body, dict)
    assert list(outcome.body) == ["ok", "error", "code"]
    assert outcome.body["ok"] is False
    return outcome.status, outcome.body["code"]


def test_table_matches_the_documents() -> None:
    check_table(BRIDGE_TABLE, Decision, BridgeTrigger, ROWS)


def test_a_command_and_its_answer() -> None:
    commands = BridgeCommands()
    outcomes: list[CommandOutcome] = []
    command = commands.begin(
        "r1",
        socket=PHONE,
        method="POST",
        path="/open_app",
        params={"q": "1"},
        body={"package": "com.example.mail", "Token": {"a": 1}},
        now=Moment(10.0, 1_795_310_560.5),
        device_id="a91f",
        device_name="Pixel 7a",
        alias_used="pixel",
        asked_by="Agent on this host",
        on_outcome=outcomes.append,
    )
    assert (command.request_id, command.socket, command.deadline) == ("r1", PHONE, 40.0)
    assert (commands.pending_count, commands.next_deadline()) == (1, 40.0)
    payload = {"request_id": "r1", "status": 200, "result": {"ok": True, "token": "x", "name": "Ä\n"}}
    outcome = commands.answer("r1", PHONE, payload, at(11))
    assert outcome == CommandOutcome(200, {"ok": True, "token": "x", "name": "Ä\n"})
    assert outcomes == [outcome]
    assert (commands.pending_count, commands.next_deadline()) == (0, None)
    record = {
        "request_id": "r1", "method": "POST", "path": "/open_app",
        "params": {"q": "1", "package": "com.example.mail", "Token": "[redacted]"}, "sent_at": 1_795_310_560_500.0,
        "response_status": 200, "result_summary": '{"ok":true,"token":"[redacted]","name":"\\u00c4\\n"}',
        "error": None, "decision": "executed", "device_id": "a91f", "device_name": "Pixel 7a", "alias_used": "pixel",
        "asked_by": "Agent on this host",
    }  # fmt: skip
    assert commands.records() == [record]
    assert list(commands.records()[0]) == list(record)


def test_commands_without_an_answer_end_after_thirty_seconds() -> None:
    commands = BridgeCommands()
    begin(commands, "r1")
    begin(commands, "r2", when=1)
    assert commands.expire_due(at(29.999)) == []
    assert commands.answer("r1", PHONE, {"status": 200}, at(30)) is None  # too late
    ((name, outcome),) = commands.expire_due(at(30))
    assert (name, made_by_relay(outcome)) == ("r1", (504, "phone_timeout"))
    assert commands.records()[1]["decision"] == "timeout"
    assert commands.records()[1]["error"] == "the phone did not answer within 30 seconds"
    assert commands.answer("r1", PHONE, {"status": 200}, at(30.1)) is None
    assert commands.records()[1]["decision"] == "timeout"
    assert made_by_relay(commands.timeout("r2")) == (504, "phone_timeout")
    assert commands.timeout("r2") is None
    commands = BridgeCommands(cap=2)
    outcomes: list[object] = []

    def again(outcome: CommandOutcome) -> None:
        outcomes.append(made_by_relay(outcome))
        begin(commands, f"again-{len(outcomes)}", when=40)

    begin(commands, "r1", on_outcome=again)
    begin(commands, "r2", on_outcome=again)
    assert [name for name, _ in commands.expire_due(at(40))] == ["r1", "r2"]
    assert outcomes == [(504, "phone_timeout")] * 2
    assert commands.pending_count == 2


def test_commands_end_with_a_failed_send_or_a_lost_socket_and_have_a_cap() -> None:
    commands = BridgeCommands()
    begin(commands, "r1", on_outcome=lambda outcome: commands.socket_lost(PHONE))  # has no effect: all are complete
    begin(commands, "r2", socket=4)
    begin(commands, "r3")
    lost = commands.socket_lost(PHONE)
    assert [(name, made_by_relay(outcome)) for name, outcome in lost] == [
        ("r1", (502, "phone_disconnected")),
        ("r3", (502, "phone_disconnected")),
    ]
    assert commands.socket_lost(PHONE) == []
    assert [record["decision"] for record in commands.records()] == ["error", "pending", "error"]
    assert commands.pending_count == 1
    commands = BridgeCommands()
    outcomes: list[CommandOutcome] = []
    begin(commands, on_outcome=outcomes.append)
    assert made_by_relay(commands.send_failed("r1")) == (502, "send_failed")
    assert commands.records()[0]["decision"] == "error"
    assert commands.pending_count == 0
    assert outcomes == []  # the caller that could not write the command is not informed
    commands = BridgeCommands(cap=1)
    begin(commands)
    with pytest.raises(LocalProtocolError):
        begin(commands)
    with pytest.raises(Refused) as caught:
        begin(commands, "r2")
    assert (caught.value.status, caught.value.code) == (503, "too_many_commands")
    assert len(commands.records()) == 1


@pytest.mark.parametrize(("name", "socket"), [("r2", PHONE), ("r1", 4), (None, PHONE), (5, PHONE), (["r1"], PHONE)])
def test_answer_of_another_phone_is_ignored(name: object, socket: int) -> None:
    commands = BridgeCommands()
    begin(commands)
    before = commands.records()
    assert commands.answer(name, socket, {"status": 200, "result": {}}, at(1)) is None
    assert commands.records() == before
    assert commands.answer("r1", PHONE, {"status": 200}, at(1)) == CommandOutcome(200, {})
    assert commands.answer("r1", PHONE, {"status": 500}, at(1)) is None


@pytest.mark.parametrize(
    ("payloads", "outcome"),
    [
        ([{"status": 200, "result": {"a": 1}}], CommandOutcome(200, {"a": 1})),
        ([{"status": 404, "result": [1]}], CommandOutcome(404, [1])),
        ([{"status": 200, "result": "text"}], CommandOutcome(200, {"value": "text"})),
        ([{"status": 200, "result": False}], CommandOutcome(200, {"value": False})),
        ([{"status": 599}], CommandOutcome(599, {})),
        ([{"status": 200, "result": None}, {}, {"status": "404", "result": {}}], CommandOutcome(200, {})),
        ([{"status": True}, {"status": 200.0}], CommandOutcome(200, {})),
    ],
)
def test_the_phones_answer_as_http(payloads: list[dict[str, object]], outcome: CommandOutcome) -> None:
    assert [phone_outcome(payload) for payload in payloads] == [outcome] * len(payloads)


@pytest.mark.parametrize("status", [-1, 0, 99, 101, 199, 600, 10**30])
def test_an_impossible_status(status: int) -> None:
    payload = {"status": status, "result": {"a": 1}}
    assert made_by_relay(phone_outcome(payload)) == (502, "bad_phone_status")
    commands = BridgeCommands()
    begin(commands)
    assert made_by_relay(commands.answer("r1", PHONE, payload, at(1))) == (502, "bad_phone_status")
    (record,) = commands.records()
    assert (record["decision"], record["response_status"]) == ("error", None)
    assert record["error"] == "the phone answered with an impossible status"


POLICY_CODES = """
user_denied bridge_disabled device_control_sideload_only sideload_only keyguard_blocked bridge_capability_x
bridge_policy_x
"""


@pytest.mark.parametrize(
    ("decision", "payloads"),
    [
        # rows 1 to 5 of wire bridge 4.3, in their order
        (
            "blocked",
            [{"status": 200, "result": {"blocked": True, "confirmed": True}}, {"status": 200, "blocked": True}],
        ),
        ("blocked", [{"error": "Safety rail"}]),
        ("confirmed", [{"status": 200, "result": {"confirmation_required": True}}]),
        ("confirmed", [{"status": 500, "result": {"confirmed": True}}]),
        ("error", [{"status": 400}, {"status": 503, "error": "other"}]),
        ("executed", [{"status": 399}, {"status": 200, "result": {"blocked": "true", "confirmed": 1}}]),
        ("pending", [{}, {"status": True}, {"status": "200", "result": []}]),
        # the additions to row 1
        ("blocked", [{"status": 403}, {"status": 423}, {"status": 200, "result": {"status": "blocked"}}]),
        ("blocked", [{"status": 400, "result": {"error_code": code}} for code in POLICY_CODES.split()]),
        ("blocked", [{"status": 404, "result": {"error_code": "unknown_bridge_command"}}]),
        ("error", [{"status": 400, "result": {"error_code": code}} for code in ("bridge_other", 5)]),
    ],
)
def test_the_decision_of_an_answer(decision: str, payloads: list[dict[str, object]]) -> None:
    for payload in payloads:
        commands = BridgeCommands()
        begin(commands)
        assert commands.answer("r1", PHONE, payload, at(1)) is not None
        assert commands.records()[0]["decision"] == decision, payload


@pytest.mark.parametrize(
    ("error", "payloads"),
    [
        ("one", [{"status": 500, "error": "one", "result": {"error": "two"}}, {"status": 200, "error": "one"}]),
        ("two", [{"status": 400, "result": {"error": "two"}}]),
        (None, [{"status": status, "result": {"error": "two"}} for status in (200, 399)]),
        (None, [{"status": 404, "result": result} for result in ({"error": 5}, ["two"], {})]),
        ("x" * 500, [{"status": 500, "error": "x" * 999}]),
    ],
)
def test_the_error_of_a_record(error: str | None, payloads: list[dict[str, object]]) -> None:
    for payload in payloads:
        commands = BridgeCommands()
        begin(commands)
        commands.answer("r1", PHONE, payload, at(1))
        assert commands.records()[0]["error"] == error, payload


def test_results_are_cut_and_secrets_in_lists_redacted() -> None:
    commands = BridgeCommands()
    begin(commands)
    commands.answer("r1", PHONE, {"status": 200, "result": {"x": "y" * 10_000}}, at(1))
    summary = commands.records()[0]["result_summary"]
    assert summary == '{"x":"' + "y" * 491 + "..."  # 500 characters
    commands = BridgeCommands()
    body = {"attachments": [{"name": "a", "token": "t"}, ["b", {"password": "p"}]]}
    commands.begin("r1", socket=PHONE, method="POST", path="/share_media", params={}, body=body, now=at(0))
    shown = {"attachments": [{"name": "a", "token": "[redacted]"}, ["b", {"password": "[redacted]"}]]}
    assert commands.records()[0]["params"] == shown


@pytest.mark.parametrize("hide", [True, False])
def test_hidden_texts_are_not_recorded(hide: bool) -> None:
    commands = BridgeCommands(hide_text=True) if hide else BridgeCommands()
    body = {"text": "my words", "deep": {"Body": "sms", "otp": 5}}
    commands.begin("r1", socket=PHONE, method="POST", path="/type", params={}, body=body, now=at(0))
    shown = {"text": "[8 characters]", "deep": {"Body": "[3 characters]", "otp": "[redacted]"}}
    said = {"text": "my words", "deep": {"Body": "sms", "otp": "[redacted]"}}
    assert commands.records()[0]["params"] == (shown if hide else said)
    assert body["text"] == "my words"
    commands.answer("r1", PHONE, {"status": 404, "result": {"needle": "my words", "error": "no my words"}}, at(1))
    record = commands.records()[0]
    outcomes = ('{"needle":"my words","error":"no my words"}', "no my words")
    assert (record["result_summary"], record["error"]) == (("[hidden]", "[hidden]") if hide else outcomes)


@pytest.mark.parametrize(("hide", "shown"), [(True, "[8 characters]"), (False, "a screen")])
def test_text_in_a_result_is_hidden(hide: bool, shown: str) -> None:
    commands = BridgeCommands(hide_text=hide)
    begin(commands)
    commands.answer("r1", PHONE, {"status": 200, "result": {"ok": True, "text": "a screen"}}, at(1))
    record = commands.records()[0]
    assert (record["result_summary"], record["error"]) == (f'{{"ok":true,"text":"{shown}"}}', None)


@pytest.mark.parametrize("known", [False, True], ids=["the text is not at hand", "the text is at hand"])
def test_long_parameters_are_not_kept(*, known: bool) -> None:
    commands = BridgeCommands()
    body = {"secret": "s3", "x": "y" * 9_000}
    text = json.dumps(body) if known else ""
    commands.begin("r1", socket=PHONE, method="POST", path="/share_media", params={}, body=body, now=at(0), text=text)
    params = commands.records()[0]["params"]
    assert isinstance(params, dict)
    assert list(params) == ["[truncated]"]
    assert params["[truncated]"].startswith('{"secret":"[redacted]","x":"yyy')
    assert len(params["[truncated]"]) == 500


@pytest.mark.parametrize(("size", "is_kept"), [(MAX_PARAMS - 1, True), (MAX_PARAMS, False)])
def test_short_parameters_are_kept(size: int, is_kept: bool) -> None:
    commands = BridgeCommands()
    body = {"x": "y" * (size - len('{"x":""}'))}
    text = json.dumps(body, separators=(",", ":"))
    commands.begin("r1", socket=PHONE, method="POST", path="/type", params={}, body=body, now=at(0), text=text)
    assert (commands.records()[0]["params"] == body) is is_kept


def test_records_are_newest_first_bounded_and_of_one_session_on_request() -> None:
    commands = BridgeCommands()
    for number in range(105):
        begin(commands, f"r{number}")
    assert [record["request_id"] for record in commands.records()] == [f"r{n}" for n in range(104, 4, -1)]
    assert [record["request_id"] for record in commands.records(2)] == ["r104", "r103"]
    assert commands.records(0) == commands.records(-1) == []
    assert commands.answer("r0", PHONE, {"status": 200}, at(1)) == CommandOutcome(200, {})  # evicted, still answered
    json.dumps(commands.records(), allow_nan=False)
    commands = BridgeCommands()
    for name, session in (("r1", "a"), ("r2", "b"), ("r3", "a")):
        commands.begin(
            name, socket=PHONE, method="GET", path="/ping", params={}, body={}, now=at(0), session_prefix=session
        )
    assert [record["request_id"] for record in commands.records(session_prefix="a")] == ["r3", "r1"]
    assert [record["request_id"] for record in commands.records(1, session_prefix="b")] == ["r2"]
    assert commands.records(session_prefix="c") == []


@pytest.mark.parametrize(
    ("value", "limit"),
    [("1", 1), ("99", 99), *((other, 100) for other in (None, "", "x", "0", "-5", "501", "9" * 5000))],
)
def test_the_limit_of_the_activity_route(value: str | None, limit: int) -> None:
    assert parse_limit(value) == limit
