import pytest

from clients.phone.emulator.actions import ShowScreen
from clients.phone.emulator.environment import Gesture
from clients.phone.emulator.layout import App, Screen, button, label
from clients.phone.emulator.sample_apps import BANK, BROWSER, DIALER, MAIL, MAPS, MESSAGES, MUSIC, SETTINGS
from clients.phone.emulator.system_screens import Notice
from svc_proto.phone.backend import CommandReply, DelayedReply
from tests.clients.emulator.driver import EmulatorDriver, opened

STROKE: dict[str, object] = {"start_x": 500, "start_y": 1800, "end_x": 500, "end_y": 800}


# --- touch ---------------------------------------------------------------------------------------------------


def test_tap_a_node_or_a_point(mail: EmulatorDriver) -> None:
    node_id = mail.node_id(contentDescription="Compose")
    result = mail.post("/tap", nodeId=node_id, x=1, y=1)
    assert result == {"x": 540, "y": 2160, "duration_ms": 100}
    assert mail.texts()[1] == "New message"
    assert mail.post("/tap", x=70, y="160", duration_ms=50) == {"x": 70, "y": 160, "duration_ms": 50}  # Navigate up
    assert mail.texts()[0] == "Inbox"
    assert mail.backend.gestures[-1] == Gesture("tap", ((70, 160),), 50, int(mail.now.wall * 1000) - 1000)
    mail.post("/tap", x=5000, y=5000)
    assert mail.texts()[0] == "Inbox"


def test_tap_refused(driver: EmulatorDriver) -> None:
    driver.refused("/tap")
    driver.refused("/tap", x=1)
    driver.refused("/tap", x=1.0, y=2)
    driver.refused("/tap", x=-1, y=2)
    driver.refused("/tap", x=1, y=2, duration_ms=0)
    driver.refused("/tap", node_id="w0:0")  # another route's spelling
    driver.refused("/tap", 404, nodeId="w0:999")
    driver.device.permissions.accessibility = False
    driver.refused("/tap", 500, nodeId="w0:0")
    refused = driver.refused("/tap", x=1, y=2)
    assert refused["error_code"] == refused["code"] == "service_unavailable"
    assert not driver.backend.gestures


def test_the_lock_screen_is_in_the_way_until_woken(driver: EmulatorDriver) -> None:
    driver.post("/press_key", key="lock_screen")
    assert driver.texts() == ["Locked"]
    assert driver.backend.status(driver.now)["screen_on"] is False
    touches: list[tuple[str, dict[str, object]]] = [
        ("/tap", {"x": 1, "y": 1}),
        ("/tap_text", {"text": "Locked"}),
        ("/long_press", {"x": 1, "y": 1}),
        ("/long_press", {"node_id": "w0:0"}),
        ("/swipe", {"direction": "up"}),
        ("/drag", dict(STROKE)),
        ("/scroll", {"direction": "up"}),
        ("/press_key", {"key": "home"}),
        ("/open_app", {"package": MAIL}),
        ("/send_intent", {"action": "android.settings.SETTINGS"}),
    ]
    for path, body in touches:
        refused = driver.refused(path, **body)
        assert (refused["error_code"], refused["final"]) == ("keyguard_blocked", True)
    driver.refused("/type", text="x")
    driver.device.credential_lock = True
    assert driver.device.wake(driver.now) is False
    assert driver.device.screen_on
    driver.device.credential_lock = False
    assert driver.get("/screen")["locked"] is True
    driver.post("/press_key", key="wakeup")
    assert driver.get("/screen")["locked"] is False
    assert driver.texts()[0] == "Home"
    assert driver.device.wake(driver.now) is True


def test_tap_text_clicks_the_node_itself_or_an_ancestor(mail: EmulatorDriver) -> None:
    result = mail.post("/tap_text", text="compose")
    found = {"ok": True, "via": "direct click", "message": "Clicked 'compose'", "depth": 0, "needle": "compose"}
    assert result == found
    assert mail.get("/current_app") == {"package": MAIL}
    assert "To" in mail.texts()
    mail.post("/press_key", key="back")
    result = mail.post("/tap_text", text="Lunch on")  # a part of the text
    assert (result["via"], result["depth"]) == ("parent click (1 levels up)", 1)


