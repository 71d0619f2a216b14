import json
import re

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.actions import ShowScreen
from clients.phone.emulator.layout import App, Screen, button, label, text_field
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from tests.agent.harness import AgentHarness
from tests.agent.tools.phone_world import ScreenPhone, Step, StockPhone, act, backend_of, lines_of, showing
from tests.agent.tools.test_phone_touches import APP, LOOK, OPEN, PHONES, BlindPhone, chats, doing, put_above, world_of
from tests.support.servers.model_server import calls, plain

FORM = (text_field("first", "First name"), text_field("last", "Last name"), text_field("pin", "PIN", password=True))


def typing(text: str | None = None, **more: object) -> Step:
    return "phone_type", {**({} if text is None else {"text": text}), **more}


def fields(world: AgentHarness) -> dict[str, str]:
    return {key: text for (_, key), text in world.backend.device.texts.items() if text}


# --- typing --------------------------------------------------------------------------------------------------------


@PHONES
def test_text_goes_into_the_named_field_else_the_focused_or_first(kind: type[EmulatedPhone]) -> None:
    world = world_of(*FORM, kind=kind)
    world.host.choices = ["once"]  # a password needs an approval
    steps = [typing(text, nodeId=node) for text, node in (("Lovelace", "2"), ("Ada", "1"), ("1234", "3"))]
    last, first, pin = act(world, OPEN, *steps)[1:]
    assert last.startswith('typed into 2 field "Last name"; it holds "Lovelace"; changed: true\nscreen ')
    assert first.startswith('typed into 1 field "First name"; it holds "Ada"; changed: true')
    assert pin.startswith('typed into 3 password "PIN"; it holds 4 hidden characters; changed: true')
    assert fields(world) == {"last": "Lovelace", "first": "Ada", "pin": "1234"}
    world = world_of(*FORM, kind=kind)
    results = act(world, OPEN, typing("a"), ("phone_tap", {"nodeId": "2"}), typing("b"))
    assert results[1].startswith('typed into 1 field "First name"; it holds "a"')
    assert results[3].startswith('typed into 2 field "Last name"; it holds "b"')
    world = world_of(text_field("note", "Note"), kind=kind)
    assert act(world, OPEN, typing("a", nodeId="1"))[1].startswith('typed into 1 field "Note"; it holds "a"')
    assert not world.backend.gestures


@PHONES
def test_appending(kind: type[EmulatedPhone]) -> None:
    world = world_of(*FORM, kind=kind)
    results = act(
        world, OPEN, typing("Ada"), typing(" L", mode="append"), typing(mode="append"),
        typing("5", mode="append", nodeId="3"), typing(" L", mode="append", nodeId="1"),
        typing("Lee", mode="append", nodeId="2"),
    )  # fmt: skip
    assert results[2].startswith('typed into 1 field "First name"; it holds "Ada L"')
    assert results[3].startswith("error: the argument text is missing")
    unread = "this field cannot be read whole, so appending would lose what it holds"
    assert results[4] == f"error: {unread}. Nothing was typed."
    assert 'it holds "Ada L L". It held this text before, so it now holds it twice' in results[5]
    assert results[6].startswith('typed into 2 field "Last name"; it holds "Lee"'), "the hint is no text"
    world.backend.device.texts[APP, "first"] = "x" * 2_001
    assert act(world, OPEN, typing("y", mode="append"))[1].startswith("error: this field cannot be read whole")


@pytest.mark.parametrize("step", [typing(""), typing("  "), typing(mode="clear"), typing("x", mode="clear")])
def test_a_field_is_emptied(step: Step) -> None:
    world = world_of(text_field("note", "Note"))
    world.backend.device.texts[APP, "note"] = "old"
    assert act(world, OPEN, step)[1].startswith('emptied 1 field "Note"; it holds ""; changed: true')
    assert fields(world) == {}


def test_an_emptied_password_has_no_hidden_characters() -> None:
    world = world_of(text_field("pin", "PIN", password=True))
    world.backend.device.texts[APP, "pin"] = "1234"
    world.host.choices = ["once"]
    assert "it holds 0 hidden characters" in act(world, OPEN, typing(mode="clear"))[1]


def test_a_phone_that_takes_no_empty_text_gets_a_blank() -> None:
    world = world_of(text_field("note", "Note"), kind=StockPhone)
    world.backend.device.texts[APP, "note"] = "old"
    assert "emptied 1 field" in act(world, OPEN, typing(mode="clear"))[1]
    assert fields(world) == {"note": " "}


