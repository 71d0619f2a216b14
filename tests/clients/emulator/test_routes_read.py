from clients.phone.emulator.layout import App, Screen, label
from clients.phone.emulator.sample_apps import BROWSER, MAIL, SETTINGS
from svc_proto.phone.backend import UploadReply
from tests.clients.emulator.driver import EmulatorDriver, opened
from tests.clients.emulator.test_view_tree import decode

FLAGS = ["clickable", "longClickable", "scrollable", "editable", "focused", "selected", "enabled"]
STATES = ["hintText", "checkable", "checked", "password"]
NODE = ["nodeId", "text", "contentDescription", "className", "viewId", "bounds", *STATES, *FLAGS]


def test_ping_and_setup(driver: EmulatorDriver) -> None:
    assert driver.get("/ping") == {"pong": True, "ts": int(driver.now.wall * 1000)}
    result = driver.post("/setup", anything=[1])
    assert result["ok"] is True
    assert isinstance(result["note"], str)


def test_return_to_the_client(driver: EmulatorDriver) -> None:
    package = driver.backend.application_id
    assert driver.post("/return_to_svc") == {"ok": True, "package": package}
    assert driver.post("/return_to_hermes") == {"ok": True, "package": package, "note": "already foreground"}
    driver.post("/press_key", key="notifications")
    assert driver.post("/return_to_hermes") == {"ok": True, "package": package}
    assert driver.get("/current_app") == {"package": package}


def test_screen(mail: EmulatorDriver) -> None:
    result = mail.get("/screen")
    assert list(result) == ["packageName", "rootBounds", "nodes", "truncated", "nodeCount", "locked"]
    assert result["packageName"] == MAIL
    assert result["rootBounds"] == {"left": 0, "top": 0, "right": 1080, "bottom": 2400}
    assert result["truncated"] is False
    nodes = mail.nodes()
    assert result["nodeCount"] == len(nodes)
    assert all([name for name in node if name != "more"] == NODE for node in nodes)
    assert [node["more"] for node in nodes if "more" in node] == ["below"]
    assert nodes[0] == {
        "nodeId": "w0:0",
        "text": "Inbox",
        "contentDescription": None,
        "className": "android.widget.TextView",
        "viewId": None,
        "bounds": {"left": 40, "top": 80, "right": 1080, "bottom": 240},
        "hintText": None,
        "checked": None,
        **dict.fromkeys(["checkable", "password", *FLAGS[:-1]], False),
        "enabled": True,
    }


def test_screen_without_bounds_has_the_same_nodes(driver: EmulatorDriver) -> None:
    with_bounds = driver.nodes()
    nodes = driver.get("/screen", include_bounds="false")["nodes"]
    assert nodes == [{key: value for key, value in node.items() if key != "bounds"} for node in with_bounds]
    assert driver.get("/screen", include_bounds="FALSE")["nodes"] == with_bounds


def test_a_crowded_screen_is_truncated() -> None:
    rows = tuple(label(f"row {n}" + "x" * 3000) for n in range(600))
    screens = {"all": Screen(title="All", rows=rows, row_height=3)}
    driver = opened("crowd", [App(package="crowd", label="Crowd", screens=screens)])
    result = driver.get("/screen")
    assert (result["nodeCount"], result["truncated"]) == (512, True)
    assert len(str(driver.nodes()[2]["text"])) == 2000
    hashed = driver.get("/screen_hash")
    assert (hashed["node_count"], hashed["truncated"]) == (512, True)
    found = driver.post("/find_nodes", text="row", limit=9999)
    assert found["count"] == 508  # the walk ends after 512 nodes, four of which are no rows
    assert driver.post("/find_nodes", text="row 599")["count"] == 0


def test_screen_hash_and_diff(driver: EmulatorDriver) -> None:
    result = driver.get("/screen_hash")
    assert list(result) == ["hash", "node_count", "truncated"]
    digest = str(result["hash"])
    assert len(digest) == 64
    assert result["node_count"] == len(driver.nodes())
    assert driver.post("/diff_screen", previous_hash=digest) == {"changed": False, **result}
    assert driver.post("/diff_screen", previous_hash=digest.upper())["changed"] is True
    driver.refused("/diff_screen", previous_hash=" ")
    driver.post("/open_app", package=BROWSER)
    assert driver.post("/diff_screen", previous_hash=digest)["changed"] is True