def test_tap_text_prefers_the_whole_text_to_a_part() -> None:
    rows = (button("Resend", "resend", ShowScreen("wrong")), label("Send"), button("Send", "send", ShowScreen("right")))
    screens = {"main": Screen(title="M", rows=rows), "wrong": Screen(title="wrong"), "right": Screen(title="right")}
    driver = opened("p", [App(package="p", label="P", screens=screens)])
    assert driver.post("/tap_text", text="send")["via"] == "direct click"
    assert "right" in driver.texts()
    driver.post("/press_key", key="back")
    driver.post("/tap_text", text="rese")
    assert "wrong" in driver.texts()
    driver.post("/press_key", key="back")
    driver.refused("/tap_text", text="rese", exact=True)
    driver.refused("/tap_text")
    driver.refused("/tap_text", text=" ")


def test_tap_text_falls_back_to_the_coordinates(mail: EmulatorDriver) -> None:
    told = {"ok": True, "via": "coordinate fallback", "message": "Tapped at (560, 160)", "x": 560, "y": 160}
    assert mail.post("/tap_text", text="inb") == {**told, "needle": "inb"}
    mail.post("/tap_text", text="compose")
    assert mail.post("/tap_text", text="Send")["via"] == "coordinate fallback"  # disabled: nothing is filled in
    assert not mail.backend.outbox


def test_long_press(mail: EmulatorDriver) -> None:
    node_id = mail.node_id(longClickable=True)
    assert mail.post("/long_press", node_id=node_id) == {"node_id": node_id, "mode": "action_long_click"}
    assert mail.node_id(selected=True) == node_id
    result = mail.post("/long_press", x=540, y="300", duration="800")
    assert result == {"x": 540, "y": 300, "duration_ms": 800, "mode": "gesture"}
    assert not any(node["selected"] for node in mail.nodes())
    assert mail.post("/long_press", x=1, y=1, duration_ms=100)["duration_ms"] == 100
    assert mail.post("/long_press", nodeId=node_id, duration="x")["node_id"] == node_id


def test_long_press_refused(mail: EmulatorDriver) -> None:
    mail.refused("/long_press")
    mail.refused("/long_press", x=1)
    mail.refused("/long_press", x=-1, y=1)
    mail.refused("/long_press", x=1, y=1, node_id="w0:0")
    mail.refused("/long_press", node_id="w0:999")
    mail.refused("/long_press", node_id="w0:0")  # a title
    for duration in (99, 3001):
        mail.refused("/long_press", x=1, y=1, duration=duration)


def test_drag(mail: EmulatorDriver) -> None:
    assert mail.post("/drag", **STROKE) == {**STROKE, "duration_ms": 500}
    assert mail.post("/drag", **STROKE, duration_ms=1)["duration_ms"] == 100
    assert mail.post("/drag", **STROKE, duration_ms=9999)["duration_ms"] == 3000
    mail.refused("/drag", start_x=1, start_y=1, end_x=1)
    mail.refused("/drag", **{**STROKE, "end_y": -1})
    assert [gesture.kind for gesture in mail.backend.gestures] == ["drag"] * 3


def test_swipe_in_a_direction_or_between_points(mail: EmulatorDriver) -> None:
    up = {"start_x": 540, "start_y": 1560, "end_x": 540, "end_y": 840, "duration_ms": 400}
    assert mail.post("/swipe", direction="UP") == up
    assert "Lunch on Friday?" not in mail.texts()
    left = {"start_x": 621, "start_y": 1200, "end_x": 459, "end_y": 1200, "duration_ms": 100}
    assert mail.post("/swipe", direction="left", distance="short", duration_ms=100) == left
    assert mail.post("/swipe", direction="down", distance="long")["end_y"] == 1740
    assert mail.post("/swipe", direction="right", **STROKE) == {**STROKE, "duration_ms": 400}
    mail.post("/swipe", **{**STROKE, "start_y": 300, "end_y": 2300})
    assert "Lunch on Friday?" in mail.texts()
    assert mail.post("/swipe", **{**STROKE, "end_y": -50})["end_y"] == -50  # not checked, as on other phones


