import re
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.actions import Focus, ShowScreen, Submit
from clients.phone.emulator.layout import App, Row, Screen, button, entry, icon, label, switch, text_field
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from tests.agent.harness import AgentHarness
from tests.agent.tools.phone_world import StockPhone, act, backend_of, lines_of, showing

APP = "org.test.app"
OPEN = ("phone_open_app", {"package": APP})
LOOK: tuple[str, dict[str, object]] = ("phone_screen", {})
PHONES = pytest.mark.parametrize("kind", [EmulatedPhone, StockPhone])


def world_of(*rows: Row, foot: tuple[Row, ...] = (), kind: type[EmulatedPhone] = EmulatedPhone) -> AgentHarness:
    screens = {
        "main": Screen(title="Main", rows=rows, foot=foot),
        **{name: Screen(title=name, rows=(label("Here"),)) for name in ("Ada", "Bo", "Cleo")},
    }
    return AgentHarness(phone=True, backend=kind(seed_apps=[App(package=APP, label="Test", screens=screens)]))


def chats() -> tuple[Row, ...]:
    return tuple(entry(name, "On my way", ShowScreen(name)) for name in ("Ada", "Bo"))


def put_above(world: AgentHarness, row: Row) -> None:
    app = world.backend.device.apps[APP]
    main = app.screens["main"]
    screens = {**app.screens, "main": evolve(main, rows=(row, *main.rows))}
    world.backend.device.apps[APP] = evolve(app, screens=screens)


def doing(change: Callable[[], None], step: tuple[str, Any]) -> Callable[[list[str]], tuple[str, Any]]:
    def then(results: list[str]) -> tuple[str, Any]:
        change()
        return step

    return then


@PHONES
def test_a_tap_says_what_was_touched_and_what_changed(kind: type[EmulatedPhone]) -> None:
    world = world_of(*chats(), kind=kind)
    opened, tapped, again = act(world, OPEN, ("phone_tap", {"nodeId": "4"}), ("phone_tap", {"nodeId": "0"}))
    changes = f'changed: true; app: com.example.launcher -> {APP}; title: "Home" -> "Main"'
    assert opened.startswith(f"opened {APP}; {changes}\n")
    changes = 'changed: true; title: "Main" -> "Bo"'
    assert tapped.startswith(f'tapped 4 button "Bo" "On my way" (LinearLayout); {changes}\n')
    assert lines_of(tapped) == ['0 button "Navigate up"', '1 "Bo"', '2 "Here"']
    assert again.startswith('tapped 0 button "Navigate up" (ImageButton); changed: true')


@PHONES
def test_touches_that_change_nothing_say_so(kind: type[EmulatedPhone]) -> None:
    world = world_of(label("Words"), foot=(button("Send", "send", Submit("x", "main", ("none",))),), kind=kind)
    results = act(
        world, OPEN, ("phone_tap", {"x": 500, "y": 1500}), ("phone_tap_text", {"text": "words"}),
        ("phone_tap_text", {"text": "Send"}), ("phone_scroll", {"direction": "down"}),
        ("phone_long_press", {"x": 500, "y": 1500, "duration": 700}), ("phone_swipe", {"direction": "left"}),
        ("phone_drag", {"start_x": 1, "start_y": 900, "end_x": 9, "end_y": 900}),
    )  # fmt: skip
    told = [re.sub(r"screen \d+$", "screen N", result) for result in results[1:]]
    nothing = "changed: false; nothing on the screen changed"
    assert told == [
        f"tapped 500,1500: nothing is there; {nothing}: it is still screen N",
        f'tapped 1 "Words" (TextView); {nothing}: it is still screen N',
        'error: 2 button "Send" disabled is disabled. Nothing was done.',
        f"scrolled down; {nothing}: this is the end: it is still screen N",
        f"pressed for long: 500,1500: nothing is there; {nothing}: it is still screen N",
        f"swiped from 702,1200 to 378,1200; {nothing}: it is still screen N",
        f"dragged from 1,900 to 9,900; {nothing}: it is still screen N",
    ]


