"""What a chat run tells, for the client of a voice session."""

from __future__ import annotations

import pickle

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.orders import AskAboutApproval, Emit
from svc_proto.voice.realtime.story import (
    MAX_ANSWER,
    AnswerComplete,
    AnswerDelta,
    ApprovalAsked,
    MessageBegan,
    RunBegan,
    RunEvent,
    RunStory,
    SessionBound,
    ThoughtDelta,
    ToolBegan,
    ToolFailed,
    ToolSaid,
    ToolSucceeded,
    ToolWaits,
)

HERE = {"session_id": "c1", "run_id": "n1"}


def story() -> RunStory:
    made = RunStory("svc", "k1", "c1")
    made.take(RunBegan("n1"))
    return made


def told(tale: RunStory, *events: RunEvent) -> list[str]:
    orders = [order for event in events for order in tale.take(event)]
    return [order.type if isinstance(order, Emit) else type(order).__name__ for order in orders]


def test_a_run_from_its_beginning_to_its_end() -> None:
    tale = RunStory("hermes", "k1", None)
    bound = {"session_id": "c1", "profile": "work", "reason": "session_not_found"}
    assert tale.take(SessionBound("c1", "work", "session_not_found")) == [Emit("hermes.session.bound", bound)]
    assert tale.take(SessionBound("c1")) == [
        Emit("hermes.session.bound", {"session_id": "c1", "profile": None}),
    ]
    assert tale.take(RunBegan("n1")) == [Emit("hermes.run.started", HERE)]
    assert tale.take(RunBegan("n1")) == []
    assert tale.take(MessageBegan("m1")) == [Emit("hermes.message.started", {**HERE, "message_id": "m1"})]
    assert tale.take(AnswerDelta("Hel")) == []
    assert tale.take(AnswerDelta("lo")) == []
    assert tale.take(AnswerComplete("Hello again")) == []
    assert tale.answer == "Hello"
    assert tale.complete() == [Emit("hermes.run.completed", HERE)]
    assert tale.complete() == []


def test_the_answer_of_last_resort() -> None:
    tale = story()
    assert tale.answer == ""
    delta = {**HERE, "delta": "Hm.", "tool_name": "_thinking", "message": "Thinking."}
    assert tale.take(ThoughtDelta("Hm.")) == [Emit("svc.tool.delta", delta)]
    assert tale.answer == "Hm."
    tale.take(AnswerComplete("Yes."))
    assert tale.answer == "Yes."
    tale.take(AnswerDelta("No."))
    assert tale.answer == "No."
    tale.take(AnswerDelta("x" * MAX_ANSWER))
    assert len(tale.answer) == MAX_ANSWER
    tale.take(AnswerComplete("", interrupted=True))
    assert tale.interrupted
    assert tale.cancelled() == Emit("svc.run.cancelled", HERE)


def test_what_is_not_kept_takes_no_room() -> None:
    tale = story()
    tale.take(AnswerDelta("x" * MAX_ANSWER))
    tale.take(ThoughtDelta("x" * MAX_ANSWER))
    size = len(pickle.dumps(tale))
    for _ in range(100):
        tale.take(AnswerDelta("more"))
        tale.take(ThoughtDelta("more"))
    assert len(pickle.dumps(tale)) == size


def test_a_tool_begins_once() -> None:
    tale = story()
    tool = {**HERE, "tool_call_id": "t1", "tool_name": "terminal"}
    started = {**tool, "arguments": {"command": "df -h"}, "message": "df -h"}
    began = ToolBegan(call_id="t1", name="terminal", arguments={"command": "df -h"}, preview="df -h")
    assert tale.take(began) == [Emit("svc.tool.started", started)]
    assert tale.take(began) == []
    assert tale.status() == ("running", "tool:terminal:running", "Running command.")
    said = {**HERE, "delta": "…", "tool_name": "terminal", "message": "Running command."}
    assert tale.take(ToolSaid(call_id="t1", name="terminal", delta="…")) == [Emit("svc.tool.delta", said)]
    ended = {**tool, "result_preview": "62%", "success": True, "message": "Command finished."}
    assert tale.take(ToolSucceeded(call_id="t1", name="terminal", preview="62%")) == [Emit("svc.tool.completed", ended)]
    assert tale.tools() == {"active_tool_name": None, "last_tool_name": "terminal", "completed_tool_count": 1}
    assert tale.last_tool_status == "done"


