import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.phone.emulator.backend import EmulatedPhone, find_action
from clients.phone.emulator.sample_apps import BANK, MAIL
from clients.phone.emulator.view_tree import traverse
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneBackend
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.clients.emulator.driver import EmulatorDriver, check

NOW = Moment(1.0, 1_795_310_560.0)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12)
WORDS = st.sampled_from(
    [
        MAIL, BANK, "\ud800", "\U0001f600", "mailto:a@b.c", "android.intent.action.VIEW", "MEDIA:/a.png", "true",
        "false", "up", "down", "left", "right", "home", "lock_screen", "notifications", "quick_settings", "recents",
        "play", "volume", "medium", "Compose", "Send", "Ada", "e", "w0:0", "w0:3", "w0:9", "w1:2", "12", "12.0", "-1",
        "+15550100"
    ]
)  # fmt: skip
POINTS = st.integers(min_value=-10, max_value=3000)
VALUES = st.recursive(
    SCALARS | WORDS | POINTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    re.findall(
        r"\w+",
        """
        nodeId node_id x y duration duration_ms text exact start_x start_y end_x end_y direction distance key ms
        package action level data component category extras enabled limit since query number to body attachments
        media media_tokens paths path title previous_hash class_name clickable resource_id include_bounds content_type
        """,
    )
)
BODIES = st.dictionaries(NAMES | st.text(max_size=5), VALUES, max_size=6)


def test_the_table_has_every_route() -> None:
    assert all(find_action(*route) for route in DEVICE_CONTROL)
    assert find_action("POST", "/return_to_svc") is find_action("POST", "/return_to_hermes")


def test_the_emulator_is_a_phone_backend() -> None:
    backend: PhoneBackend = EmulatedPhone()
    for brand in (SVC, HERMES):
        found = backend.on_uploaded("tok", brand.scheme)
        assert found == CommandReply(200, {"media": f"MEDIA:{brand.name}-relay://tok"})


def test_an_unknown_path_is_404_and_another_method_405(driver: EmulatorDriver) -> None:
    driver.refused("/nothing", 404)
    driver.refused("/ping\ud800", 404)
    assert driver.refused("/screen", 405)["error"] == "method: /screen takes GET"
    assert driver.reply("DELETE", "/clipboard").result["error"] == "method: /clipboard takes GET or POST"


@settings(max_examples=50, deadline=None)
@given(commands=st.lists(st.tuples(st.sampled_from(sorted(DEVICE_CONTROL)), BODIES), min_size=1, max_size=12))
def test_any_body_gets_a_proper_answer(commands: list[tuple[tuple[str, str], dict[str, object]]]) -> None:
    driver = EmulatorDriver()
    for (method, path), body in commands:
        check(driver.perform(method, path, body))
        driver.device.wake(driver.now)


@settings(max_examples=25, deadline=None)
@given(method=st.text(max_size=6), path=st.text(st.characters(), max_size=12), body=BODIES)
def test_any_method_and_path_get_a_proper_answer(method: str, path: str, body: dict[str, object]) -> None:
    check(EmulatorDriver().perform(method, path, body))


FIELDS = """
GET /screen: include_bounds; GET /events: limit since; /events/stream: enabled; /diff_screen: previous_hash;
/find_nodes: text limit; /describe_node: nodeId; /tap: nodeId x duration_ms; /tap_text: text; /long_press: duration;
/drag: start_x; /type: text; /swipe: end_y; /scroll: direction; /press_key: key; /wait: ms; /open_app: package;
/clipboard: text; /media: action; /send_intent: action; /broadcast: action; /search_contacts: query; /call: number;
/send_sms: to; /send_mms: to; /share_media: text
"""  # by route, of which those without a method are of POST


@pytest.mark.parametrize("row", " ".join(FIELDS.split()).split("; "))
@pytest.mark.parametrize("value", [[], {"a": 1}])
def test_a_list_or_object_in_place_of_a_scalar_is_named(row: str, value: object) -> None:
    route, fields = row.split(": ")
    for field in fields.split():
        assert field in str(EmulatorDriver().refused(route, **{field: value})["error"])