@PHONES
def test_a_row_that_moved_is_found_again_and_one_that_is_gone_is_refused(kind: type[EmulatedPhone]) -> None:
    world = world_of(*chats(), kind=kind)
    newcomer = entry("Newcomer", "Hello", ShowScreen("Cleo"))
    results = act(world, OPEN, LOOK, doing(lambda: put_above(world, newcomer), ("phone_tap", {"nodeId": "4"})))
    assert results[2].startswith('tapped 7 button "Bo"')
    assert '"Main" -> "Bo"' in results[2]
    world = world_of(*chats(), kind=kind)

    def remove() -> None:
        app = world.backend.device.apps[APP]
        screens = {**app.screens, "main": evolve(app.screens["main"], rows=(label("Empty"),))}
        world.backend.device.apps[APP] = evolve(app, screens=screens)

    for tool in ("phone_tap", "phone_long_press", "phone_describe_node"):
        result = act(world, OPEN, LOOK, doing(remove, (tool, {"nodeId": "4"})))[2]
        assert result.startswith('error: the screen has changed: 4 button "Bo" "On my way" of screen ')
        assert lines_of(result) == ['0 "Main"', '1 "Empty"']
        world = world_of(*chats(), kind=kind)


class ShiftingPhone(EmulatedPhone):
    """Emulated phone that inserts a row above the others, and empties its field, right before its first touches."""

    shifts = 1  # touches before which that happens
    touches = 0

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        self.touches += command.path in ("/tap", "/long_press")
        if command.path in ("/tap", "/long_press") and self.shifts:
            self.shifts -= 1
            self.device.fill(APP, {"words": ""})
            app = self.device.apps[APP]
            main = app.screens["main"]
            rows = (entry(f"New {self.shifts}", None, ShowScreen("Cleo")), *main.rows)
            self.device.apps[APP] = evolve(app, screens={**app.screens, "main": evolve(main, rows=rows)})
        return super().execute(command, now)


def test_a_touch_is_bound_to_the_screen_where_the_phone_can() -> None:
    world = world_of(*chats(), kind=ShiftingPhone)
    assert '"Main" -> "Bo"' in act(world, OPEN, ("phone_tap", {"nodeId": "4"}))[1]
    slower = world_of(*chats(), kind=ShiftingPhone)
    backend_of(slower, ShiftingPhone).shifts = 2
    assert '"Main" -> "Bo"' in act(slower, OPEN, ("phone_tap", {"nodeId": "4"}))[1]
    assert backend_of(slower, ShiftingPhone).touches == 3  # each is bound to the latest screen
    sending = world_of(button("Send", "send", Submit("x", "main", ("words",))), kind=ShiftingPhone)
    sending.backend.device.fill(APP, {"words": "Hi"})
    assert "disabled. Nothing was done" in act(sending, OPEN, ("phone_tap_text", {"text": "Send"}))[1]
    restless = world_of(*chats(), kind=ShiftingPhone)
    backend_of(restless, ShiftingPhone).shifts = 9
    assert '"Main" -> "' in act(restless, OPEN, ("phone_tap", {"nodeId": "4"}))[1]  # the last touch is not bound
    assert backend_of(restless, ShiftingPhone).shifts == 5