class LossyPhone(EmulatedPhone):
    """Emulated phone that stores `typed` in place of each typed text, or refuses to type if it is None."""

    typed: str | None = "half"

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/type" and self.typed is None:
            return CommandReply(500, {"error": "no input connection"})
        if command.path == "/type":
            self.device.texts[APP, "note"] = str(self.typed)
            return CommandReply(200, {"length": 99})
        return super().execute(command, now)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("meet", 'it holds "meet", which is not what was typed. Look before you type again; changed: true'),
        ("", 'it is empty: it holds "", which is not what was typed. Look before you type again; changed: false'),
        ("at noonat noon", 'it holds "at noonat noon", which is not what was typed'),
    ],
)
def test_lost_text_is_reported(typed: str, told: str) -> None:
    world = world_of(text_field("note", "Note"), kind=LossyPhone)
    backend_of(world, LossyPhone).typed = typed
    assert told in act(world, OPEN, typing("at noon"))[1]


def test_typing_that_is_refused() -> None:
    world = world_of(text_field("note", "Note"), kind=LossyPhone)
    backend_of(world, LossyPhone).typed = None
    for step in (typing("a"), typing(mode="clear")):
        assert act(world, OPEN, step)[1].startswith("error: 500: no input connection.")
    results = act(world_of(label("Words")), OPEN, typing("a"), typing("a", nodeId="1"))
    assert results[1].startswith("error: there is no text field on the screen\nscreen ")
    assert results[2] == 'error: 1 "Words" is no text field. Nothing was typed.'


class LeavingPhone(EmulatedPhone):
    """Emulated phone that shows its home screen when something is typed."""

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/type":
            self.device.global_action("home", now)
            return CommandReply(200, {"length": 1})
        return super().execute(command, now)


EDIT: dict[str, object] = {"editable": True, "className": "android.widget.EditText", "checkable": False}


def test_field_without_focus_or_that_is_gone() -> None:
    world = showing({**EDIT, "hintText": "To"}, {**EDIT, "hintText": "Text", "focused": True})
    refusal = 'error: 0 field "" "To" could not be focused. Nothing was typed.\nscreen '
    assert act(world, typing("a", nodeId="0"))[0].startswith(refusal)
    disabled = showing({**EDIT, "hintText": "To", "enabled": False})
    assert act(disabled, typing("a"))[0] == 'error: 0 field "" "To" disabled is disabled. Nothing was typed.'
    world = world_of(text_field("note", "Note"), kind=LeavingPhone)
    result = act(world, OPEN, typing("a"))[1]
    assert result.startswith('typed into 1 field "Note"; the field is gone, so what it holds is unknown; changed: true')


# --- keys ----------------------------------------------------------------------------------------------------------


def test_enter_ends_the_input() -> None:
    world = world_of(text_field("query", "Search"), foot=(button("Go", "go", ShowScreen("Ada")),))
    result = act(world, OPEN, typing("tea", enter=True))[1]
    changes = 'then Enter; changed: true; title: "Main" -> "Ada"'
    assert result.startswith(f'typed into 1 field "Search"; it holds "tea"; {changes}')
    form = world_of(*FORM)
    assert '2 field "" "Last name" focused' in act(form, OPEN, typing("a", nodeId="1", enter=True))[1]


def test_enter_on_phones_in_use_is_a_key_of_the_keyboard() -> None:
    ime = "com.google.android.inputmethod.latin"
    key = {"contentDescription": "Search", "clickable": True, "viewId": f"{ime}:id/key", "at": (0, 1800, 90, 1900)}
    field = {**EDIT, "focused": True, "nodeId": "w1:1", "viewId": "com.shop:id/q"}
    world = showing(key, field, packageName=ime)
    assert act(world, ("phone_press_key", {"key": "enter"}))[0].startswith("pressed enter; changed: false")
    none = showing(field)
    (result,) = act(none, ("phone_press_key", {"key": "enter"}))
    why = "this phone takes no Enter, and no keyboard with such a key is shown"
    assert result.startswith(f"error: {why}\nPress the app's")
    backend_of(world, ScreenPhone).keys = CommandReply(423, {"error": "locked"})
    assert act(world, ("phone_press_key", {"key": "enter"}))[0].startswith("error: 423: locked.")
    unread = AgentHarness(phone=True, backend=BlindPhone())
    assert act(unread, ("phone_press_key", {"key": "enter"}))[0].startswith("error: this phone takes no Enter")


@PHONES
def test_keys_that_other_acts_stand_for(kind: type[EmulatedPhone]) -> None:
    world = world_of(text_field("note", "Note"), kind=kind)
    world.backend.device.clipboard = " and tea"
    keys = [("phone_press_key", {"key": key}) for key in ("paste", "delete", "volume_up", "volume_down")]
    results = act(world, OPEN, typing("milk"), *keys)
    assert results[2].startswith('pressed paste; it holds "milk and tea"; changed: true')
    assert results[3].startswith('pressed delete; it holds "milk and te"; changed: true')
    assert results[4:] == ["pressed volume_up; the volume is 8", "pressed volume_down; the volume is 7"]
    world.backend.device.clipboard = ""
    assert "the clipboard is empty" in act(world, OPEN, keys[0])[1]
    world.backend.device.texts[APP, "note"] = "x"
    assert act(world, OPEN, keys[1])[1].startswith("pressed delete; it ")
    assert fields(world) == ({} if kind is EmulatedPhone else {"note": " "})


