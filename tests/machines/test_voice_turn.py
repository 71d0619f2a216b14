"""The life of a spoken turn: the table is its document's, and each way through it keeps its promises."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines import voice_job, voice_turn
from svc_proto.machines.table import step
from svc_proto.machines.voice_job import JOB_TABLE, JobState, JobTrigger
from svc_proto.machines.voice_turn import TURN_TABLE, TurnState, TurnTrigger
from tests.machines.lifecycles import check_table

ROW = re.compile(r"^\| (\w+) +\| ([A-Z]+) +\| (\w+)", re.MULTILINE)


def test_the_table_of_turns_is_the_documents() -> None:
    rows = [(state, (TurnTrigger[word],), after) for state, word, after in ROW.findall(voice_turn.__doc__ or "")]
    check_table(TURN_TABLE, TurnState, TurnTrigger, rows)


def test_the_table_of_jobs_is_the_documents() -> None:
    rows = [(state, (JobTrigger[word],), after) for state, word, after in ROW.findall(voice_job.__doc__ or "")]
    check_table(JOB_TABLE, JobState, JobTrigger, rows)


class TurnAgainstItsHistory(RuleBasedStateMachine):
    """`history` is what has happened since somebody last spoke up, or since nothing was going on."""

    def __init__(self) -> None:
        super().__init__()
        self.state = TurnState.IDLE
        self.history: list[TurnTrigger] = []

    @rule(trigger=st.sampled_from(TurnTrigger))
    def happens(self, trigger: TurnTrigger) -> None:
        if not self._may(trigger):
            with pytest.raises(LocalProtocolError):
                step(TURN_TABLE, self.state, trigger)
            return
        self.state = step(TURN_TABLE, self.state, trigger)
        begins = trigger in (TurnTrigger.HEAR, TurnTrigger.ASK, TurnTrigger.END)
        self.history = [trigger] if begins else [*self.history, trigger]

    @rule(data=st.data())
    def goes_on(self, data: st.DataObject) -> None:
        """Towards the ear, so that the later states are seen often."""
        onwards = (TurnTrigger.ASK, TurnTrigger.WORK, TurnTrigger.SETTLE, TurnTrigger.DELIVER, TurnTrigger.RENDER)
        self.happens(data.draw(st.sampled_from([trigger for trigger in onwards if self._may(trigger)][-2:])))

    @invariant()
    def the_person_may_speak_up_and_all_may_end_at_any_time(self) -> None:
        # Wire terminal-voice 6.8: `response.cancel` "then always `voice.response.done`".
        assert step(TURN_TABLE, self.state, TurnTrigger.HEAR) is TurnState.HEARING
        assert step(TURN_TABLE, self.state, TurnTrigger.ASK) is TurnState.ANSWERING
        assert step(TURN_TABLE, self.state, TurnTrigger.END) is TurnState.IDLE or self.state is TurnState.IDLE

    @invariant()
    def it_is_where_its_last_word_has_brought_it(self) -> None:
        # Wire terminal-voice 6.6, steps 4 to 6: the result is settled, spoken by the provider, else by the relay.
        after = {
            TurnTrigger.HEAR: TurnState.HEARING,
            TurnTrigger.ASK: TurnState.ANSWERING,
            TurnTrigger.CONSULT: TurnState.CONSULTED,
            TurnTrigger.WORK: TurnState.WORKING,
            TurnTrigger.SETTLE: TurnState.SETTLING,
            TurnTrigger.DELIVER: TurnState.DELIVERING,
            TurnTrigger.RENDER: TurnState.RENDERING,
            TurnTrigger.END: TurnState.IDLE,
        }
        assert self.state is (after[self.history[-1]] if self.history else TurnState.IDLE)

    def _may(self, trigger: TurnTrigger) -> bool:
        """Only a response that was asked for calls a function; an answer goes on its way step by step."""
        before = self.history[-1] if self.history else TurnTrigger.END
        match trigger:
            case TurnTrigger.CONSULT | TurnTrigger.WORK:
                return before is TurnTrigger.ASK
            case TurnTrigger.SETTLE:
                return before in (TurnTrigger.ASK, TurnTrigger.WORK, TurnTrigger.END)  # END: from the background
            case TurnTrigger.DELIVER:
                return before is TurnTrigger.SETTLE
            case TurnTrigger.RENDER:
                return before in (TurnTrigger.DELIVER, TurnTrigger.END)
            case _:
                return True


TestTurnAgainstItsHistory = TurnAgainstItsHistory.TestCase
TestTurnAgainstItsHistory.settings = settings(max_examples=30, stateful_step_count=20)
