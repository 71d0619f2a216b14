from collections.abc import Mapping

import pytest

from svc_proto.agent.tools import phone_screen
from svc_proto.machines.screen_hash import screen_hash
from svc_proto.schema.json_object import JsonObject
from tests.agent.tools.phone_world import screen_body

BUTTON = {"clickable": True, "className": "android.widget.Button"}
ROW = {"clickable": True, "className": "android.widget.LinearLayout"}
ICON = {"clickable": True, "className": "android.widget.ImageButton", "contentDescription": "More options"}
FIELD = {"editable": True, "className": "android.widget.EditText"}
Node = Mapping[str, object]


def screen(*nodes: Node, **more: object) -> phone_screen.PhoneScreen:
    return phone_screen.parse_screen(JsonObject(screen_body(*nodes, **more)))


def text(value: str) -> Node:
    return {"text": value}


def button(value: str) -> Node:
    return {"text": value, **BUTTON}


# --- nodes and rows ------------------------------------------------------------------------------------------------


def test_invalid_nodes_are_dropped() -> None:
    body = screen_body(text("a"))
    body["nodes"] = [{"nodeId": "w0:0"}, {"bounds": {}}, 5, *screen_body(text("b"))["nodes"]]
    assert [node.text for node in phone_screen.parse_screen(JsonObject(body)).nodes] == ["b"]
    assert phone_screen.parse_screen(JsonObject()).bounds == (0, 0, 0, 0)
    assert phone_screen.parse_screen(JsonObject({"nodes": [*body["nodes"]]})).bounds == (0, 0, 1000, 100)
    assert screen(button("Back"), text("Inbox"), text("Ada")).title == "Inbox"
    assert screen({**text("low"), "at": (0, 900, 10, 1000)}, {**text("high"), "at": (0, 0, 10, 333)}).title == "high"
    points = ((0, 0), (999, 1999), (1000, 0), (0, 2000))
    assert [screen().contains(*point) for point in points] == [True, True, False, False]


def test_texts_belong_to_the_smallest_row_around_them() -> None:
    found = screen(
        {**ROW, "at": (0, 0, 1000, 1900)},  # higher than a third of the screen: it holds rows
        {**ROW, "at": (0, 100, 1000, 300)},
        {**text("Ada"), "at": (10, 110, 500, 190)},
        {**BUTTON, "text": "Call", "at": (600, 110, 990, 290)},
        {**text("Lunch?"), "at": (10, 200, 500, 290)},
        {**text("alone"), "at": (0, 400, 1000, 500)},
    )
    assert [(row.node.number, row.texts) for row in found.rows] == [
        ("0", ()), ("1", ("Ada", "Lunch?")), ("3", ("Call",)), ("5", ("alone",)),
    ]  # fmt: skip
    assert len(screen({**ROW, "at": (0, 0, 1000, 666)}, text("Ada")).rows) == 1
    row = found.row_of("w0:4")
    assert row is found.rows[1]
    assert row is found.row_of("1")
    assert row.target.text == "Ada"
    assert found.rows[0].target is found.rows[0].node
    assert found.row_of("9") is None
    assert found.row_at(20, 120) is row
    assert found.row_at(1500, 120) is None


def test_a_row_shows_the_state_of_its_one_switch() -> None:
    knob = {"className": "android.widget.Switch", "checkable": True, "checked": True}
    area = {"at": (0, 0, 1000, 100)}
    inner = screen({**ROW, **area}, {**text("Wi-Fi"), "at": (0, 0, 500, 100)}, {**knob, "at": (500, 0, 1000, 100)})
    (row,) = inner.rows
    assert (row.texts, row.checked) == (("Wi-Fi",), True)
    own = {**knob, "clickable": True, "contentDescription": "Wi-Fi", "at": (500, 0, 1000, 100)}
    both = screen({**ROW, **area}, {**text("Wi-Fi"), "at": (0, 0, 500, 100)}, own)
    assert [row.checked for row in both.rows] == [True, True]
    other = screen({**ROW, **area}, {**text("Network"), "at": (0, 0, 500, 100)}, own)
    assert [row.checked for row in other.rows] == [None, True]
    several = screen({**ROW, **area}, own, {**own, "checked": False, "at": (400, 0, 500, 100)})
    assert [row.checked for row in several.rows] == [None, True, False]