def test_find_nodes(mail: EmulatorDriver) -> None:
    assert list(mail.post("/find_nodes")) == ["matches", "count"]
    assert mail.post("/find_nodes")["count"] == 20
    assert mail.post("/find_nodes", limit=0)["count"] == 1
    assert mail.post("/find_nodes", text="LUNCH", clickable=False)["count"] == 1
    assert mail.post("/find_nodes", text="compose", clickable="true")["count"] == 1
    assert mail.post("/find_nodes", text="no such thing") == {"matches": [], "count": 0}
    assert mail.post("/find_nodes", class_name="android.widget.ImageButton", text=" ")["count"] == 1
    assert mail.post("/find_nodes", class_name="ImageButton")["count"] == 0
    (compose,) = [node for node in mail.nodes() if node["contentDescription"] == "Compose"]
    assert mail.post("/find_nodes", resource_id=f"{MAIL}:id/compose")["matches"] == [compose]
    assert mail.post("/find_nodes", view_id="compose")["matches"] == [compose]
    assert mail.post("/find_nodes", resource_id="com.other:id/compose")["count"] == 0


def test_describe_node() -> None:
    driver = opened(SETTINGS)
    driver.post("/tap_text", text="Network")
    node_id = driver.node_id(className="android.widget.Switch")
    corners = {"left": 840, "top": 240, "right": 1040, "bottom": 400}
    flags = ("longClickable", "focused", "editable", "scrollable", "selected", "password")
    assert driver.post("/describe_node", node_id=node_id) == {
        "nodeId": node_id,
        "bounds": {**corners, "centerX": 940, "centerY": 320, "width": 200, "height": 160},
        "className": "android.widget.Switch",
        **dict.fromkeys(("text", "hintText")),
        "contentDescription": "Wi-Fi",
        "viewIdResourceName": f"{SETTINGS}:id/wifi",
        "childCount": 0,
        **dict.fromkeys(("clickable", "focusable", "checkable", "checked", "enabled"), True),
        **dict.fromkeys(flags, False),
    }
    title = driver.post("/describe_node", nodeId=driver.node_id(text="Network"))
    assert (title["checkable"], title["checked"]) == (False, None)
    driver.refused("/describe_node")
    driver.refused("/describe_node", 404, nodeId="w9:9")


def test_no_readable_window_is_500(driver: EmulatorDriver) -> None:
    driver.device.permissions.accessibility = False
    for path in ("/screen", "/screen_hash"):
        driver.refused(f"GET {path}", 500)
    driver.refused("/find_nodes", 500)
    driver.refused("/diff_screen", 500, previous_hash="x")
    driver.refused("/describe_node", 500, nodeId="w0:0")


def test_screenshot(driver: EmulatorDriver) -> None:
    outcome = driver.perform("GET", "/screenshot")
    assert isinstance(outcome, UploadReply)
    assert (outcome.file_name, outcome.content_type) == ("screenshot-1795310561000.png", "image/png")
    assert decode(outcome.data)[:2] == (108, 240)
    driver.post("/open_app", package=MAIL)
    other = driver.perform("GET", "/screenshot")
    assert isinstance(other, UploadReply)
    assert other.data != outcome.data
    driver.device.permissions.screen_capture = False
    driver.refused("GET /screenshot", 500)


def test_apps(driver: EmulatorDriver) -> None:
    result = driver.get("/get_apps")
    assert result == driver.get("/apps")
    apps = result["apps"]
    assert isinstance(apps, list)
    assert result["count"] == len(apps) == 10
    assert {"package": MAIL, "label": "Mail"} in apps


def test_events(driver: EmulatorDriver) -> None:
    assert driver.get("/events") == {"entries": [], "count": 0, "streaming": False}
    for bad in (None, "yes", 1, "True"):
        driver.refused("/events/stream", enabled=bad)
    assert driver.post("/events/stream", enabled="true") == {"streaming": True, "buffer_cleared": True}
    driver.post("/tap_text", text="Mail")
    stamp = int(driver.now.wall * 1000)
    driver.post("/scroll", direction="down")
    driver.post("/tap_text", text="compose")
    driver.post("/type", text="ada")
    driver.post("/tap", nodeId=driver.node_id(text="ada"))
    result = driver.get("/events")
    entries = result["entries"]
    assert isinstance(entries, list)
    first = "click window_state_changed scroll click window_state_changed text_changed click window_content_changed"
    assert " ".join(entry["event_type"] for entry in entries) == first
    seen = {"package_name": "com.example.launcher", "class_name": "android.widget.LinearLayout", "text": "Mail"}
    assert entries[0] == {"timestamp": stamp, "event_type": "click", "source": "TYPE_VIEW_CLICKED", **seen}
    assert entries[5]["text"] == "ada"
    assert result["count"] == 8
    assert driver.get("/events", limit="2")["entries"] == entries[-2:]
    assert driver.get("/events", limit="0")["entries"] == entries[-1:]
    assert driver.get("/events", since=str(stamp))["entries"] == entries[2:]
    assert driver.get("/events", since="-1")["count"] == 8
    driver.post("/events/stream", enabled=True)
    assert driver.get("/events")["count"] == 8
    driver.post("/events/stream", enabled=False)
    assert driver.get("/events")["count"] == 0