def test_swipe_refused(driver: EmulatorDriver) -> None:
    before = driver.nodes()
    driver.post("/swipe", **STROKE)  # nothing scrolls there
    assert driver.nodes() == before
    assert "end_y" in str(driver.refused("/swipe", start_x=1, start_y=1, end_x=1)["error"])
    driver.refused("/swipe", **STROKE, duration_ms=0)
    driver.refused("/swipe", direction="sideways")
    driver.refused("/swipe", direction="up", distance="far")


def test_scroll(mail: EmulatorDriver) -> None:
    down = {"start_x": 540, "start_y": 1800, "end_x": 540, "end_y": 600, "duration_ms": 400}
    assert mail.post("/scroll", direction="Down") == down
    assert "Lunch on Friday?" not in mail.texts()
    list_id = mail.node_id(scrollable=True)
    result = mail.post("/scroll", direction="up", nodeId=list_id)
    assert (result["start_y"], result["end_y"]) == (700, 1620)
    mail.post("/scroll", direction="up")
    mail.post("/scroll", direction="up")  # already there
    assert "Lunch on Friday?" in mail.texts()
    mail.post("/scroll", direction="left")
    mail.refused("/scroll")
    mail.refused("/scroll", 404, direction="up", nodeId="w0:999")
    mail.device.permissions.accessibility = False
    mail.refused("/scroll", 500, direction="up")


def test_a_long_system_list_scrolls_too() -> None:
    apps = [App(package=f"p{n}", label=f"App {n}", screens={"a": Screen(title="A")}) for n in range(20)]
    driver = EmulatorDriver(apps)
    for app in apps:
        driver.post("/open_app", package=app.package)
    driver.post("/press_key", key="recents")
    assert "App 0" not in driver.texts()
    for _ in range(3):
        driver.post("/scroll", direction="down")
    assert "App 0" in driver.texts()


# --- keys, text, navigation ----------------------------------------------------------------------------------


def test_type() -> None:
    driver = opened(BROWSER)
    assert driver.post("/type", text="a\U0001f600") == {"length": 3}
    assert driver.post("/type", text="", clear=True) == {"length": 0}
    assert driver.nodes()[1]["text"] == "Search or type a web address", "as on Android: the hint of an empty field"
    assert driver.post("/type", text=12, clearFirst=False) == {"length": 2}
    assert "12" in driver.texts()
    driver.refused("/type", text="")
    driver.post("/tap_text", text="Go")
    assert "12" in driver.texts()
    driver.refused("/type", text="no field here")
    driver.refused("/type")
    driver.device.permissions.accessibility = False
    driver.refused("/type", text="x")


def test_type_goes_to_the_focused_field_and_hides_a_secret() -> None:
    driver = opened(BANK)
    driver.post("/events/stream", enabled=True)
    driver.post("/tap_text", text="Pay or transfer")
    driver.post("/type", text="Ada")
    driver.post("/tap_text", text="PIN")
    driver.post("/type", text="1234")
    assert "••••" in driver.texts()
    assert "1234" not in str(driver.get("/events"))
    driver.post("/tap_text", text="Amount")
    driver.post("/type", text="5")
    driver.post("/tap", nodeId=driver.node_id(className="android.widget.Button"))
    assert driver.backend.outbox[-1].details["fields"] == {"payee": "Ada", "amount": "5", "pin": "1234"}
    assert "Accounts" in driver.texts()


def test_press_key() -> None:
    driver = opened(SETTINGS)
    driver.post("/tap_text", text="Network")
    assert driver.post("/press_key", key=" BACK ") == {"key": " BACK "}
    assert driver.texts()[0] == "Settings"
    driver.post("/press_key", key="back")
    assert driver.texts()[0] == "Home"
    for key in ("recents", "recent_apps", "overview"):
        driver.post("/press_key", key=key)
        assert "Settings" in driver.texts()[1:3]
    driver.post("/press_key", key="back")
    assert driver.get("/current_app") == {"package": "com.example.launcher"}
    driver.post("/press_key", key="power_dialog")
    driver.post("/tap_text", text="Restart")
    driver.post("/open_app", package=MAIL)
    driver.post("/press_key", key="home")
    assert driver.get("/current_app") == {"package": "com.example.launcher"}
    for bad in ("volume_up", "power", " ", None):
        driver.refused("/press_key", key=bad)


