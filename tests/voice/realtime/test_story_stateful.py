"""What a chat run tells beside plain lists: each call has one start before its end, one question is shown at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.orders import AskAboutApproval, Emit
from svc_proto.voice.realtime.story import (
    MAX_ANSWER,
    MAX_TOOLS,
    AnswerComplete,
    AnswerDelta,
    ApprovalAsked,
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
            assert self._take(ThoughtDelta(piece)) == ["svc.tool.delta"]
        else:
            self.deltas = (self.deltas + piece)[:MAX_ANSWER]
            assert self._take(AnswerDelta(piece)) == []

    @rule(content=st.sampled_from(("", "All of it.", "y" * (MAX_ANSWER + 1))))
    def has_said(self, content: str) -> None:
        self.content = content[:MAX_ANSWER]
        assert self._take(AnswerComplete(content)) == []

    # --- its tools ---

    @rule(name=NAMES)
    def waits(self, name: str) -> None:
        expected = self._starts(name, "waiting")
        assert self._take(ToolWaits(call_id=name, name=name)) == [*expected, "AskAboutApproval"]

    @rule(name=NAMES)
    def runs(self, name: str) -> None:
        expected = self._starts(name, "running")
        self.tools = [(each, "running" if each == name else stage) for each, stage in self.tools]
        assert self._take(ToolBegan(call_id=name, name=name)) == [*expected, *self._needs_no_answer(name)]

    @rule()
    def a_crowd_runs(self) -> None:
        names = [f"tool {next(self.serial)}" for _ in range(MAX_TOOLS - 1)]
        for name in names:
            assert self._take(ToolBegan(call_id=name, name=name)) == ["svc.tool.started"]
        self.tools = [*self.tools, *((name, "running") for name in names)][-MAX_TOOLS:]
        self.last = names[-1]

    @rule(name=NAMES)
    def tells_of_itself(self, name: str) -> None:
        expected = self._makes_up(name)
        assert self._take(ToolSaid(call_id=name, name=name, delta="…")) == [*expected, "svc.tool.delta"]

    @rule(name=NAMES, well=st.booleans())
    def is_over(self, name: str, well: bool) -> None:
        expected = [*self._makes_up(name), "svc.tool.completed" if well else "svc.tool.failed"]
        self.tools = [(each, "done" if each == name else stage) for each, stage in self.tools]
        self.ended += 1
        self.last = name
        event = ToolSucceeded(call_id=name, name=name) if well else ToolFailed(call_id=name, name=name, error="no")
        assert self._take(event) == [*expected, *self._needs_no_answer(name)]

    # --- its questions ---

    @rule(name=st.one_of(NAMES, st.just("of no tool")))
    def asks(self, name: str) -> None:
        late = dict(self.tools).get(name, "waiting") != "waiting"  # somebody has allowed it meanwhile
        shown = not late and not self.questions
        if not late and name not in self.questions:
            self.questions.append(name)
        assert self._take(ApprovalAsked(Question(name, "May I?"))) == ["svc.confirmation.requested"] * shown

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
