"""Turns under random clients and agents: ends and texts of streams, order of stored rows, and no starvation."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.agent.interface import TextDelta, ToolCallFinished, ToolCallStarted
from svc_proto.api.config import ApiConfig
from svc_proto.commands import Level
from tests.api.harness import KEY, ApiCall
from tests.api.scripted_agent import ScriptedTurn, TurnHarness, call_of, names, streamed_text


class Turns(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.book = TurnHarness(ApiConfig(key=KEY, max_concurrent_runs=2))
        self.sessions = [self.book.session() for _ in range(3)]
        self.calls: list[ApiCall] = []
        self.said: dict[ScriptedTurn, int] = {}

    @property
    def working(self) -> list[ScriptedTurn]:
        return [hand for hand in self.book.scripted.hands if hand.outcome is None and not hand.cancelled]

    @rule(session=st.integers(0, 2))
    def post(self, session: int) -> None:
        call = self.book.chat(self.sessions[session], {"message": f"m{len(self.calls)}"})
        assert call.head.status == 200
        self.calls.append(call)

    @rule(session=st.integers(0, 2), named=st.booleans())
    def complete(self, session: int, named: bool) -> None:
        headers = [(b"x-svc-session-id", self.sessions[session].encode())] if named else []
        body = {"messages": [{"role": "user", "content": "c"}], "stream": True}
        call = self.book.call("POST", "/v1/chat/completions", body, headers=headers)
        assert call.head.status in (200, 429)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), text=st.sampled_from(["a", "ü\n", " b"]))
    def say(self, data: st.DataObject, text: str) -> None:
        data.draw(st.sampled_from(self.working)).emit(TextDelta(text))

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def use_a_tool(self, data: st.DataObject) -> None:
        hand = data.draw(st.sampled_from(self.working))
        number = self.said[hand] = self.said.get(hand, 0) + 1
        tool = call_of("terminal", f"call_{number}")
        hand.store_calls(tool)
        hand.emit(ToolCallStarted(tool))
        if data.draw(st.booleans()):
            hand.store_result(tool, "x")
            hand.emit(ToolCallFinished(call=tool, output="x"))

    @precondition(lambda self: self.working)
    @rule(data=st.data(), finish=st.sampled_from(["stop", "length", "error"]))
    def finish(self, data: st.DataObject, finish: str) -> None:
        error = "gone" if finish == "error" else None
        data.draw(st.sampled_from(self.working)).finish(finish, error=error, code=error)

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.calls))
        run_id = dict(call.head.headers)[b"x-svc-run-id"].decode()
        assert self.book.request("POST", f"/v1/runs/{run_id}/stop").status in (200, 404)

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.calls))
        if not call.gone:
            call.gone = True
            call.vanish()

    @rule(seconds=st.sampled_from([0.1, 31.0]))
    def wait(self, seconds: float) -> None:
        self.book.after(seconds)

    @invariant()
    def somebody_works_while_somebody_waits(self) -> None:
        assert len(self.working) == min(len(self.working), 2)
        if len(self.book.api.runs):
            assert self.working

    def teardown(self) -> None:
        while self.working:
            self.working[0].finish()
        assert len(self.book.api.runs) == 0
        assert not [log for log in self.book.logs if log.level >= Level.WARNING]
        for call in self.calls:
            self.check(call)
        for session in self.sessions:
            rows = self.book.messages(session)
            assert len({row["id"] for row in rows}) == len(rows)
            runs = [row["run_id"] for row in rows]
            assert sorted(set(runs), key=runs.index) == [row["run_id"] for row in rows if row["role"] == "user"]
            assert all(runs.index(run) + runs.count(run) - 1 == len(runs) - 1 - runs[::-1].index(run) for run in runs)

    def check(self, call: ApiCall) -> None:
        told = names(call)
        if call.gone and (not told or told[-1] != "done"):
            return  # disconnected before the end
        assert told.count("done") == 1
        assert told[-1] == "done"
        assert [data["seq"] for _, data in call.named_events()] == list(range(1, len(told) + 1))
        (content,) = [data["content"] for name, data in call.named_events() if name == "assistant.completed"] or [None]
        assert (content is None) == ("error" in told)
        if content is not None:
            assert streamed_text(call) == content


TestTurns = Turns.TestCase
TestTurns.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