def test_keys_without_a_field_do_nothing() -> None:
    paste, delete = (("phone_press_key", {"key": key}) for key in ("paste", "delete"))
    results = act(world_of(label("Words")), OPEN, paste, delete)
    nothing = "there is no text field on the screen, so nothing was done; changed: false"
    assert [nothing in result for result in results] == [False, True, True]
    secret = world_of(text_field("pin", "PIN", password=True))
    assert act(secret, OPEN, delete)[1].startswith("error: this field cannot be read whole")
    assert act(showing(), ("phone_press_key", {"key": "volume_up"})) == ["pressed volume_up"]


# --- apps, waits, searches -----------------------------------------------------------------------------------------


def test_an_app_is_opened_by_package_or_name() -> None:
    screens = {"main": Screen(title="Main")}
    apps = [App(package=package, label=name, screens=screens) for package, name in (("a.b", "Notes"), ("c.d", "notes"))]
    apps.append(App(package=APP, label="Mail", screens=screens))
    world = AgentHarness(phone=True, backend=EmulatedPhone(seed_apps=apps))
    steps = [("phone_open_app", {"package": name}) for name in ("mail ", "Notes", "Maps")]
    named, several, unknown = act(world, *steps)
    assert named.startswith(f"opened {APP}; changed: true")
    assert several == "error: 2 apps have this name: a.b, c.d. Nothing was opened."
    refusal = 'error: no app has the name "Maps". Nothing was opened. The apps: "Notes", "notes", "Mail"'
    assert unknown.startswith(refusal)
    assert act(world, ("phone_get_apps", {}))[0].splitlines()[:2] == ['a.b "Notes"', 'c.d "notes"']
    assert act(showing(), ("phone_get_apps", {})) == ["(no apps)"]


def test_waiting_for_a_text() -> None:
    world = world_of(*chats())
    shown, gone, missing, still, slept = act(
        world, OPEN, ("phone_wait", {"text": "bo"}), ("phone_wait", {"text": "Cleo", "gone": True}),
        ("phone_wait", {"text": "Cleo", "ms": 700}), ("phone_wait", {"text": "Bo", "gone": True, "ms": 0}),
        ("phone_wait", {"ms": 50}),
    )[1:]  # fmt: skip
    assert re.match(r'"bo" is shown after 0\.\d s\nscreen ', shown)
    assert re.match(r'"Cleo" is gone after 0\.\d s\nscreen ', gone)
    assert re.match(r'error: "Cleo" is not shown after 0\.[789] s\nscreen ', missing)
    assert re.match(r'error: "Bo" is still shown after 0\.\d s\nscreen ', still)
    assert json.loads(slept) == {"slept_ms": 50}


def test_nodes_are_found_by_text_class_and_use() -> None:
    world = world_of(*chats(), foot=(button("Start", "start", ShowScreen("Ada")),))
    kind = "android.widget.Button"
    steps = [{"text": "bo"}, {"class_name": kind}, {"clickable": True, "limit": 1}, {"clickable": False}, {}]
    found = act(world, OPEN, *(("phone_find_nodes", step) for step in steps))[1:]
    assert [result.splitlines()[1:] for result in found[:4]] == [
        ['4 button "Bo" "On my way"'], ['7 button "Start"'], ['1 button "Ada" "On my way"'], ['0 "Main"'],
    ]  # fmt: skip
    assert found[4].partition("\n")[0].endswith(": 4")


@PHONES
def test_a_node_is_described_wherever_it_is(kind: type[EmulatedPhone]) -> None:
    world = world_of(*chats(), kind=kind)
    moved = doing(lambda: put_above(world, label("New")), ("phone_describe_node", {"nodeId": "4"}))
    line, body = act(world, OPEN, LOOK, moved)[2].splitlines()
    assert line == '5 button "Bo" "On my way"'
    assert json.loads(body)["className"] == "android.widget.LinearLayout"
    assert None not in json.loads(body).values()


def test_a_look_behind_acts_of_the_same_answer_shows_their_effect() -> None:
    world = world_of(*chats())
    tap = ("phone_tap_text", {"text": "Bo"})
    world.model.answers = [calls(OPEN, tap, LOOK, ("phone_current_app", {})), plain("Ok")]
    world.answer("Go")
    assert lines_of(world.host.finished[2].output)[1] == '1 "Bo"'
    assert json.loads(world.host.finished[3].output)["package"] == APP