@PHONES
def test_a_point_is_bound_to_its_look(kind: type[EmulatedPhone]) -> None:
    world = world_of(*chats(), kind=kind)
    point = {"x": 500, "y": 500}  # Bo
    newcomer = entry("Newcomer", "Hello", ShowScreen("Cleo"))
    opened, refused = act(world, OPEN, doing(lambda: put_above(world, newcomer), ("phone_tap", point)))
    told = 'error: the screen has changed: at 500,500 is now 4 button "Ada" "On my way". Nothing was done.\nscreen '
    assert refused.startswith(told)
    look = int(opened.partition("\nscreen ")[2].split()[0])
    unknown, gone, pressed = act(
        world, LOOK, ("phone_tap", {**point, "look": look + 500}), ("phone_tap", {"x": 500, "y": 2390}),
        ("phone_long_press", point),
    )[1:]  # fmt: skip
    assert unknown.startswith("error: the screen ")
    assert gone.startswith("tapped 500,2390: nothing is there; changed: false")
    assert pressed.startswith('pressed for long: 500,500: 4 button "Ada" "On my way"; changed: false')


def test_a_point_that_changes_while_it_is_touched() -> None:
    point = ("phone_tap", {"x": 500, "y": 500})
    world = world_of(*chats(), kind=ShiftingPhone)
    assert 'is now 3 button "Ada"' in act(world, OPEN, point)[1]
    below = ("phone_tap", {"x": 500, "y": 2300})
    restless = world_of(*chats(), kind=ShiftingPhone)
    backend_of(restless, ShiftingPhone).shifts = 9
    assert act(restless, OPEN, below)[1].startswith("tapped 500,2300: nothing is there; changed: true")
    assert backend_of(restless, ShiftingPhone).shifts == 5


def test_arguments_of_touches() -> None:
    world = world_of(*chats())
    results = act(
        world, OPEN, ("phone_tap", {}), ("phone_tap", {"x": 5_000, "y": 10}), ("phone_tap", {"nodeId": "77"}),
        ("phone_tap", {"nodeId": "4", "look": 5}), ("phone_tap", {"x": 500, "y": 300, "element": 3}),
    )  # fmt: skip
    assert results[1].startswith("error: give nodeId, the number of a node on the screen, or x and y in pixels")
    assert results[2] == "error: 5000,10 is outside of the screen (0, 0, 1080, 2400). Nothing was done."
    assert re.match(r"error: screen \d+ has no node 77\n", results[3])
    assert results[4].startswith("error: the screen 5 is too old, or unknown: look again")
    assert results[5].startswith('tapped 500,300: 1 button "Ada" "On my way"; changed: true')
    assert results[5].endswith("\n(ignored, as unknown: element. Known arguments: nodeId, look, x, y)")


@PHONES
def test_a_switch_reports_its_new_state(kind: type[EmulatedPhone]) -> None:
    world = world_of(switch("wifi", "Wi-Fi"), kind=kind)
    looked, tapped = act(world, OPEN, ("phone_tap_text", {"text": "Wi-Fi"}))
    assert lines_of(looked) == ['0 "Main"', '1 button "Wi-Fi" off', '3 switch "Wi-Fi" off']
    assert 'it is now 1 button "Wi-Fi" on; changed: true' in tapped


# --- by text -------------------------------------------------------------------------------------------------------


@PHONES
def test_tap_by_text_says_how_many_there_are(kind: type[EmulatedPhone]) -> None:
    world = world_of(
        text_field("query", "Search"), entry("Dark theme", "Display", ShowScreen("Ada")),
        entry("Dark theme", "Chats", ShowScreen("Bo")), entry("Darker", None, ShowScreen("Cleo")), kind=kind,
    )  # fmt: skip
    world.backend.device.texts[APP, "query"] = "Dark theme"
    first = act(world, OPEN, ("phone_tap_text", {"text": "dark  theme"}))[1]
    assert first.splitlines()[:4] == [
        'tapped 2 button "Dark theme" "Display" (LinearLayout)',
        "number 1 of 2 with this text; choose by index or nodeId. The others:",
        '5 button "Dark theme" "Chats"',
        '; changed: true; title: "Main" -> "Ada"',
    ]
    back = ("phone_press_key", {"key": "back"})
    results = act(
        world, back, ("phone_tap_text", {"text": "Dark theme", "index": 2}), back,
        ("phone_tap_text", {"text": "Dark theme", "index": 3}), ("phone_tap_text", {"text": "ker"}), back,
        ("phone_tap_text", {"text": "ker", "exact": True}),
    )  # fmt: skip
    assert '"Main" -> "Bo"' in results[1]
    assert results[3].startswith("error: index must be 1 to 2: so many have this text\n2 button")
    assert '"Main" -> "Cleo"' in results[4]
    assert results[6].startswith('error: nothing on the screen has the text "ker"\nscreen ')


