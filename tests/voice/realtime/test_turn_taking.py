import pytest

from svc_proto.voice.realtime.turn_taking import TurnTaking, TurnTakingState, TurnTakingTrigger

# tests/voice/realtime/test_native_conversation.py has the turns, and test_native_conversation_stateful.py all orders.


@pytest.mark.parametrize("trigger", TurnTakingTrigger)
def test_only_the_end_of_a_turn_ends_its_wait_for_playback(trigger: TurnTakingTrigger) -> None:
    floor = TurnTaking()
    floor.step(TurnTakingTrigger.ASK)
    floor.wait_for_playback("k1", None)
    floor.step(trigger)
    assert (floor.drain is None) is (floor.state is TurnTakingState.IDLE) is (trigger is TurnTakingTrigger.END)
