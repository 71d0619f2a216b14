import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import PhoneCommand
from svc_proto.phone.safety.confirmation import (
    ConfirmationRequest,
    ConfirmationState,
    ConfirmationTrigger,
    SafetyConfirmation,
    TrustedActions,
    clamp_timeout,
)

NOW = Moment(100.0, 1_800_000_000.0)
TAP_SEND = ConfirmationRequest(action="tap", verb="send", text="Send")
TYPE_PAY = ConfirmationRequest(action="type", verb="pay", text="pay it")
SMS = ConfirmationRequest(action="send_sms", verb=None, text="send it")


def test_an_overlay_is_answered_once() -> None:
    command = PhoneCommand("POST", "/tap_text", {"text": "Send"}, "r1")
    overlay = SafetyConfirmation(confirmation_id="c1", command=command, question=TAP_SEND, context=(), deadline=125.0)
    overlay.step(ConfirmationTrigger.ASK)
    assert not overlay.due(NOW.at(124.999))
    assert overlay.due(NOW.at(125.0))
    overlay.step(ConfirmationTrigger.DENY)
    for trigger in ConfirmationTrigger:
        with pytest.raises(LocalProtocolError):
            overlay.step(trigger)
    assert overlay.state is ConfirmationState.DENIED


@pytest.mark.parametrize(("asked", "kept"), [(0, 10), (9.9, 10), (10, 10), (25, 25), (60, 60), (61, 60)])
def test_the_time_out_is_clamped(asked: float, kept: float) -> None:
    assert clamp_timeout(asked) == kept


def test_trust_is_by_verb_and_by_action_and_can_be_stored() -> None:
    trust = TrustedActions()
    trust.remember(TAP_SEND)
    assert trust.covers(TAP_SEND)
    assert trust.covers(ConfirmationRequest(action="tap_text", verb="send", text="send all"))
    assert not trust.covers(TYPE_PAY)
    assert not trust.covers(SMS)
    trust.remember(SMS)
    assert trust.covers(SMS)
    assert not trust.covers(ConfirmationRequest(action="send_mms", verb=None, text="send it"))
    assert (trust.verbs, trust.actions) == (("send",), ("send_sms",))
    trust = TrustedActions(verbs=["pay"], actions=["call", "send_sms"])
    assert trust.covers(TYPE_PAY)
    assert trust.covers(SMS)
    trust.reset()
    assert not trust.covers(TYPE_PAY)
    assert not trust.covers(SMS)
    assert trust.verbs == trust.actions == ()
