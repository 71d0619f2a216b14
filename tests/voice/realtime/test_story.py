"""What a chat run tells, for the client of a voice session: as dialogues of `book`, and in any order beside plain
lists, where each call has one start before its end, and one question is shown at a time.
"""

from __future__ import annotations

import pickle
import shlex
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.orders import AskAboutApproval, Emit, Order
from svc_proto.voice.realtime.story import MAX_ANSWER, MAX_TOOLS, RunBegan, RunEvent, RunStory, SessionBound
from tests.voice.realtime.book import EVENTS, dialogues, play

STORIES = """
a run from its beginning to its end
    SessionBound c1 work session_not_found -> svc.session.bound(session_id=c1, profile=work, reason=session_not_found)
    SessionBound c1 -> svc.session.bound(session_id=c1, profile=None)
    RunBegan n1 -> svc.run.started(session_id=c1, run_id=n1)
    RunBegan n1 -> nothing
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
    RunBegan n1
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
    RunBegan n1
    ToolWaits t1 phone_call +15550100 -> svc.tool.started(message=+15550100)
        -> AskAboutApproval(call_id=k1, run_id=n1, tool_call_id=t1, message=Allow phone_call: +15550100?)
    ApprovalAsked t1 -> svc.confirmation.requested(session_id=c1, run_id=n1, confirmation_id=t1, message=May I?)
    status waiting_for_confirmation confirmation 'Waiting for your confirmation.'
    ToolWaits t2 send_sms -> svc.tool.started AskAboutApproval(message=Allow send_sms?)
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
    ToolWaits sms sms -> svc.tool.started AskAboutApproval
    ApprovalAsked sms -> svc.confirmation.requested
    last running 'Using sms.' sms
    ToolBegan sms sms -> nothing
    ToolSucceeded sms sms -> svc.tool.completed
    ToolBegan sms sms -> svc.tool.started
what it is at
    ApprovalAsked q -> svc.confirmation.requested
    settle q
    status running run:waiting_svc 'Still working.'
    ToolBegan t _ -> svc.tool.started
    status running tool:_:running 'Using a tool.'
    ToolFailed t terminal -> svc.tool.failed(message=Command failed.)
    last failed 'Command failed.' None
"""


class Tale:
    """A story that is told and asked, a line at a time."""

    def __init__(self) -> None:
        self.story = RunStory("svc", "k1", "c1")

    def do(self, line: str) -> Sequence[Order]:
        story = self.story
        last = (story.last_tool_status, story.last_tool_message, story.active_tool_name)
        match shlex.split(line):
            case ["complete"]:
                return story.complete()
            case ["cancelled"]:
                return [story.cancelled()]
            case ["settle", question]:
                return story.settle(question)
            case ["answers", answer]:
                assert story.answer == answer
            case ["status", *words]:
                assert [*story.status()] == words
            case ["last", *words]:
                assert [str(word) for word in last] == words
            case [word, *arguments]:
                return story.take(EVENTS[word](*arguments))
        return []


@pytest.mark.parametrize(("title", "lines"), dialogues(STORIES).items())
def test_a_story(title: str, lines: list[str]) -> None:
    play(title, lines, Tale())


def test_what_is_not_kept_takes_no_room() -> None:
    story = RunStory("svc", "k1", "c1")
    story.take(EVENTS["AnswerDelta"]("x" * MAX_ANSWER))
    story.take(EVENTS["ThoughtDelta"]("x" * MAX_ANSWER))
    size = len(pickle.dumps(story))
    for _ in range(100):
        story.take(EVENTS["AnswerDelta"]("more"))
        story.take(EVENTS["ThoughtDelta"]("more"))
    assert len(pickle.dumps(story)) == size


# A server that has no ids for its calls has them named by their tool (wire terminal-voice 6.7), so ids come again.
NAMES = st.sampled_from(("terminal", "web", "_hidden"))
PIECES = st.sampled_from(("It is ", "fine. ", " ", "x" * (MAX_ANSWER - 2)))


