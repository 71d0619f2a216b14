from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.voice.realtime.actions import Respond
from svc_proto.voice.realtime.turn_taking import TURN_TAKING_TABLE, TurnTaking, TurnTakingState, TurnTakingTrigger

AFTER = {
    TurnTakingTrigger.HEAR: TurnTakingState.HEARING,
    TurnTakingTrigger.ASK: TurnTakingState.ANSWERING,
    TurnTakingTrigger.CONSULT: TurnTakingState.CONSULTED,
    TurnTakingTrigger.WORK: TurnTakingState.WORKING,
    TurnTakingTrigger.TELL: TurnTakingState.TELLING,
    TurnTakingTrigger.END: TurnTakingState.IDLE,
}


class FloorAgainstItsHistory(RuleBasedStateMachine):
    """`TurnTaking` beside its history; `last` is the latest trigger."""

    def __init__(self) -> None:
        super().__init__()
        self.floor = TurnTaking()
        self.last = TurnTakingTrigger.END

    @rule(trigger=st.sampled_from(TurnTakingTrigger), within=st.sampled_from((None, 2.5)))
    def happens(self, trigger: TurnTakingTrigger, within: float | None) -> None:
        if not self._may(trigger):
            with pytest.raises(LocalProtocolError):
                self.floor.step(trigger)
            return
        self.floor.step(trigger, within)
        self.last = trigger
        assert self.floor.due == within

    @rule()
    def is_to_be_played(self) -> None:
        self.floor.wait_for_playback("k1", None)
        assert self.floor.drain is not None

    @rule()
    def a_response_is_wanted(self) -> None:
        if self._may(TurnTakingTrigger.ASK):
            free = not self.floor.responses.talking
            assert self.floor.respond(100.0) == [Respond()] * (free or self.floor.responses.due is None)
            self.last = TurnTakingTrigger.ASK
            assert self.floor.drain is None

    @invariant()
    def the_person_may_speak_up_and_all_may_end_at_any_time(self) -> None:
        # Wire terminal-voice 6.8: `response.cancel` "then always `voice.response.done`".
        for trigger in (TurnTakingTrigger.HEAR, TurnTakingTrigger.ASK, TurnTakingTrigger.END):
            assert TURN_TAKING_TABLE[self.floor.state, trigger] is AFTER[trigger]

    @invariant()
    def it_is_where_its_last_word_has_brought_it(self) -> None:
        assert self.floor.state is AFTER[self.last]

    def _may(self, trigger: TurnTakingTrigger) -> bool:
        """Report whether the trigger may follow the last one.

        `CONSULT` and `WORK` follow only `ASK`; `TELL` follows only `ASK`, `WORK` or `END`. Any other may always follow.
        """
        match trigger:
            case TurnTakingTrigger.CONSULT | TurnTakingTrigger.WORK:
                return self.last is TurnTakingTrigger.ASK
            case TurnTakingTrigger.TELL:
                return self.last in (TurnTakingTrigger.ASK, TurnTakingTrigger.WORK, TurnTakingTrigger.END)
            case _:
                return True


TestFloorAgainstItsHistory = FloorAgainstItsHistory.TestCase
TestFloorAgainstItsHistory.settings = settings(max_examples=30, stateful_step_count=20)
