import pytest

from clients.phone.emulator import layout
from clients.phone.emulator.actions import ChangeRecords, ClearSelection, GoBack, ShowScreen
from svc_proto.phone.backend import UploadReply
from tests.clients.emulator.driver import EmulatorDriver, opened
from tests.clients.emulator.test_view_tree import decode

P = "org.lab.widgets"
SAVE = ChangeRecords("write", "thing", "home", ("name", "kind", "day", "at"), ("name",), toast="Saved {name}")
LAB = layout.App(
    package=P,
    label="Lab",
    screens={
        "home": layout.Screen(
            title="Home",
            rows=(
                layout.records("thing", layout.entry("{name}", "{kind}", ShowScreen("form"), menu=ShowScreen("menu"))),
                layout.check_box("box", "Box"),
                layout.bar("level", "Level"),
                layout.button("Late", "late", ShowScreen("late")),
                layout.button("None", "none", ClearSelection()),
            ),
            foot=(layout.button("New", "new", ShowScreen("form", (("id", ""), ("name", "")))),),
        ),
        "form": layout.Screen(
            title="Form of {name}",
            rows=(
                layout.text_field("name", "Name"),
                layout.choice("kind", "Kind", "Red", "Green"),
                layout.date("day", "Day"),
                layout.time("at", "At"),
                layout.text_field("more", "More"),
            ),
            foot=(layout.button("Save", "save", SAVE),),
        ),
        "menu": layout.Screen(
            title="", rows=(layout.entry("Delete", None, ShowScreen("sure")),), form=layout.Form.MENU
        ),
        "sure": layout.Screen(
            title="Delete {name}?",
            rows=(
                layout.cells(
                    layout.button("Cancel", "cancel", GoBack()),
                    layout.button("Delete", "delete", ChangeRecords("delete", "thing", "home")),
                ),
            ),
            form=layout.Form.DIALOG,
        ),
        "late": layout.Screen(title="Late", rows=(layout.label("Here"),), late=2.0),
    },
    records={"thing": ({"name": "One", "kind": "Red"}, {"name": "Two", "kind": "Green"})},
    texts={"day": "2026-12-24"},
    on=("box",),
)


@pytest.fixture
def lab() -> EmulatorDriver:
    return opened(P, [LAB])


def names(driver: EmulatorDriver) -> list[str]:
    return [record["name"] for record in driver.device.content.list(P, "thing")]


def test_a_row_menu_opens_a_menu_and_a_dialog_above_the_list(lab: EmulatorDriver) -> None:
    more = [node for node in lab.nodes() if node["contentDescription"] == "More options"]
    assert len(more) == 2
    lab.post("/tap", nodeId=more[1]["nodeId"])
    assert lab.texts()[:2] == ["None", "Delete"]  # the row without a text, and its line
    lab.press("Delete")
    assert lab.texts()[:3] == ["Delete Two?", "Cancel", "Delete"]
    assert "One" in lab.texts()  # of the window behind
    lab.press("Cancel")
    assert lab.texts()[0] == "Home"
    lab.post("/tap", nodeId=[n for n in lab.nodes() if n["contentDescription"] == "More options"][1]["nodeId"])
    lab.press("Delete", "Delete")
    assert names(lab) == ["One"]
    assert lab.texts()[0] == "Home"


def test_a_touch_beside_a_dialog_closes_it(lab: EmulatorDriver) -> None:
    lab.post("/tap", nodeId=lab.node_id(contentDescription="More options"))
    lab.post("/tap", x=100, y=2000)
    assert lab.texts()[0] == "Home"
    assert lab.device.switches[P, "box"]


def test_a_form_writes_a_record(lab: EmulatorDriver) -> None:
    lab.press("New", "Save")
    assert lab.texts()[0] == "Name is missing"
    lab.post("/type", text="Three")
    lab.press("Red", "Green")
    lab.press("2026-12-24", "Previous month")
    lab.press("Next month", "Next month")
    assert "Day: January 2027" in lab.texts()
    lab.press("13 January 2027", "no time", "7 hours", "25 minutes", "OK")
    assert lab.node_id(text="07:25")
    lab.press("Save")
    assert lab.texts()[0] == "Saved Three"
    (new,) = [record for record in lab.device.content.list(P, "thing") if record["name"] == "Three"]
    assert {**new, "id": ""} == {"id": "", "name": "Three", "kind": "Green", "day": "2027-01-13", "at": "07:25"}
    lab.get("/ping")
    lab.get("/ping")
    assert lab.texts()[0] == "Home"  # the notice is gone
    lab.press("Three")
    assert "Form of Three" in lab.texts()
    lab.post("/type", text="Four")
    lab.press("Save")
    assert names(lab) == ["One", "Two", "Four"]


