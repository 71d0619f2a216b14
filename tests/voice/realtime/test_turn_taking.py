"""Whose turn it is: each way through the floor keeps its promises."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.voice.realtime.actions import Respond
from svc_proto.voice.realtime.turn_taking import FLOOR_TABLE, Floor, FloorState, FloorTrigger

AFTER = {
    FloorTrigger.HEAR: FloorState.HEARING,
    FloorTrigger.ASK: FloorState.ANSWERING,
    FloorTrigger.CONSULT: FloorState.CONSULTED,
    FloorTrigger.WORK: FloorState.WORKING,
    FloorTrigger.TELL: FloorState.TELLING,
    FloorTrigger.END: FloorState.IDLE,
}


class FloorAgainstItsHistory(RuleBasedStateMachine):
    """`last` is what has happened last."""

    def __init__(self) -> None:
        super().__init__()
        self.floor = Floor()
        self.last = FloorTrigger.END

    @rule(trigger=st.sampled_from(FloorTrigger), within=st.sampled_from((None, 2.5)))
    def happens(self, trigger: FloorTrigger, within: float | None) -> None:
        if not self._may(trigger):
            with pytest.raises(LocalProtocolError):
                self.floor.go(trigger)
            return
        self.floor.go(trigger, within)
        self.last = trigger
        assert self.floor.due == within

    @rule()
    def is_to_be_played(self) -> None:
        self.floor.wait_for_playback("k1", None)
        assert self.floor.drain is not None

    @rule()
    def a_response_is_wanted(self) -> None:
        if self._may(FloorTrigger.ASK):
            free = not self.floor.responses.talking
            assert self.floor.respond(100.0) == [Respond()] * (free or self.floor.responses.due is None)
            self.last = FloorTrigger.ASK
            assert self.floor.drain is None

    @invariant()
    def the_person_may_speak_up_and_all_may_end_at_any_time(self) -> None:
        # Wire terminal-voice 6.8: `response.cancel` "then always `voice.response.done`".
        for trigger in (FloorTrigger.HEAR, FloorTrigger.ASK, FloorTrigger.END):
            assert FLOOR_TABLE[self.floor.state, trigger] is AFTER[trigger]

    @invariant()
    def it_is_where_its_last_word_has_brought_it(self) -> None:
        assert self.floor.state is AFTER[self.last]

    def _may(self, trigger: FloorTrigger) -> bool:
        """Only a response that was asked for calls a function; an answer is told when nobody else speaks."""
        match trigger:
            case FloorTrigger.CONSULT | FloorTrigger.WORK:
                return self.last is FloorTrigger.ASK
            case FloorTrigger.TELL:
                return self.last in (FloorTrigger.ASK, FloorTrigger.WORK, FloorTrigger.END)
            case _:
                return True


TestFloorAgainstItsHistory = FloorAgainstItsHistory.TestCase
TestFloorAgainstItsHistory.settings = settings(max_examples=30, stateful_step_count=20)