def test_the_status_has_every_member() -> None:
    status = EmulatedPhone(name="Pixel 7a").status(NOW)
    phone = {"name": "Pixel 7a", "battery_percent": 64, "screen_on": True, "current_app": "com.example.launcher"}
    build = {"flavor": "sideload", "application_id": "com.example.client.sideload"}
    assert status.pop("device") == {**phone, **build}
    granted = ("accessibility", "screen_capture", "overlay", "notification_listener")
    allowed = ["device_control_supported", "master_enabled", *(f"{name}_granted" for name in granted)]
    safety = {"blocklist_count": 0, "destructive_verbs_count": 0, "auto_disable_minutes": 0, "auto_disable_at_ms": None}
    permanent = "clipboard_read clipboard_write communications contacts_read device_info location_read media_control"
    unlimited = ["screen_control", "screen_inspection"]
    capabilities = {"permanent": [*permanent.split(), "outbound_sharing"], "timed": {}, "unlimited": unlimited}
    assert status == {
        "bridge": dict.fromkeys(allowed, True),
        "safety": safety,
        "capabilities": {"schema_version": 1, **capabilities},
        "unattended": {"supported": True, "enabled": False, "credential_lock_detected": False},
        "screen_on": True,
        "battery": 64,
        "current_app": "com.example.launcher",
        "accessibility_enabled": True,
        "ts": 1_795_310_560_000,
    }


def test_the_status_of_a_store_build_and_without_accessibility() -> None:
    status = EmulatedPhone(build="googlePlay").status(NOW)
    bridge = status["bridge"]
    assert isinstance(bridge, dict)
    assert not any(value for key, value in bridge.items() if key != "notification_listener_granted")
    backend = EmulatedPhone()
    backend.device.permissions.accessibility = False
    assert backend.status(NOW)["accessibility_enabled"] is False
    assert backend.status(NOW)["current_app"] == "unknown"
    assert backend.foreground == "unknown"


def test_read_a_mail_and_answer_it(driver: EmulatorDriver) -> None:
    assert driver.post("/tap_text", text="Mail")["via"] == "parent click (1 levels up)"
    assert driver.get("/current_app") == {"package": MAIL}
    driver.post("/tap_text", text="lunch on")
    assert "Shall we meet at noon at the harbour? Tell me by tomorrow." in driver.texts()
    driver.post("/tap", nodeId=driver.node_id(text="Reply"))
    assert driver.backend.text_of(driver.node_id(viewId=f"{MAIL}:id/to")) == "ada@example.com"
    send = driver.node_id(text="Send")
    assert driver.post("/describe_node", nodeId=send)["enabled"] is False
    driver.post("/tap", nodeId=send)  # nothing to send yet
    assert not driver.backend.outbox
    driver.post("/tap", nodeId=driver.node_id(viewId=f"{MAIL}:id/body"))
    assert driver.node_id(focused=True) == driver.node_id(viewId=f"{MAIL}:id/body")
    driver.post("/type", text="Gladly.")
    before = driver.get("/screen_hash")["hash"]
    driver.post("/tap", nodeId=driver.node_id(text="Send"))
    assert driver.post("/diff_screen", previous_hash=before)["changed"] is True
    (item,) = driver.backend.outbox
    assert (item.kind, item.at_ms) == ("mail", int(driver.now.wall * 1000) - 1000)
    fields = {"to": "ada@example.com", "subject": "Re: Lunch on Friday?", "body": "Gladly."}
    assert item.details == {"app": MAIL, "screen": "compose", "fields": fields}
    assert "Message sent" in driver.texts()
    driver.post("/tap_text", text="Back to the inbox")
    assert driver.texts()[0] == "Inbox"


def test_a_disabled_node_does_nothing(mail: EmulatorDriver) -> None:
    mail.post("/tap_text", text="Compose")
    before = mail.nodes()
    (send,) = [seen.node for seen in traverse(mail.device.windows()) if seen.node.text == "Send"]
    mail.device.click(send, MAIL, mail.now)
    assert mail.nodes() == before
