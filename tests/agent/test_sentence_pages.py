from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from svc_proto.agent.sentences import SentenceIntent
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.phone_control import PhoneResponse
from tests.agent.harness import AgentHarness
from tests.agent.test_sentence_actions import ScriptedParser, calls, run_sentence, say
from tests.support.playbook import make_flow

QUICK = ["phone_press_key", "phone_send_intent", "phone_screen", "phone_set_bar"]
NAMES = {"vol": "media volume", "bri": "brightness"}


@pytest.fixture
def world() -> AgentHarness:
    return AgentHarness(phone=True, sentences=ScriptedParser())


@pytest.mark.parametrize(
    ("text", "percent", "tools"),
    [
        ("bar=volume | percent=0", "0", ["phone_send_intent", "phone_screen", "phone_set_bar"]),
        ("bar=brightness | percent=90", "90", QUICK),
        ("bar=brightness | change=up", "65", QUICK),
        ("bar=brightness | change=down", "15", QUICK),
    ],
)
def test_bar_is_set_and_read_again(world: AgentHarness, text: str, percent: str, tools: list[str]) -> None:
    assert say(world, f"set_level | {text}", *["once"] * 3) == f"level_set {NAMES[text[4:7]]} {percent}"
    assert [name for name, _ in calls(world)] == tools


@pytest.mark.parametrize("kind", ["volume", "brightness"])
def test_bar_without_consent(world: AgentHarness, kind: str) -> None:
    assert say(world, f"set_level | bar={kind} | percent=40").startswith("failed ")


def test_setting_without_a_switch_or_without_consent(world: AgentHarness) -> None:
    assert say(world, "toggle | setting=flashlight | state=on") == "no_tile flashlight"
    assert say(world, "toggle | setting=wifi | state=off").startswith("failed ")
    assert say(world, "toggle | setting=hotspot | state=on", "once") == "no_switch hotspot"


def test_setting_is_switched_once(world: AgentHarness) -> None:
    assert say(world, "toggle | setting=wifi | state=off", "session") == "toggled wi-fi state_off"
    assert [name for name, _ in calls(world)] == ["phone_send_intent", "phone_tap"]
    assert say(world, "toggle | setting=wifi | state=off", "once") == "already wi-fi state_off"
    assert say(world, "check_setting | setting=wifi", "once") == "setting_is wi-fi state_off"
    assert say(world, "toggle | setting=airplane | state=on", "once") == "toggled airplane mode state_on"


class CannedPhone:
    """Phone whose page of settings has two switches beside their labels; `states` are those of the second, in turn."""

    def __init__(self, *states: bool) -> None:
        self.states = list(states)

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        yield from ()
        if path == "/describe_node":
            assert arguments == {"nodeId": "s2"}
            return PhoneResponse(200, {"checked": self.states.pop(0)})
        rows = (("l1", "TextView", "NFC", 0), ("s1", "Switch", "", 0), ("l2", "TextView", "Use Wi-Fi", 90))
        nodes: list[dict[str, object]] = []
        for node, kind, text, y in (*rows, ("s2", "Switch", "", 130)):
            place = {"nodeId": node, "bounds": {"top": y, "bottom": y + 80}}
            nodes.append({**place, "className": f"android.widget.{kind}", "text": text})
        return PhoneResponse(200, {"nodes": nodes})


@pytest.mark.parametrize(
    ("states", "tap", "answer"),
    [
        ((False, True), "{}", "toggled wi-fi state_on"),
        ((False, False), "{}", "not_toggled wi-fi state_on"),
        ((False,), "error: denied\nadvice for a model", "failed denied"),
        ((True,), "", "already wi-fi state_on"),
    ],
)
def test_switch_beside_its_label(states: tuple[bool, ...], tap: str, answer: str) -> None:
    def call(name: str, arguments: Mapping[str, object]) -> str:
        return tap if name == "phone_tap" else "{}"

    said = run_sentence(CannedPhone(*states), call, SentenceIntent.TOGGLE, setting="wifi", state="on")
    assert said == answer


def phone_with_bar(*values: str) -> object:
    """Return a phone with a label and a bar, which has the next of `values`; after the last its screen is empty."""
    bounds = {"top": 90, "bottom": 170}
    named = {"nodeId": "l1", "className": "android.widget.TextView", "text": "Brightness", "bounds": bounds}
    bar = {"nodeId": "b1", "className": "android.widget.SeekBar", "bounds": {"top": 50, "bottom": 130}}
    screens: list[dict[str, Any]] = [{"nodes": [named, {**bar, "value": value}]} for value in values]
    screens += [{"nodes": []}] * 9
    return SimpleNamespace(call=lambda *_: make_flow(PhoneResponse(200, screens.pop(0))))


@pytest.mark.parametrize(
    ("values", "change", "answer"),
    [
        (("40", "68"), {"change": "up"}, "level_set brightness 65"),
        (("", ""), {"percent": "30"}, "level_unsure brightness 30"),
        (("", "", ""), {"change": "up"}, "page_open brightness"),
        ((), {"percent": "30"}, "page_open brightness"),
        ((), {"fails": "phone_press_key"}, "failed phone_press_key"),
        ((), {"fails": "phone_send_intent"}, "failed phone_send_intent"),
        (("",), {"percent": "30", "fails": "phone_set_bar"}, "failed phone_set_bar"),
    ],
)
def test_bar_beside_its_label(values: tuple[str, ...], change: Mapping[str, str], answer: str) -> None:
    def call(name: str, arguments: Mapping[str, object]) -> str:
        return f"error: {name}" if change.get("fails") == name else "{}"

    assert run_sentence(phone_with_bar(*values), call, SentenceIntent.SET_LEVEL, bar="brightness", **change) == answer