def test_starts_that_are_made_up() -> None:
    tale = story()
    assert told(tale, ToolSaid(call_id="t1", name="web_search", delta="x")) == ["svc.tool.started", "svc.tool.delta"]
    (synthetic, _) = tale.take(ToolFailed(call_id="t2", name="phone_call", error="no answer"))
    assert isinstance(synthetic, Emit)
    assert synthetic.fields["synthetic"] is True
    assert (tale.last_tool_status, tale.last_tool_message) == ("failed", "Phone call failed.")
    assert told(tale, ToolSaid(call_id="svc", name="svc", delta="x")) == ["svc.tool.delta"]
    assert told(tale, ToolSucceeded(call_id="_x", name="_x", success=False)) == ["svc.tool.completed"]
    assert tale.last_tool_status == "failed"
    assert tale.active_tool_name == "web_search"


def test_tools_are_forgotten_when_there_are_too_many() -> None:
    tale = story()
    for number in range(257):
        tale.take(ToolBegan(call_id=str(number), name="x"))
    assert told(tale, ToolSucceeded(call_id="1", name="x")) == ["svc.tool.completed"]
    assert told(tale, ToolSucceeded(call_id="0", name="x")) == ["svc.tool.started", "svc.tool.completed"]
    assert told(tale, ToolSucceeded(call_id="9", name="x")) == ["svc.tool.completed"]


def test_a_tool_that_waits_may_wait_for_an_approval() -> None:
    tale = story()
    waits = ToolWaits(call_id="t1", name="phone_call", preview="+15550100")
    (started, ask) = tale.take(waits)
    assert isinstance(started, Emit)
    assert ask == AskAboutApproval(call_id="k1", run_id="n1", tool_call_id="t1", message="Allow phone_call: +15550100?")
    asked = {**HERE, "confirmation_id": "t1", "message": "Allow?"}
    assert tale.take(ApprovalAsked(Question("t1", "Allow?"))) == [Emit("svc.confirmation.requested", asked)]
    assert tale.status()[:2] == ("waiting_for_confirmation", "confirmation")
    assert told(tale, ToolWaits(call_id="t2", name="send_sms"), ApprovalAsked(Question("t2", "And that?"))) == [
        "svc.tool.started",
        "AskAboutApproval",
    ]
    # Somebody allows the first elsewhere: it runs, and the next question is shown.
    assert told(tale, ToolBegan(call_id="t1", name="phone_call")) == ["svc.confirmation.requested"]
    assert tale.settle("t2") == []
    assert told(
        tale, ToolSucceeded(call_id="t1", name="phone_call"), ToolFailed(call_id="t2", name="y", error="z")
    ) == [
        "svc.tool.completed",
        "svc.tool.failed",
    ]
    # What is found out too late is not asked.
    assert told(tale, ApprovalAsked(Question("t1", "Allow?"))) == []


def test_a_call_id_that_comes_again_is_another_call() -> None:
    """Where a server names no call, its tool's name is its id (wire terminal-voice 6.7)."""
    tale = story()
    assert told(tale, ToolBegan(call_id="sms", name="sms"), ToolSucceeded(call_id="sms", name="sms")) == [
        "svc.tool.started",
        "svc.tool.completed",
    ]
    tale.take(ToolBegan(call_id="web", name="web"))
    assert told(tale, ToolWaits(call_id="sms", name="sms"), ApprovalAsked(Question("sms", "Again?"))) == [
        "svc.tool.started",
        "AskAboutApproval",
        "svc.confirmation.requested",
    ]
    assert tale.active_tool_name == "sms"
    assert told(tale, ToolBegan(call_id="sms", name="sms"), ToolSucceeded(call_id="sms", name="sms")) == [
        "svc.tool.completed"
    ]
    assert told(tale, ToolBegan(call_id="sms", name="sms")) == ["svc.tool.started"]


def test_questions_of_no_tool() -> None:
    tale = story()
    assert told(tale, ApprovalAsked(Question("q", "May I?"))) == ["svc.confirmation.requested"]


def test_status_words() -> None:
    tale = story()
    assert tale.status() == ("running", "run:waiting_svc", "Still working.")
    tale.drafting = True
    assert tale.status() == ("running", "run:drafting", "Drafting the answer.")
    tale.take(ToolBegan(call_id="t", name="_"))
    assert tale.status()[2] == "Using a tool."
    assert told(tale, ToolFailed(call_id="t", name="terminal", error="x")) == ["svc.tool.failed"]
    assert tale.last_tool_message == "Command failed."