def test_windows_above_cover_the_middle_of_a_row() -> None:
    keys = {**button("a"), "viewId": "com.android.inputmethod.latin:id/key", "at": (0, 1200, 1000, 2000)}
    under = {**button("Send"), "nodeId": "w1:2", "at": (0, 1800, 1000, 1900), "viewId": "com.chat:id/send"}
    above = {**FIELD, "nodeId": "w1:1", "at": (0, 0, 1000, 100), "viewId": "com.chat:id/text"}
    found = screen(keys, above, under, packageName="com.android.inputmethod.latin")
    assert [row.covered for row in found.rows] == [False, False, True]
    middles = {(0, 1850): True, (1000, 1850): False, (500, 1200): True, (500, 2000): False}
    for (x, y), covered in middles.items():
        moved = {**under, "at": (x - 50, y - 50, x + 50, y + 50)}
        assert screen(keys, above, moved, packageName="com.android.inputmethod.latin").rows[2].covered is covered
    assert found.app == "com.chat"
    assert (found.is_keyboard("w0"), found.is_keyboard("w1")) == (True, False)
    assert found.row_at(500, 1850) is found.rows[0]
    alone = screen(keys, packageName="com.android.inputmethod.latin")
    assert (alone.app, alone.is_keyboard("w0")) == ("com.android.inputmethod.latin", False)


@pytest.mark.parametrize(
    ("more", "view", "locked"),
    [
        ({"locked": True}, "", True),
        ({"packageName": "com.android.systemui"}, "com.android.systemui:id/keyguard_clock", True),
        ({"packageName": "com.android.systemui"}, "com.android.systemui:id/lockPatternView", False),
        ({"packageName": "com.android.systemui"}, "com.android.systemui:id/lock_icon_view", True),
        ({"packageName": "com.android.systemui"}, "com.android.systemui:id/clock", False),
        ({"packageName": "com.example.keyguard"}, "com.example.keyguard:id/keyguard", False),
    ],
)
def test_lock_screens(more: dict[str, object], view: str, locked: bool) -> None:
    assert screen({**text("12:00"), "viewId": view}, **more).locked is locked


@pytest.mark.parametrize(
    "change",
    [{"text": "b"}, {"focused": True}, {"selected": True}, {"enabled": False}, {"checked": True}, {"value": "7"}],
)
def test_fingerprint_has_every_state(change: dict[str, object]) -> None:
    node = {"text": "a", "checkable": True, "checked": False}
    assert screen(node).fingerprint == screen(node).fingerprint
    assert screen({**node, **change}).fingerprint != screen(node).fingerprint


def test_hash_of_the_phone() -> None:
    node = {**button("Send"), "viewId": "a:id/b", "contentDescription": "c"}
    known = screen_hash([("android.widget.Button", "Send", "c", (0, 0, 1000, 100), "a:id/b")])
    assert screen(node).phone_hash == known
    assert screen(node, truncated=True).phone_hash == ""
    assert screen(text("x" * phone_screen.TEXT_LIMIT)).phone_hash == ""
    assert phone_screen.parse_screen(JsonObject({"nodes": [{"nodeId": "w0:0"}]})).phone_hash == ""


# --- states that the phone leaves out ------------------------------------------------------------------------------


