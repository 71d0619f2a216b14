import json
from typing import Any

import pytest

from svc_proto.machines.confirmations import Confirmation
from svc_proto.voice.realtime import function_calls
from svc_proto.voice.realtime.answer_playback import SpokenAnswer
from svc_proto.voice.realtime.run_events import RunEventMapper
from svc_proto.voice.realtime.voice_run import VoiceRun


def begun() -> VoiceRun:
    made = VoiceRun(story=RunEventMapper("svc", "k1", "c1"), text="df", profile="work")
    made.start(0.0, spoke=False)
    made.on_due(0.75, "idle")
    return made


def test_a_long_answer() -> None:
    spoken = "word " * 400
    output = function_calls.completed_output(
        begun(), SpokenAnswer(call_id="k1", run_id="n1", text="# " + spoken, spoken=spoken)
    )
    assert output["raw_text_omitted"] is True
    assert len(str(output["summary"])) == function_calls.MAX_SUMMARY
    assert output["profile"] == "work"


def test_status() -> None:
    assert function_calls.status_output(None)["status"] == "idle"
    made = begun()
    assert function_calls.status_output(made)["status"] == "running"
    assert function_calls.status_output(made)["run_id"] is None
    made.story.map_event(Confirmation("q1", "May I?"))
    asked = function_calls.status_output(made)
    assert (asked["status"], asked["pending_confirmation_id"]) == ("waiting_for_confirmation", "q1")
    made.finish(str)
    assert function_calls.status_output(made)["status"] == "completed"


@pytest.mark.parametrize("word", ["svc", "hermes"])
def test_the_surface(word: str) -> None:
    names = [f"{word}_run_task", f"{word}_get_status", f"{word}_cancel", f"{word}_confirm"]
    assert function_calls.tool_surface(word) == names
    schemas: list[Any] = list(function_calls.function_schemas(word))
    assert [schema["name"] for schema in schemas] == names
    assert {schema["type"] for schema in schemas} == {"function"}
    assert [schema["parameters"]["required"] for schema in schemas] == [["text"], [], [], ["confirmation_id", "answer"]]
    assert schemas[0]["parameters"]["properties"]["mode"]["enum"] == ["chat", "run", "background"]
    assert schemas[3]["parameters"]["properties"]["answer"]["enum"] == ["allow", "allow_once", "deny", "cancel"]
    json.dumps(schemas)


@pytest.mark.parametrize(
    ("name", "arguments", "call"),
    [
        ("svc_run_task", '{"text": " df "}', function_calls.RunTaskCall(call_id="k", text="df")),
        (
            "hermes_run_task",
            '{"text": "df", "profile": "work", "session_id": "c2", "mode": "background"}',
            function_calls.RunTaskCall(call_id="k", text="df", profile="work", session_id="c2", background=True),
        ),
        ("svc_run_task", json.dumps({"text": "x" * 6000}), function_calls.RunTaskCall(call_id="k", text="x" * 5000)),
        ("svc_get_status", "", function_calls.StatusCall("k")),
        ("svc_cancel", '{"run_id": "n1"}', function_calls.CancelCall("k")),
        ("svc_confirm", '{"confirmation_id": "q", "answer": "allow"}', function_calls.ConfirmCall("k", "q", "allow")),
        ("svc_confirm", '{"answer": 7}', function_calls.ConfirmCall("k", "", "")),
    ],
)
def test_calls(name: str, arguments: str, call: object) -> None:
    assert function_calls.parse_call("k", name, arguments, "svc") == call


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("svc_run_task", "{}", "text is required"),
        ("svc_run_task", '{"text": "  "}', "text is required"),
        ("svc_run_task", '{"text": ', "no JSON object"),
        ("svc_run_task", "[]", "no JSON object"),
        ("svc_run_task", json.dumps({"text": "x" * 40_000}), "longer than"),
        ("svc_delete_all", "{}", "no function 'svc_delete_all'"),
        ("run_task", "{}", "no function"),
    ],
)
def test_invalid_calls(name: str, arguments: str, error: str) -> None:
    call = function_calls.parse_call("k", name, arguments, "svc")
    assert isinstance(call, function_calls.UnknownCall)
    assert call.output["ok"] is False
    assert error in str(call.output["error"])
    assert ("allowed_tools" in call.output) is ("no function" in error)
