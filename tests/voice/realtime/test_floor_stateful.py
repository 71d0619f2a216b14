"""Waiting for playback in any conversation: each wait ends once, in time, and what it holds back comes after it."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from svc_proto.voice.realtime.orders import Emit, Note, Order, ReadAloud, Respond, StartRun
from tests.voice.realtime.book import Talk

ACK, RESULT = "pre_svc_ack", "tool_result_summary"
A_MOMENT = 0.125  # s; times are sums of eighths, which floats hold exactly
WAYS = ("answering", "consulted", "acknowledging", "waiting", "judging")
RECENT = st.integers(0, 1)  # 0: the newest response


class WaitsAgainstAModel(RuleBasedStateMachine):
    """`waits` are those that the client was asked for: reason and call, and until when."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = Talk()
        self.waits: dict[tuple[str, str], float] = {}
        self.responses = 0
        self.calls = 0
        self.run = ""  # the call of the last one

    @initialize(way=st.sampled_from(WAYS))
    def it_is_under_way(self, way: str) -> None:
        self.responses, self.calls, self.run = 2, 1, "k1"
        self._see(self.talk.do(way))

    # --- the person ---

    @rule(how=st.sampled_from(("aloud", "by text", "not at all")))
    def begins_something_new(self, how: str) -> None:
        # Wire terminal-voice 6.6: "A new user turn while a delivery is pending cancels it". The run itself goes on.
        self.waits = {wait: until for wait, until in self.waits.items() if wait[0] == ACK}
        if how == "not at all":  # 6.8: a cancel ends the run, too
            self.waits = {}
        deeds = {"aloud": "commit", "by text": "say 'how full is the disk'", "not at all": "cancel"}
        self._see(self.talk.do(deeds[how]))

    @rule(call_id=st.sampled_from((None, "k1", "k2", "of nobody")))
    def has_played(self, call_id: str | None) -> None:
        """Wire terminal-voice 6.6 step 4: "a `playback.drained` for any call ends it"."""
        orders = self.talk.do(f"drained {call_id or '-'!r}")
        told = [order.fields["call_id"] for order in orders if isinstance(order, Note)]
        assert told == [call for _, call in sorted(self.waits)]
        self._see(orders)
        assert self.waits == {}

    # --- the provider ---

    @rule(aloud=st.booleans())
    def answers(self, aloud: bool) -> None:
        self.responses += 1
        name = f"r{self.responses}"
        self._see(self.talk.do(f"audio {name}" if aloud else f"text {name} 'Yes. '"))

    @rule(ago=RECENT, run=st.booleans())
    def calls_a_function(self, ago: int, run: bool) -> None:
        self.calls += 1
        name = f"k{self.calls}"
        before = self.talk.state
        self._see(self.talk.do(f"call r{self.responses - ago} {'run' if run else 'status'} {name}"))
        if run and before == "answering" and self.talk.state == "working":
            self.run = name

    @rule(ago=RECENT)
    def has_answered(self, ago: int) -> None:
        self._see(self.talk.do(f"response_done r{self.responses - ago}"))

    # --- the run ---

    @precondition(lambda self: self.run)
    @rule()
    def has_run(self) -> None:
        self._see(self.talk.do(f"answers {self.run}"))

    # --- time ---

    @rule(before=st.sampled_from((0.0, A_MOMENT)))
    def waits_for_a_deadline(self, before: float) -> None:
        due = self.talk.broker.due
        if due is not None and due - before > self.talk.now:
            self._wait(due - before - self.talk.now)

    @rule(eighths=st.integers(1, 16))
    def waits_a_while(self, eighths: int) -> None:
        self._wait(eighths * A_MOMENT)

    def _wait(self, seconds: float) -> None:
        end = self.talk.now + seconds
        while (due := self.talk.broker.due) is not None and due <= end:
            self._see(self.talk.after(due - self.talk.now))
        self._see(self.talk.after(end - self.talk.now))

    # --- what must hold ---

    @invariant()
    def none_is_too_long(self) -> None:
        # Wire terminal-voice 6.6 steps 1 and 4: "wait <= 2.5 s".
        assert all(self.talk.now < until <= self.talk.now + 2.5 for until in self.waits.values())

    @invariant()
    def a_turn_that_waits_has_its_wait(self) -> None:
        waiting = self.talk.state in ("consulted", "waiting")
        assert [reason for reason, _ in self.waits].count(RESULT) == waiting

    def _see(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Emit(type="voice.playback_drain.requested", fields=fields):
                    assert fields["timeout_ms"] == 2500
                    wait = (str(fields["reason"]), str(fields["call_id"]))
                    assert wait not in self.waits
                    self.waits[wait] = self.talk.now + 2.5
                case Emit(type="voice.playback_drain.timeout", fields=fields):
                    assert self.waits.pop((str(fields["reason"]), str(fields["call_id"]))) == self.talk.now
                case Note(type="voice.playback_drain.completed", fields=fields):
                    assert self.waits.pop((str(fields["reason"]), str(fields["call_id"]))) > self.talk.now
                case StartRun(call_id=call_id):
                    assert (ACK, call_id) not in self.waits
                case Respond() | ReadAloud():
                    assert RESULT not in [reason for reason, _ in self.waits]
                case _:
                    pass


TestWaitsAgainstAModel = WaitsAgainstAModel.TestCase
TestWaitsAgainstAModel.settings = settings(max_examples=50, stateful_step_count=20)