def test_a_field_is_tapped_by_text_only_if_nothing_else_has_it() -> None:
    world = world_of(text_field("query", "Search"))
    tapped = act(world, OPEN, ("phone_tap_text", {"text": "search"}))[1]
    assert tapped.startswith('tapped 1 field "" "Search"')


# --- scrolling, bars -----------------------------------------------------------------------------------------------


@PHONES
def test_scroll_until_a_text_is_shown(kind: type[EmulatedPhone]) -> None:
    world = world_of(*(entry(f"Row {number}", None, ShowScreen("Ada")) for number in range(60)), kind=kind)
    found, there, lost = act(
        world, OPEN, ("phone_scroll", {"direction": "down", "until": "Row 50"}),
        ("phone_scroll", {"direction": "down", "until": "Row 51", "nodeId": "1"}),
        ("phone_scroll", {"direction": "down", "until": "Row 99", "nodeId": "1"}),
    )[1:]  # fmt: skip
    assert re.match(r'scrolled down \d+ times; "Row 50" is \d+ button "Row 50"\nscreen ', found)
    assert there.startswith("scrolled down")
    assert re.match(r'error: "Row 99" was not found: scrolled down \d+ times, to the end\nscreen ', lost)
    more = lines_of(found)[1]
    assert more == ("1 scroll #list more: above and below" if kind is EmulatedPhone else "1 scroll #list")