def test_states_are_described_where_they_are_left_out() -> None:
    knob = {"className": "android.widget.Switch", "clickable": True}
    body = JsonObject(screen_body(knob, FIELD, button("x"), {**knob, "checkable": True, "checked": False}))
    assert [node.node_id for node in phone_screen.needs_description(phone_screen.parse_screen(body))] == [
        "w0:0",
        "w0:1",
    ]
    about = {"className": "android.widget.Switch", "checkable": True, "checked": True}
    field = {"className": "android.widget.EditText", "checkable": False, "hintText": "To", "password": True}
    found = phone_screen.parse_screen(body, {"w0:0": JsonObject(about), "w0:1": JsonObject(field)})
    assert phone_screen.needs_description(found) == []
    assert (found.nodes[0].checked, found.nodes[1].kind, found.nodes[1].hint) == (True, "password", "To")
    moved = phone_screen.parse_screen(body, {"w0:0": JsonObject(field)})  # the screen has changed in between
    assert moved.nodes[0].checked is None
    assert len(phone_screen.needs_description(screen(*[knob] * 40))) == phone_screen.MAX_DESCRIBED


# --- the same row on a later screen --------------------------------------------------------------------------------

ADA, BO, CLEO = (button(name) for name in ("Ada", "Bo", "Cleo"))
NEW = button("Newcomer")
NAMELESS = {"clickable": True, "className": "android.widget.ImageView"}


@pytest.mark.parametrize(
    ("before", "place", "now", "found"),
    [
        ((ADA, BO), 1, (ADA, BO), 1),
        ((ADA, BO), 1, (NEW, ADA, BO), 2),
        ((ADA, BO), 1, (ADA, CLEO), None),
        ((ADA, BO), 1, (), None),
        # equal rows: by place only where nothing else moved
        ((ADA, ADA), 1, (ADA, ADA), 1),
        ((ADA, ADA), 1, (ADA,), None),
        ((ADA, ADA), 0, (ADA, ADA, ADA), None),
        ((ADA,), 0, (ADA, ADA), None),
        # equal buttons of list entries: by the texts around
        ((ADA, ICON, BO, ICON), 3, (ADA, ICON, BO, ICON), 3),
        ((ADA, ICON, BO, ICON), 1, (NEW, ICON, ADA, ICON, BO, ICON), 3),
        ((ADA, ICON, BO, ICON, CLEO), 1, (BO, ICON, CLEO), None),
        ((ADA, NAMELESS, BO), 1, (ADA, NAMELESS, BO), 1),
        ((ADA, NAMELESS, BO), 1, (NEW, ADA, NAMELESS, BO), 2),
        ((ADA, NAMELESS, BO), 1, (NEW, NAMELESS, BO), None),
        # a name of the app's own suffices
        ((ADA, {**NAMELESS, "viewId": "a:id/add"}), 1, (BO, {**NAMELESS, "viewId": "a:id/add"}), 1),
        # a field is the same whatever it holds
        (({**FIELD, "hintText": "To"}, FIELD), 0, ({**FIELD, "hintText": "To", "text": "Ada"}, FIELD), 0),
    ],
)  # fmt: skip
def test_find_again(before: tuple[Node, ...], place: int, now: tuple[Node, ...], found: int | None) -> None:
    old, new = screen(*before), screen(*now)
    row = phone_screen.find_again(old.rows[place], old, new)
    assert (None if row is None else new.rows.index(row)) == found


def test_a_list_entry_is_found_by_its_first_text() -> None:
    def entry(name: str, detail: str, top: int) -> tuple[Node, ...]:
        return (
            {**ROW, "at": (0, top, 1000, top + 200)},
            {**text(name), "at": (0, top, 1000, top + 100)},
            {**text(detail), "at": (0, top + 100, 1000, top + 200)},
        )

    old = screen(*entry("Ada", "2 min", 0), *entry("Bo", "5 min", 200))
    new = screen(*entry("Cleo", "now", 0), *entry("Ada", "3 min", 200), *entry("Bo", "6 min", 400))
    row = phone_screen.find_again(old.rows[1], old, new)
    assert row is not None
    assert row.texts == ("Bo", "6 min")
