"""Tests of the texts at the target of a touch, which a gate reads before the press."""

import pytest

from clients.phone.emulator.sample_apps import BANK, MAIL
from clients.phone.emulator.view_tree import find_node
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.phone.safety.confirmation import AwaitingConfirmation
from svc_proto.phone.safety.gate import SafetyGate
from tests.clients.emulator.driver import EmulatorDriver, opened


def pressed(driver: EmulatorDriver, path: str, /, **body: object) -> tuple[str, ...]:
    return driver.backend.texts_pressed(PhoneCommand("POST", path, body, "r1"))


def composing() -> EmulatorDriver:
    driver = opened(MAIL)
    driver.post("/tap_text", text="Compose")
    return driver


def test_a_part_of_a_text_gives_the_whole_text() -> None:
    driver = composing()
    for text in ("Send", "en", "SEND "):
        assert pressed(driver, "/tap_text", text=text) == ("Send",)
    assert pressed(driver, "/tap_text", text="en", exact=True) == ()
    driver.device.permissions.accessibility = False
    assert pressed(driver, "/tap_text", text="Send") == ()  # there is no screen


def test_an_entry_gives_all_its_texts(mail: EmulatorDriver) -> None:
    assert pressed(mail, "/tap_text", text="lunch on") == ("Ada", "Lunch on Friday?")


def test_the_node_under_a_point() -> None:
    driver = composing()
    node_id = driver.node_id(text="Send")
    seen = find_node(driver.device.windows(), node_id)
    assert seen is not None
    x, y = seen.node.bounds.center
    assert pressed(driver, "/tap", nodeId=node_id) == ("Send",)
    assert pressed(driver, "/tap", x=x, y=y) == ()  # disabled: nothing reacts there
    for field, text in (("to", "a@b.c"), ("subject", "x"), ("body", "y")):
        driver.device.texts[MAIL, field] = text
    assert pressed(driver, "/tap", x=x, y=str(y)) == ("Send",)
    assert pressed(driver, "/tap", x=x) == ()
    assert pressed(driver, "/tap", x=1, y=2) == ()
    assert pressed(driver, "/tap", nodeId="w9:9") == ()


def test_a_node_that_something_covers() -> None:
    driver = opened(BANK)
    driver.post("/press_key", key="power_dialog")
    first = next(node for node in driver.nodes() if node["text"] == "Checking")
    assert str(first["nodeId"]).startswith("w1:")
    assert pressed(driver, "/tap", nodeId=first["nodeId"]) == ("Checking", "Power off")


def test_a_long_press(mail: EmulatorDriver) -> None:
    entry = next(node for node in mail.nodes() if node["longClickable"])
    bounds = entry["bounds"]
    assert isinstance(bounds, dict)
    x, y = bounds["left"] + 5, bounds["top"] + 5
    assert pressed(mail, "/long_press", node_id=entry["nodeId"]) == ("Ada", "Lunch on Friday?")
    assert pressed(mail, "/long_press", x=x, y=y) == ("Ada", "Lunch on Friday?")
    assert pressed(mail, "/long_press", node_id="w9:9") == ()
    assert pressed(mail, "/long_press", y=y) == ()


@pytest.mark.parametrize(
    ("path", "body"),
    [("/tap_text", {}), ("/tap_text", {"text": ["x"]}), ("/tap_text", {"text": "no such thing"}), ("/swipe", {})],
)
def test_commands_that_press_nothing(path: str, body: dict[str, object]) -> None:
    assert EmulatorDriver().backend.texts_pressed(PhoneCommand("POST", path, body)) == ()


def test_a_text_without_a_clickable_ancestor(mail: EmulatorDriver) -> None:
    mail.post("/tap_text", text="Ada")
    body = "Shall we meet at noon at the harbour? Tell me by tomorrow."
    assert pressed(mail, "/tap_text", text="Shall we meet") == (body,)
    assert mail.post("/tap_text", text="Shall we meet")["via"] == "coordinate fallback"


def test_a_part_of_a_destructive_text_is_recognized(driver: EmulatorDriver) -> None:
    backend = driver.backend
    gate = SafetyGate(backend, flavor=backend.build, wake=backend.wake, consents=backend.consents)
    gate.set_master(True, driver.now)
    driver.post("/open_app", package=MAIL)
    driver.post("/tap_text", text="Ada")
    awaiting = gate.execute(PhoneCommand("POST", "/tap_text", {"text": "elet"}, "r1"), driver.now)
    assert isinstance(awaiting, AwaitingConfirmation)
    (confirmation,) = gate.confirmations()
    assert (confirmation.question.verb, confirmation.question.text) == ("delete", "Delete")
    assert not backend.outbox
    answer = gate.decide(awaiting.confirmation_id, allow=True, now=driver.now)
    assert answer is not None
    assert isinstance(answer[1], CommandReply)
    assert answer[1].status == 200
    assert [item.kind for item in backend.outbox] == ["delete"]