def test_scroll_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(*(label(f"Row {number}") for number in range(60)))
    nodes: list[object] = []

    def execute(command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/scroll":
            nodes.append(command.body.get("nodeId"))
        return perform(command, now)

    perform = world.backend.execute
    monkeypatch.setattr(world.backend, "execute", execute)
    ways: list[dict[str, object]] = [{"direction": "down"}, {"direction": "up"}, {"direction": "down", "until": "30"}]
    down, up, _ = act(world, OPEN, *(("phone_scroll", {**way, "nodeId": "1"}) for way in ways))[1:]
    assert down.startswith("scrolled down; changed: true\n")
    assert lines_of(up)[1] == "1 scroll #list more: below"
    assert len(nodes) > 2
    assert None not in nodes


class BarPhone(EmulatedPhone):
    """Emulated phone with a bar 1,000 pixels wide, which each tap sets to 40."""

    value = "10"

    def __init__(self) -> None:
        super().__init__()
        self.touched: list[object] = []

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/tap":
            self.touched.append(command.body.get("x"))
            self.value = "40"
        bar = {"nodeId": "w0:0", "className": "android.widget.SeekBar", "text": "Volume", "value": self.value}
        area = {"left": 0, "top": 0, "right": 1000, "bottom": 100}
        return CommandReply(200, {"packageName": "a.b", "nodes": [{**bar, "bounds": area}], "rootBounds": area})


def test_a_bar_is_set_by_a_touch() -> None:
    world = AgentHarness(phone=True, backend=BarPhone())
    bar, end = act(world, *(("phone_set_bar", {"nodeId": "0", "percent": part}) for part in (40, 100)))
    assert bar.startswith('set 0 slider "Volume" value 10 to 40 %; it is now 0 slider "Volume" value 40; changed: true')
    assert end.startswith('set 0 slider "Volume" value 40 to 100 %; changed: false')
    assert backend_of(world, BarPhone).touched == [400, 999]
    refused = act(world_of(label("Words")), OPEN, ("phone_set_bar", {"nodeId": "1", "percent": 5}))[1]
    assert refused.startswith('error: 1 "Words" is no bar')


# --- screens that cannot be read -----------------------------------------------------------------------------------


def test_an_act_behind_the_lock_is_an_error() -> None:
    steps: tuple[tuple[str, object], ...] = (
        LOOK, OPEN, ("phone_press_key", {"key": "home"}), ("phone_tap_text", {"text": "Main"}),
        ("phone_type", {"text": "x"}), ("phone_return_to_app", {}), ("phone_press_key", {"key": "wakeup"}),
    )  # fmt: skip
    world = world_of(label("Words"))
    world.backend.device.locked = world.backend.device.credential_lock = True
    looked, *results, woken = act(world, *steps)
    assert lines_of(looked) == ["(the phone is locked: ask the user to unlock it)", '0 "Locked"']
    assert looked.partition("\n")[0].endswith(" locked")
    assert all(result.startswith("error: ") for result in results)
    assert results[0].startswith("error: 400 keyguard_blocked: the lock screen is in the way.")
    assert woken.startswith("pressed wakeup; changed: false")


def test_an_app_opened_behind_a_lock_is_an_error() -> None:
    system = "com.android.systemui"
    locked = showing({"text": "12:00", "viewId": f"{system}:id/keyguard_clock"}, packageName=system)
    (result,) = act(locked, OPEN)
    assert result.startswith("error: 423 keyguard_blocked: the phone is locked, and nothing of this can be seen.")


class BlindPhone(StockPhone):
    """`StockPhone` whose screen cannot be read while `blind` is set; opening an app or tapping a text clears it."""

    blind = True

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/screen" and self.blind:
            return CommandReply(403, {"error": "blocked package com.bank"})
        if command.path in ("/open_app", "/tap_text"):
            self.blind = False
        return super().execute(command, now)


def test_an_act_on_an_unreadable_screen() -> None:
    steps: list[tuple[str, object]] = [
        ("phone_tap", {"nodeId": "1"}), ("phone_swipe", {"direction": "up"}), ("phone_type", {"text": "x"}),
        ("phone_set_bar", {"nodeId": "1", "percent": 1}),
    ]  # fmt: skip
    world = world_of(*chats(), kind=BlindPhone)
    refused = act(world, *steps)
    assert all(result.startswith("error: 403: blocked package com.bank") for result in refused)
    unread = "what it now shows cannot be read: 403: blocked package com.bank."
    results = act(
        world, ("phone_tap", {"x": 5, "y": 5}), ("phone_press_key", {"key": "delete"}),
        ("phone_press_key", {"key": "back"}), ("phone_scroll", {"direction": "up", "until": "x"}),
    )  # fmt: skip
    assert results[0] == f"tapped 5,5; {unread}"
    assert results[1].startswith("error: 400: key must be one of")
    assert results[2:] == [f"pressed back; {unread}", f"scrolled up; {unread}"]
    assert act(world, OPEN)[0].startswith(f"opened {APP}\nscreen ")
    blind = world_of(*chats(), kind=BlindPhone)
    assert act(blind, ("phone_tap_text", {"text": "Test"}))[0].startswith('tapped "Test"\nscreen ')
    backend_of(blind, BlindPhone).blind = True
    assert act(blind, ("phone_tap_text", {"text": "nonsense"}))[0].startswith("error: 400: text: nothing on the screen")


def test_a_selected_row_is_shown() -> None:
    world = world_of(entry("Ada", None, ShowScreen("Ada"), key="a"), icon("Add", "add", Focus("x")))
    pressed = act(world, OPEN, ("phone_long_press", {"nodeId": "1"}))[1]
    assert pressed.startswith('pressed for long: 1 button "Ada" (LinearLayout); changed: true')
    assert '1 button "Ada" selected' in lines_of(pressed)