def test_enter_moves_on_or_shows_the_next_screen() -> None:
    driver = opened(BROWSER)
    driver.post("/type", text="svc")
    driver.post("/press_key", key="enter")
    assert driver.texts()[1:3] == ["Page", "svc"]
    driver.post("/press_key", key="enter")  # no field: nothing to end
    assert driver.texts()[1] == "Page"
    driver.post("/open_app", package=MAIL)
    driver.post("/tap_text", text="Compose")
    driver.post("/tap_text", text="To")
    for name in ("Subject", "Write a message", "Write a message"):
        driver.post("/press_key", key="enter")  # the last field has no next one, and Send is no change of the screen
        assert [node["contentDescription"] for node in driver.nodes() if node["focused"]] == [name]
    assert not driver.device.outbox


def test_a_recent_app_is_removed_by_a_stroke_to_the_side(driver: EmulatorDriver) -> None:
    driver.post("/press_key", key="recents")
    assert driver.texts()[:2] == ["Recent apps", "No items"]
    driver.post("/open_app", package=SETTINGS)
    driver.post("/open_app", package=MAIL)
    driver.post("/press_key", key="recents")
    assert [text for text in driver.texts()[:5] if text != "None"] == ["Recent apps", "Mail", "Settings"]
    row = {"start_y": 320, "end_y": 320}
    driver.post("/swipe", start_x=540, end_x=600, **row)  # too short
    driver.post("/swipe", start_x=540, end_x=1050, start_y=1900, end_y=1900)  # beside the cards
    assert [text for text in driver.texts()[:5] if text != "None"] == ["Recent apps", "Mail", "Settings"]
    driver.post("/swipe", start_x=540, end_x=1050, **row)
    assert driver.texts()[2] == "Settings"


def test_a_command_for_another_screen_is_refused(mail: EmulatorDriver) -> None:
    digest = mail.get("/screen_hash")["hash"]
    mail.post("/tap", nodeId=mail.node_id(contentDescription="Compose"), if_hash=digest)
    refused = mail.refused("/tap", x=1, y=1, if_hash=digest)
    assert refused["error_code"] == "screen_changed"


def test_quick_settings_are_the_settings(driver: EmulatorDriver) -> None:
    driver.post("/press_key", key="quick_settings")
    driver.post("/tap", nodeId=driver.node_id(contentDescription="Airplane mode"))
    driver.post("/tap_text", text="Close")
    driver.post("/open_app", package=SETTINGS)
    airplane = driver.node_id(contentDescription="Airplane mode")
    assert driver.post("/describe_node", nodeId=airplane)["checked"] is True
    driver.post("/tap", nodeId=airplane)
    assert driver.post("/describe_node", nodeId=airplane)["checked"] is False


def test_notifications_open_their_app(driver: EmulatorDriver) -> None:
    driver.post("/press_key", key="notifications")
    assert "No notifications" in driver.texts()
    assert driver.get("/screen")["packageName"] == "com.android.systemui"
    driver.device.notify(Notice(MESSAGES, "Ada", "See you"), driver.now)
    driver.post("/press_key", key="home")
    driver.post("/swipe", start_x=500, start_y=10, end_x=500, end_y=900)
    driver.post("/tap_text", text="See you")
    assert driver.get("/current_app") == {"package": MESSAGES}


def test_wait_is_held_by_the_caller(driver: EmulatorDriver) -> None:
    for ms, slept in [(2000, 2000), ("250", 250), (None, 0), (-5, 0), (99_999, 15_000), (1.5, 0)]:
        assert driver.perform("POST", "/wait", {"ms": ms}) == DelayedReply(
            slept / 1000, CommandReply(200, {"slept_ms": slept})
        )


def test_clipboard(driver: EmulatorDriver) -> None:
    assert driver.get("/clipboard") == {"text": ""}
    assert driver.post("/clipboard", text="code") == {"success": True, "length": 4}
    assert driver.get("/clipboard") == {"text": "code"}
    assert driver.post("/clipboard", text="") == {"success": True, "length": 0}
    driver.refused("/clipboard")
    driver.refused("/clipboard", text=None)


