import pickle
import shlex
from collections.abc import Sequence

import pytest

from svc_proto.voice.realtime.actions import ConversationAction
from svc_proto.voice.realtime.run_events import MAX_ANSWER, MAX_TOOLS, RunEventMapper
from tests.voice.realtime.dialogue import EVENTS, dialogues, play

STORIES = """
a run from its beginning to its end
    ChatSessionBound c1 work session_not_found
        -> svc.session.bound(session_id=c1, profile=work, reason=session_not_found)
    ChatSessionBound c1 -> svc.session.bound(session_id=c1, profile=None)
    ApiRunStarted n1 -> svc.run.started(session_id=c1, run_id=n1)
    ApiRunStarted n1 -> nothing
    MessageBegan m1 -> svc.message.started(session_id=c1, run_id=n1, message_id=m1)
    AnswerDelta Hel -> nothing
    AnswerDelta lo -> nothing
    AnswerComplete 'Hello again' -> nothing
    answers Hello
    complete -> svc.run.completed(session_id=c1, run_id=n1)
    complete -> nothing
    cancelled -> svc.run.cancelled(session_id=c1, run_id=n1)
the answer of last resort
    answers ''
    ThoughtDelta Hm. -> svc.tool.delta(session_id=c1, run_id=, delta=Hm., tool_name=_thinking, message=Thinking.)
    answers Hm.
    AnswerComplete Yes. -> nothing
    answers Yes.
    AnswerDelta No. -> nothing
    answers No.
a tool begins once
    ApiRunStarted n1
    ToolBegan t1 terminal 'df -h'
        -> svc.tool.started(tool_call_id=t1, tool_name=terminal, message=df -h, arguments={'command': 'df -h'})
    ToolBegan t1 terminal 'df -h' -> nothing
    status running tool:terminal:running 'Running command.'
    ToolSaid t1 terminal
        -> svc.tool.delta(session_id=c1, run_id=n1, delta=…, tool_name=terminal, message=Running command.)
    ToolSucceeded t1 terminal 62%
        -> svc.tool.completed(tool_call_id=t1, result_preview=62%, success=True, message=Command finished.)
    last done 'Command finished.' None
starts that are made up
    ToolSaid t1 web_search -> svc.tool.started(tool_name=web_search, arguments=None, synthetic=True)
        -> svc.tool.delta(message=Using web search.)
    ToolFailed t2 phone_call -> svc.tool.started(synthetic=True)
        -> svc.tool.failed(tool_call_id=t2, tool_name=phone_call, error=no, message=Phone call failed.)
    last failed 'Phone call failed.' web_search
    ToolSaid svc svc -> svc.tool.delta
    ToolSucceeded _x _x -> svc.tool.completed
    last done 'Finished x.' web_search
a tool that waits may wait for an approval
    ApiRunStarted n1
    ToolWaits t1 phone_call +15550100 -> svc.tool.started(message=+15550100)
        -> FetchApproval(call_id=k1, run_id=n1, tool_call_id=t1, message=Allow phone_call: +15550100?)
    ApprovalAsked t1 -> svc.confirmation.requested(session_id=c1, run_id=n1, confirmation_id=t1, message=May I?)
    status waiting_for_confirmation confirmation 'Waiting for your confirmation.'
    ToolWaits t2 send_sms -> svc.tool.started FetchApproval(message=Allow send_sms?)
    ApprovalAsked t2 -> nothing
    ToolBegan t1 phone_call -> svc.confirmation.requested(confirmation_id=t2)
    settle t2 -> nothing
    ToolSucceeded t1 phone_call -> svc.tool.completed
    ToolFailed t2 y -> svc.tool.failed
    ApprovalAsked t1 -> nothing
a call id that comes again is another call
    ToolBegan sms sms -> svc.tool.started
    ToolSucceeded sms sms -> svc.tool.completed
    ToolBegan web web
    ToolWaits sms sms -> svc.tool.started FetchApproval
    ApprovalAsked sms -> svc.confirmation.requested
    last running 'Using sms.' sms
    ToolBegan sms sms -> nothing
    ToolSucceeded sms sms -> svc.tool.completed
    ToolBegan sms sms -> svc.tool.started
the oldest call is forgotten
    ToolBegan t1 web
    crowd
    ToolBegan t1 web -> nothing
    ToolBegan t2 web -> svc.tool.started
    ToolSaid t1 web -> svc.tool.started(tool_call_id=t1, synthetic=True) svc.tool.delta
what it is at
    ApprovalAsked q -> svc.confirmation.requested
    settle q
    status running run:waiting_svc 'Still working.'
    ToolBegan t _ -> svc.tool.started
    status running tool:_:running 'Using a tool.'
    ToolFailed t terminal -> svc.tool.failed(message=Command failed.)
    last failed 'Command failed.' None
"""


class RunDialogue:
    """Dialogue partner that performs lines on a `RunEventMapper`."""

    def __init__(self) -> None:
        self.story = RunEventMapper("svc", "k1", "c1")

    def do(self, line: str) -> Sequence[ConversationAction]:
        story = self.story
        last = (story.last_tool_status, story.last_tool_message, story.active_tool_name)
        match shlex.split(line):
            case ["complete"]:
                return story.complete()
            case ["cancelled"]:
                return [story.cancelled()]
            case ["crowd"]:  # fill the table of calls
                return [order for n in range(1, MAX_TOOLS) for order in self.do(f"ToolBegan {n} x")]
            case ["settle", question]:
                return story.resolve_confirmation(question)
            case ["answers", answer]:
                assert story.answer == answer
            case ["status", *words]:
                assert [*story.status()] == words
            case ["last", *words]:
                assert [str(word) for word in last] == words
            case [word, *arguments]:
                return story.map_event(EVENTS[word](*arguments))
        return []


@pytest.mark.parametrize(("title", "lines"), dialogues(STORIES).items())
def test_event_sequences(title: str, lines: list[str]) -> None:
    play(lines, RunDialogue())


def test_mapper_size_is_limited() -> None:
    story = RunEventMapper("svc", "k1", "c1")
    story.map_event(EVENTS["AnswerComplete"]("y" * (MAX_ANSWER + 1)))
    assert story.answer == "y" * MAX_ANSWER
    story.map_event(EVENTS["AnswerDelta"]("x" * MAX_ANSWER))
    story.map_event(EVENTS["ThoughtDelta"]("x" * MAX_ANSWER))
    size = len(pickle.dumps(story))
    for _ in range(100):
        story.map_event(EVENTS["AnswerDelta"]("more"))
        story.map_event(EVENTS["ThoughtDelta"]("more"))
    assert len(pickle.dumps(story)) == size
