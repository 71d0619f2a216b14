import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.tools.phone_looks import MAX_LOOKS, SETTLE_LIMIT, PhoneLooks
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse
from tests.agent.harness import AgentHarness
from tests.agent.tools.phone_world import screen_body
from tests.agent.tools.test_phone_screen import BUTTON, FIELD, button, text

Body = Mapping[str, object]


class ScriptedPhone:
    """Phone control whose screens come from a function of the time; describes nodes from a table."""

    def __init__(self, engine: Engine, screen: Callable[[float], Body]) -> None:
        self.engine = engine
        self.begun = engine.now.mono
        self.screen = screen
        self.about: dict[str, PhoneResponse] = {}
        self.asked: list[tuple[str, Body]] = []

    def call(self, method: str, path: str, arguments: Body) -> Flow[PhoneResponse]:
        yield from ()
        self.asked.append((path, arguments))
        if path == "/describe_node":
            return self.about[str(arguments["nodeId"])]
        return PhoneResponse(200, self.screen(self.engine.now.mono - self.begun))


def look(plan: Callable[[PhoneLooks, ScriptedPhone], Flow[Any]], screen: Callable[[float], Body]) -> Any:
    def run(parts: AgentParts, engine: Engine) -> Flow[Any]:
        phone = ScriptedPhone(engine, screen)
        return (yield from plan(PhoneLooks(cast("PhoneControl", phone)), phone))  # looks use two members

    return AgentHarness().run(run)


def still(*nodes: Body) -> Callable[[float], Body]:
    return lambda passed: screen_body(*nodes)


def test_states_are_requested_from_phones_that_leave_them_out() -> None:
    knob = {"className": "android.widget.Switch", "text": "Wi-Fi", "clickable": True}

    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[str]:
        switch = {"className": "android.widget.Switch", "checkable": True, "checked": False}
        field = PhoneResponse(200, {"className": "android.widget.EditText"})
        answers = PhoneResponse(200, switch), PhoneResponse(404, {"error": "gone"}), field
        phone.about = {f"w0:{place}": answer for place, answer in enumerate(answers)}
        shown = looks.show("", (yield from looks.read("Pixel")))
        assert [arguments.get("device") for _, arguments in phone.asked] == ["Pixel"] * 4
        assert phone.asked[0] == ("/screen", {"device": "Pixel", "include_bounds": True})
        return shown

    _, *lines = look(plan, still(knob, {**knob, "text": "Sync"}, FIELD)).splitlines()
    assert lines == ['0 switch "Wi-Fi" off', '1 switch "Sync" state unknown', '2 field "" @500,250']


@pytest.mark.parametrize(
    ("screen", "before", "seconds", "settled"),
    [
        (lambda passed: screen_body(text("new")), "old", 0.15, True),
        (lambda passed: screen_body(text("old" if passed < 1.0 else "new")), "old", 1.2, True),
        (lambda passed: screen_body(text("old")), "old", SETTLE_LIMIT, True),
        (lambda passed: screen_body(text(str(passed))), "old", SETTLE_LIMIT, False),
        (lambda passed: screen_body(text("new")), None, 0.15, True),
    ],
)
def test_settled_looks(screen: Callable[[float], Body], before: str | None, seconds: float, settled: bool) -> None:
    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[tuple[bool, float]]:
        then = None
        if before is not None:
            phone.screen = still(text(before))
            then = yield from looks.read("")
            phone.screen = screen
        begun = phone.engine.now.mono
        _, is_settled = yield from looks.settle("", then)
        return is_settled, phone.engine.now.mono - begun

    found, took = look(plan, screen)
    assert found is settled
    assert took == pytest.approx(seconds, abs=0.16)


def test_a_look_is_numbered_and_old_ones_are_dropped() -> None:
    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[None]:
        screen = yield from looks.read("")
        numbers = [int(looks.show("", screen).split()[1]) for _ in range(MAX_LOOKS + 2)]
        assert numbers == list(range(numbers[0], numbers[0] + MAX_LOOKS + 2))
        assert 100 <= numbers[0] < 900
        assert looks.latest("") == (numbers[-1], screen)
        assert looks.latest("another phone") is None
        for number in (numbers[2], numbers[-1]):
            assert looks.resolve("", "0", number, screen).texts == ("Ada",)
        assert looks.resolve("", "w0:0", None, screen).texts == ("Ada",)
        assert looks.resolve("another phone", "0", None, screen).texts == ("Ada",)  # no look: the screen of the moment
        for device, number in (("", numbers[0]), ("another phone", numbers[-1]), ("", 5)):
            with pytest.raises(ToolError, match=f"the screen {number} is too old, or unknown"):
                looks.resolve(device, "0", number, screen)
        with pytest.raises(ToolError, match=rf"screen {numbers[-1]} has no node 99\n.*screen \d+ com"):
            looks.resolve("", "99", None, screen)

    look(plan, still(button("Ada")))


def test_a_reference_is_bound_to_its_look() -> None:
    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[None]:
        first = yield from looks.read("")
        number = int(looks.show("", first).split()[1])
        phone.screen = still(button("Newcomer"), button("Ada"), button("Cleo"))
        now = yield from looks.read("")
        looks.show("", now)
        assert looks.resolve("", "0", number, now).node.node_id == "w0:1"
        assert looks.resolve("", "0", None, now).texts == ("Newcomer",)
        gone = f'the screen has changed: 1 button "Bo" of screen {number} is not there, .* stands 1 button "Ada"'
        with pytest.raises(ToolError, match=gone) as refused:
            looks.resolve("", "1", number, now)
        assert re.search(r'\nscreen \d+ .*\n0 button "Newcomer"\n', str(refused.value))
        phone.screen = still()
        with pytest.raises(ToolError, match=r"in its place stands nothing\. Nothing was done\."):
            looks.find("", first.rows[0], first, (yield from looks.read("")))

    look(plan, still(button("Ada"), button("Bo")))


def test_a_chat_refers_to_its_own_looks() -> None:
    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[None]:
        one, other = (looks.over(cast("PhoneControl", phone), chat) for chat in ("one", "other"))
        first = yield from one.read("")
        seen = int(one.show("", first).split()[1])
        phone.screen = still(button("Newcomer"), button("Ada"))
        now = yield from other.read("")
        newest = int(other.show("", now).split()[1])
        assert (newest, one.latest("")) == (seen + 1, (seen, first))
        assert one.resolve("", "0", None, now).texts == ("Ada",)
        with pytest.raises(ToolError, match=f"the screen {newest} is too old, or unknown"):
            one.resolve("", "0", newest, now)

    look(plan, still(button("Ada"), button("Bo")))


def test_found_rows_are_a_look() -> None:
    def plan(looks: PhoneLooks, phone: ScriptedPhone) -> Flow[str]:
        screen = yield from looks.read("")
        return looks.show("", screen, rows=[screen.rows[1]])

    head, *lines = look(plan, still({**BUTTON, "text": "Ada"}, button("Bo"))).splitlines()
    assert re.fullmatch(r"found on screen \d+ com\.example\.app 1000x2000: 1", head)
    assert lines == ['1 button "Bo"']