def test_selected_records_are_deleted_together(lab: EmulatorDriver) -> None:
    rows = [node for node in lab.nodes() if node["longClickable"]]
    assert len(rows) == 2
    for row in rows:
        lab.post("/long_press", node_id=row["nodeId"])
    assert [node["selected"] for node in lab.nodes() if node["longClickable"]] == [True, True]
    lab.press("None")
    lab.post("/long_press", node_id=rows[1]["nodeId"])
    lab.post("/long_press", node_id=rows[0]["nodeId"])
    lab.post("/long_press", node_id=rows[0]["nodeId"])
    lab.post("/tap", nodeId=lab.node_id(contentDescription="More options"))
    lab.press("Delete", "Delete")
    assert names(lab) == ["One"]


def test_a_check_box_and_a_bar_show_their_state(lab: EmulatorDriver) -> None:
    boxes = [node for node in lab.nodes() if node["className"] == "android.widget.CheckBox"]
    assert [(box["checkable"], box["checked"]) for box in boxes] == [(True, True)]
    lab.press("Box")
    assert not lab.device.switches[P, "box"]
    (level,) = [node for node in lab.nodes() if node["className"] == "android.widget.SeekBar"]
    assert level["value"] == "50"
    bounds = level["bounds"]
    assert isinstance(bounds, dict)
    lab.post("/tap", x=bounds["left"] + (bounds["right"] - bounds["left"]) // 4, y=bounds["top"] + 5)
    assert [node["value"] for node in lab.nodes() if "value" in node] == ["25"]


def test_the_menu_of_a_field(lab: EmulatorDriver) -> None:
    lab.press("New")
    lab.post("/type", text="copied")

    def command(text: str, field: str = "Name") -> None:
        lab.post("/long_press", node_id=lab.node_id(hintText=field, editable=True))
        lab.press(text)

    command("Select all")
    command("Copy")
    assert lab.device.clipboard == "copied"
    command("Cut")
    command("Paste", "More")
    assert (lab.device.texts[P, "name"], lab.device.texts[P, "more"]) == ("", "copied")


def test_the_keyboard_covers_the_lower_part(lab: EmulatorDriver) -> None:
    lab.device.has_keyboard = True
    lab.press("New")
    assert "Enter" not in lab.texts()
    lab.post("/tap", nodeId=lab.node_id(hintText="Name"))
    lab.press("h", "i", "Space", "x", "Delete")
    assert lab.device.texts[P, "name"] == "hi "
    save = lab.node_id(text="Save")
    lab.post("/tap", nodeId=save)  # a key of the keyboard is above it
    assert names(lab) == ["One", "Two"]
    lab.press("Enter")
    assert [node["hintText"] for node in lab.nodes() if node["focused"]] == ["More"]
    lab.post("/press_key", key="back")
    assert "Enter" not in lab.texts()
    lab.press("Save")
    assert names(lab) == ["One", "Two", "hi v"]


def test_a_list_that_fills_late(lab: EmulatorDriver) -> None:
    lab.press("Late")
    assert lab.texts()[-1] == "Loading"
    lab.get("/ping")
    assert lab.texts()[-1] == "Here"


def test_an_effect_comes_late(lab: EmulatorDriver) -> None:
    lab.device.delay = 1.5
    lab.press("Late")
    assert lab.texts()[0] == "Home"
    assert "Late" in lab.texts()
    assert lab.texts()[1] == "Late"


def test_a_rotated_phone(lab: EmulatorDriver) -> None:
    lab.device.rotated = True
    screen = lab.get("/screen")
    assert screen["rootBounds"] == {"left": 0, "top": 0, "right": 2400, "bottom": 1080}
    assert any(node["scrollable"] for node in lab.nodes())
    lab.post("/swipe", direction="up", distance="medium")
    assert "One" not in lab.texts()
    picture = lab.perform("GET", "/screenshot")
    assert isinstance(picture, UploadReply)
    assert decode(picture.data)[:2] == (240, 108)
