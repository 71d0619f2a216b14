import pytest

from svc_proto.phone.backend import CommandRefused, PhoneCommand
from svc_proto.phone.outgoing_actions import READERS
from svc_proto.phone.safety import route_rules
from svc_proto.phone.safety.confirmation import ConfirmationRequest
from tests.phone.safety.scripted_backend import command

TEXTS = {"w0:1": "Send", "w0:2": "Cancel", "5": "Five"}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/tap_text", {"text": "Send"}, ("Send",)),
        ("/type", {"text": "pay it"}, ()),  # typing has no effect
        *(("/type", body, ()) for body in ({"text": " "}, {"text": None}, {"text": ["send"]}, {"text": {"a": "send"}})),
        ("/tap_text", {"text": 12}, ("12",)),
        ("/tap_text", {"text": True}, ("true",)),
        ("/tap_text", {"text": 1.5}, ("1.5",)),
        ("/tap_text", {"text": 2**1024 - 1}, (str(2**1024 - 1),)),
        ("/type", {"text": 2**1024}, ()),
        ("/type", {"nodeId": "w0:1"}, ()),
        ("/tap", {"nodeId": "w0:1"}, ("Send",)),
        ("/tap", {"node_id": "w0:1"}, ("Send",)),
        ("/tap", {"nodeId": 5}, ("Five",)),
        ("/tap", {"nodeId": "w9:9"}, ()),
        ("/tap", {"x": 1, "y": 2}, ()),
        ("/tap", {"x": 1, "y": 2, "text": "Buy"}, ("Buy",)),
        ("/long_press", {"nodeId": "w0:2", "node_id": "w0:1", "text": "x"}, ("x", "Cancel", "Send")),
        ("/send_sms", {"text": "send"}, ()),
        ("/swipe", {"text": "send"}, ()),
    ],
)
def test_inspected_texts(path: str, body: dict[str, object], expected: tuple[str, ...]) -> None:
    assert route_rules.inspected_texts(command(path, **body), TEXTS.get) == expected


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/open_app", {"package": "com.venmo"}, ("com.venmo",)),
        ("/send_intent", {"package": " com.venmo "}, ("com.venmo",)),
        ("/broadcast", {"component": "com.venmo/.Main"}, ("com.venmo",)),
        ("/send_intent", {"package": "a", "component": "b"}, ("a", "b")),
        ("/share_media", {"package": None}, ()),
        ("/send_mms", {}, ()),
        ("/tap", {"package": "com.venmo"}, ()),
    ],
)
def test_inspected_packages(path: str, body: dict[str, object], expected: tuple[str, ...]) -> None:
    assert route_rules.target_packages(command(path, **body)) == expected


def test_confirmation_shows_the_outgoing_data() -> None:
    question = route_rules.confirmation_request_of(command("/send_sms", to="+15550100", body="on my way"))
    assert (question.action, question.verb, question.text) == ("send_sms", None, "+15550100\non my way")
    question = route_rules.confirmation_request_of(command("/send_fax", to="+1", pages=2))
    assert (question.action, question.verb, question.text) == ("send_fax", None, '{"to":"+1","pages":2}')
    assert set(READERS) == set(route_rules.ALWAYS_ASK)


@pytest.mark.parametrize("path", route_rules.ALWAYS_ASK)
def test_invalid_command_needs_no_confirmation(path: str) -> None:
    with pytest.raises(CommandRefused):
        route_rules.confirmation_request_of(PhoneCommand("POST", path, {}))


def test_denial_names_the_action_and_is_final() -> None:
    reply = route_rules.denied_reply(route_rules.confirmation_request_of(command("/call", number="+1")))
    assert reply.status == 403
    assert reply.result["error"] == "user denied destructive action"  # wording of the specification
    assert reply.result["final"] is True
    assert str(reply.result["instruction"]).startswith("The user did not allow call: +1\n")
    assert "Do not retry" in str(reply.result["instruction"])
    nothing = route_rules.denied_reply(ConfirmationRequest(action="call", verb=None, text="")).result["instruction"]
    assert str(nothing).startswith("The user did not allow call\n")


def test_pressed_texts_of_the_backend_are_inspected() -> None:
    def pressed(_: PhoneCommand) -> list[str]:
        return ["Send money", " "]

    asked = command("/tap_text", text="en")
    assert route_rules.inspected_texts(asked, TEXTS.get, pressed) == ("en", "Send money")
    assert route_rules.inspected_texts(command("/swipe"), TEXTS.get, pressed) == ()
