import pytest

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import NO_PLACE, ScreenNode, parse_bounds

BOUNDS = {"left": 10, "top": 20, "right": 40, "bottom": 60}


def parse(described: JsonObject | None = None, /, **members: object) -> ScreenNode:
    return ScreenNode.parse(JsonObject(members), described)


def test_members() -> None:
    node = parse(
        nodeId="w1:7",
        text="On",
        contentDescription=" ",
        hintText="On",
        className="android.widget.Switch",
        viewId="org.x:id/power",
        bounds=BOUNDS,
        clickable=True,
        enabled=False,
        textLength=900,
        value="3",
    )
    assert (node.window, node.number, node.package, node.view_name) == ("w1", "7", "org.x", "power")
    assert (node.class_name, node.clickable, node.enabled, node.text_length) == ("Switch", True, False, 900)
    assert (node.value, parse(bounds={**BOUNDS, "bottom": 20}).area) == ("3", 0)
    assert (node.bounds, node.center, node.area) == ((10, 20, 40, 60), (25, 40), 1200)
    assert (node.labels, node.texts, node.content) == (("On",), ("On", " "), "")
    assert node.covers((10, 20))
    assert not node.covers((40, 20))
    assert not node.covers((10, 60))
    assert parse(text="x", hintText="y").content == "x"


def test_a_node_without_members() -> None:
    assert parse() == ScreenNode()
    assert ScreenNode().bounds == NO_PLACE
    assert parse_bounds(JsonObject(BOUNDS, right="40")) is None


def test_a_description_supplies_the_state() -> None:
    described = JsonObject(className="a.Switch", checkable=True, checked=True, viewIdResourceName="p:id/x", password=1)
    assert parse(described, className="b.Switch") == parse(className="b.Switch")
    node = parse(described, className="a.Switch", checked=False)
    assert (node.checkable, node.checked, node.view_id, node.hides_text) == (True, False, "p:id/x", False)


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"editable": True}, "field"),
        ({"editable": True, "password": True}, "password"),
        ({"className": "androidx.SwitchCompat"}, "switch"),
        ({"className": "a.MaterialCheckBox", "clickable": True}, "checkbox"),
        ({"scrollable": True, "clickable": True}, "scroll"),
        ({"longClickable": True}, "button"),
        ({"checked": True}, "checkbox"),
        ({"checked": True, "checkable": False}, ""),
        ({"text": "x"}, ""),
    ],
)
def test_kinds(members: dict[str, object], kind: str) -> None:
    node = parse(**members)
    assert node.kind == kind
    assert node.is_actionable == any(
        members.get(name) for name in ("clickable", "longClickable", "scrollable", "editable")
    )


def test_the_state_of_a_bar_is_known_though_it_cannot_be_checked() -> None:
    bar = parse(className="android.widget.SeekBar", checkable=False, checked=False)
    assert (bar.has_state, bar.checked, bar.reported_checked) == (True, None, False)
    assert parse(checkable=True).has_state
    assert not parse(className="a.TextView").has_state