class RunStoryAgainstAModel(RuleBasedStateMachine):
    """`tools` are the calls whose start was told, as (id, stage), oldest first; `questions` are those that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.serial = count(1)
        self.story = RunStory("svc", "k1", "c1")
        self.told: set[str] = set()  # of the run itself
        self.shown = ""  # the question that the person sees
        self.run_id = ""
        self.tools: list[tuple[str, str]] = []
        self.ended = 0
        self.last: str | None = None
        self.questions: list[str] = []
        self.deltas = self.thoughts = self.content = ""

    # --- the run ---

    @rule(run_id=st.sampled_from(("n1", "n2")))
    def begins(self, run_id: str) -> None:
        expected = [] if "svc.run.started" in self.told else ["svc.run.started"]
        self.run_id = run_id
        assert self._take(RunBegan(run_id)) == expected

    @rule(session_id=st.sampled_from(("c1", "c2")))
    def is_bound(self, session_id: str) -> None:
        assert self._take(SessionBound(session_id)) == ["svc.session.bound"]
        assert self.story.session_id == session_id

    @rule()
    def completes(self) -> None:
        expected = [] if "svc.run.completed" in self.told else ["svc.run.completed"]
        assert self._see(self.story.complete()) == expected

    @rule(piece=PIECES, thought=st.booleans())
    def says(self, piece: str, thought: bool) -> None:
        if thought:
            self.thoughts = (self.thoughts + piece)[:MAX_ANSWER]
            assert self._take(EVENTS["ThoughtDelta"](piece)) == ["svc.tool.delta"]
        else:
            self.deltas = (self.deltas + piece)[:MAX_ANSWER]
            assert self._take(EVENTS["AnswerDelta"](piece)) == []

    @rule(content=st.sampled_from(("", "All of it.", "y" * (MAX_ANSWER + 1))))
    def has_said(self, content: str) -> None:
        self.content = content[:MAX_ANSWER]
        assert self._take(EVENTS["AnswerComplete"](content)) == []

    # --- its tools ---

    @rule(name=NAMES)
    def waits(self, name: str) -> None:
        expected = self._starts(name, "waiting")
        assert self._take(EVENTS["ToolWaits"](name, name)) == [*expected, "AskAboutApproval"]

    @rule(name=NAMES)
    def runs(self, name: str) -> None:
        expected = self._starts(name, "running")
        self.tools = [(each, "running" if each == name else stage) for each, stage in self.tools]
        assert self._take(EVENTS["ToolBegan"](name, name)) == [*expected, *self._needs_no_answer(name)]

    @rule()
    def a_crowd_runs(self) -> None:
        names = [f"tool {next(self.serial)}" for _ in range(MAX_TOOLS - 1)]
        for name in names:
            assert self._take(EVENTS["ToolBegan"](name, name)) == ["svc.tool.started"]
        self.tools = [*self.tools, *((name, "running") for name in names)][-MAX_TOOLS:]
        self.last = names[-1]

    @rule(name=NAMES)
    def tells_of_itself(self, name: str) -> None:
        expected = self._makes_up(name)
        assert self._take(EVENTS["ToolSaid"](name, name)) == [*expected, "svc.tool.delta"]

    @rule(name=NAMES, well=st.booleans())
    def is_over(self, name: str, well: bool) -> None:
        expected = [*self._makes_up(name), "svc.tool.completed" if well else "svc.tool.failed"]
        self.tools = [(each, "done" if each == name else stage) for each, stage in self.tools]
        self.ended += 1
        self.last = name
        event = EVENTS["ToolSucceeded"](name, name) if well else EVENTS["ToolFailed"](name, name)
        assert self._take(event) == [*expected, *self._needs_no_answer(name)]

    # --- its questions ---

    @rule(name=st.one_of(NAMES, st.just("of no tool")))
    def asks(self, name: str) -> None:
        late = dict(self.tools).get(name, "waiting") != "waiting"  # somebody has allowed it meanwhile
        shown = not late and not self.questions
        if not late and name not in self.questions:
            self.questions.append(name)
        assert self._take(Question(name, "May I?")) == ["svc.confirmation.requested"] * shown

    @rule(name=st.one_of(NAMES, st.just("of no tool")))
    def is_answered(self, name: str) -> None:
        expected = self._needs_no_answer(name)
        assert self._see(self.story.settle(name)) == expected

    # --- what must hold ---

    @invariant()
    def the_oldest_question_is_shown(self) -> None:
        # Wire api 6.5: the approval call "resolves the oldest pending request".
        head = self.story.confirmations.head
        assert (head.id if head else None) == (self.questions[0] if self.questions else None)
        assert not self.questions or self.shown == self.questions[0]

    @invariant()
    def the_answer_is_what_was_said_first_hand(self) -> None:
        # Wire terminal-voice 6.7: the completed text is "used when no deltas came", thoughts are "of last resort".
        right = self.story.answer == (self.deltas.strip() or self.content.strip() or self.thoughts.strip())
        assert right  # without a comparison of long texts

    @invariant()
    def progress_names_the_tools(self) -> None:
        # Wire terminal-voice 6.5: active_tool_name, last_tool_name, completed_tool_count; status, status_key.
        active = next((name for name, stage in reversed(self.tools) if stage != "done"), None)
        named = {"active_tool_name": active, "last_tool_name": self.last, "completed_tool_count": self.ended}
        assert self.story.tools() == named
        status, key, _ = self.story.status()
        assert (status == "waiting_for_confirmation") is bool(self.questions)
        if not self.questions:
            assert key == (f"tool:{active}:running" if active else "run:waiting_svc")

    @invariant()
    def no_more_is_remembered_than_allowed(self) -> None:
        assert len(self.tools) <= MAX_TOOLS

    # --- the model ---

    def _starts(self, name: str, stage: str) -> list[str]:
        """A start is told of a call that is unknown, or over."""
        if dict(self.tools).get(name, "done") != "done":
            return []
        self.tools = [*(each for each in self.tools if each[0] != name), (name, stage)][-MAX_TOOLS:]
        self.last = name
        return ["svc.tool.started"]

    def _makes_up(self, name: str) -> list[str]:
        """Wire terminal-voice 6.7: "A completion or delta without a prior start gets a synthetic" one."""
        hidden = name.startswith("_")  # 0.1: clients show no tool by such a name
        return [] if hidden or name in dict(self.tools) else self._starts(name, "running")

    def _needs_no_answer(self, name: str) -> list[str]:
        """The next question is shown when the oldest is settled."""
        before, self.questions = self.questions, [each for each in self.questions if each != name]
        return ["svc.confirmation.requested"] if self.questions and before[0] == name else []

    def _take(self, event: RunEvent) -> list[str]:
        return self._see(self.story.take(event))

    def _see(self, orders: Sequence[Emit | AskAboutApproval]) -> list[str]:
        """What is told, as words; all of it names the chat session and the run (wire terminal-voice 6.5)."""
        words = []
        for order in orders:
            if isinstance(order, AskAboutApproval):
                words.append("AskAboutApproval")
                continue
            words.append(order.type)
            assert order.fields["session_id"] == self.story.session_id
            assert order.type == "svc.session.bound" or order.fields["run_id"] == self.run_id
            if order.type == "svc.confirmation.requested":
                self.shown = str(order.fields["confirmation_id"])
            if order.type.startswith("svc.run."):
                assert order.type not in self.told
                self.told.add(order.type)
        return words


TestRunStoryAgainstAModel = RunStoryAgainstAModel.TestCase
TestRunStoryAgainstAModel.settings = settings(max_examples=30, stateful_step_count=25)