def test_media_plays_and_sets_the_volume() -> None:
    driver = opened(MUSIC)
    keys = {"previous": 88, "next": 87, "PAUSE": 127, "toggle": 85, "play": 126}
    for action, keycode in keys.items():
        assert driver.post("/media", action=action) == {"action": action.lower(), "keycode": keycode}
    assert driver.device.playing
    driver.post("/media", action="next")
    assert "Playing: Nocturne" in driver.texts()
    driver.post("/tap_text", text="Play or pause")
    assert "Paused: Nocturne" in driver.texts()
    assert driver.post("/media", action="volume_up") == {"action": "volume_up", "keycode": 24, "level": 8}
    assert driver.post("/media", action="volume_down") == {"action": "volume_down", "keycode": 25, "level": 7}
    assert driver.post("/media", action="volume", level="15") == {"action": "volume", "level": 15}
    assert driver.post("/media", action="volume_up")["level"] == 15
    for level in (16, -1, None):
        driver.refused("/media", action="volume", level=level)
    driver.refused("/media", action="stop")
    driver.refused("/media")


# --- intents -------------------------------------------------------------------------------------------------

VIEW = "android.intent.action.VIEW"


@pytest.mark.parametrize(
    ("data", "package", "text"),
    [
        ("https://example.com/a", BROWSER, "https://example.com/a"),
        ("geo:52.0,4.3", MAPS, "52.0,4.3"),
        ("mailto:ada%40example.com", MAIL, "ada@example.com"),
        ("SMSTO:+15550100", MESSAGES, "+15550100"),
        ("tel:+15550100", DIALER, "+15550100"),
    ],
)
def test_send_intent_by_its_data(driver: EmulatorDriver, data: str, package: str, text: str) -> None:
    told = {"action": VIEW, "package": "", "component": "", "data": data}
    assert driver.post("/send_intent", action=VIEW, data=data) == told
    assert driver.get("/current_app") == {"package": package}
    assert text in driver.texts()


def test_send_intent_to_a_target(driver: EmulatorDriver) -> None:
    extras = {"s": "a", "n": 1, "b": True, "f": 1.5, "none": None, "list": [1], "object": {}}
    result = driver.post(
        "/send_intent", action="x.Y", component=f"{MAIL}/.Main", category="c", extras=extras, package=MAPS
    )
    assert result == {"action": "x.Y", "package": MAPS, "component": f"{MAIL}/.Main", "data": ""}
    assert driver.get("/current_app") == {"package": MAIL}
    (item,) = driver.backend.outbox
    assert item.kind == "intent"
    assert item.details["extras"] == {"s": "a", "n": "1", "b": "true", "f": "1.5"}
    assert item.details["category"] == "c"
    driver.post("/send_intent", action="android.settings.WIFI_SETTINGS")
    assert driver.get("/current_app") == {"package": SETTINGS}
    title = {"android.intent.extra.TITLE": "Send it to"}
    driver.post("/send_intent", action="android.intent.action.SEND", extras=title)
    assert driver.texts()[0] == "Send it to"
    driver.post("/tap_text", text="Maps")
    assert driver.get("/current_app") == {"package": MAPS}


def test_send_intent_refused(driver: EmulatorDriver) -> None:
    driver.refused("/send_intent")
    driver.refused("/send_intent", action="x.Y")
    driver.refused("/send_intent", action="x.Y", package="com.example.none")
    driver.refused("/send_intent", action="x.Y", component="no-slash")
    driver.refused("/send_intent", action="x.Y", extras="text")
    assert "extras.n" in str(driver.refused("/send_intent", action="x.Y", extras={"n": 1 << 9999})["error"])
    bare = EmulatorDriver([])
    bare.refused("/send_intent", action=VIEW, data="https://example.com")
    assert not driver.backend.outbox


def test_broadcast(driver: EmulatorDriver) -> None:
    result = driver.post("/broadcast", action="x.PING", data="d:1", package="p", extras={"a": 1})
    assert result == {"action": "x.PING", "package": "p", "data": "d:1"}
    (item,) = driver.backend.outbox
    assert (item.kind, dict(item.details)) == ("broadcast", {**result, "extras": {"a": "1"}})
    assert driver.post("/broadcast", action="x.PING") == {"action": "x.PING", "package": "", "data": ""}
    driver.refused("/broadcast")
