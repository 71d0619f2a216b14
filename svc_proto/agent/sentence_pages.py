"""Actions of plain sentences on the phone's settings: switches and bars are read, set, and read again."""

from collections.abc import Mapping
from itertools import chain

from svc_proto.agent.sentence_steps import SentenceSteps, ToolRunner
from svc_proto.agent.sentences import PhoneSetting, Sentence
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject

__all__ = ["PAGES", "SettingPages"]

PAGES: Mapping[PhoneSetting, str] = {
    PhoneSetting.WIFI: "WIFI_SETTINGS",
    PhoneSetting.BLUETOOTH: "BLUETOOTH_SETTINGS",
    PhoneSetting.MOBILE_DATA: "DATA_ROAMING_SETTINGS",
    PhoneSetting.AIRPLANE: "AIRPLANE_MODE_SETTINGS",
    PhoneSetting.LOCATION: "LOCATION_SOURCE_SETTINGS",
    PhoneSetting.DO_NOT_DISTURB: "ZEN_MODE_SETTINGS",
    PhoneSetting.DARK_THEME: "DARK_THEME_SETTINGS",
    PhoneSetting.BATTERY_SAVER: "BATTERY_SAVER_SETTINGS",
    PhoneSetting.NFC: "NFC_SETTINGS",
    PhoneSetting.HOTSPOT: "TETHER_SETTINGS",
    PhoneSetting.AUTO_ROTATE: "DISPLAY_SETTINGS",
    PhoneSetting.FLASHLIGHT: "",
}
"""Pages of Android's settings, of the intents `android.settings.…` (android.provider.Settings).

The flashlight has a switch in the quick settings alone.
"""

BAR_PAGES: Mapping[str, str] = {"volume": "SOUND_SETTINGS", "brightness": "DISPLAY_SETTINGS"}
SWITCHES = ("Switch", "ToggleButton", "CheckBox", "CompoundButton")  # classes of Android's views
BARS = ("SeekBar", "Slider")
STEP = 25  # percent by which a bar goes up or down
NEAR = 3  # percent that a bar may be off after a touch


class SettingPages(SentenceSteps):
    """Sentence actions that read and set switches and bars of the phone's settings."""

    def set_switch(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Open the page of a setting, press its switch if another state is wanted, and return a reply.

        The reply has the state, or states that there is no switch, that it did not change, or why a call failed.
        """
        setting = PhoneSetting(sentence.slots["setting"])
        name, wanted = self.parser.label(sentence.language, setting.value), sentence.slots.get("state")
        tool, given = "phone_send_intent", {"action": f"android.settings.{PAGES[setting]}"}
        if not PAGES[setting]:
            tool, given = "phone_press_key", {"key": "quick_settings"}
        problem = yield from self._try(sentence, call, tool, given)
        if problem:
            return problem
        switch = yield from self._switch(setting)
        if switch is None:
            return self._reply(sentence, "no_switch" if PAGES[setting] else "no_tile", setting=name)
        node, is_on = switch
        if wanted is None:
            return self._state_reply(sentence, "setting_is", name, is_on=is_on)
        if is_on is (wanted == "on"):
            return self._state_reply(sentence, "already", name, is_on=is_on)
        problem = yield from self._try(sentence, call, "phone_tap", {"nodeId": node})
        if problem:
            return problem
        after = yield from self._switch(setting)
        done = after is not None and after[1] is (wanted == "on")
        return self._state_reply(sentence, "toggled" if done else "not_toggled", name, is_on=wanted == "on")

    def _state_reply(self, sentence: Sentence, key: str, name: str, *, is_on: bool) -> str:
        state = self._reply(sentence, "state_on" if is_on else "state_off")
        return self._reply(sentence, key, setting=name, state=state)

    def _switch(self, setting: PhoneSetting) -> Flow[tuple[str, bool] | None]:
        """Return the node and the state of the switch that the screen shows for a setting; None if it shows none.

        Stock phones report the state of a node only when it is described (wire bridge 3.4).
        """
        node = yield from self._control(SWITCHES, setting.value)
        if node is None:
            return None
        identity = node.text("nodeId")
        described = yield from self._phone.call("POST", "/describe_node", {"nodeId": identity})
        return identity, described.body.get("checked") is True

    def set_level(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Set a bar and return the reply. Brightness is set in the quick settings if it is there, else on its page.

        If no bar is found, or its level is needed and unknown, the page stays open and the reply states that.
        """
        kind = sentence.slots["bar"]
        name = self.parser.label(sentence.language, f"bar_{kind}")
        found = None
        if kind == "brightness":
            problem = yield from self._try(sentence, call, "phone_press_key", {"key": "quick_settings"})
            if problem:
                return problem
            found = yield from self._bar(kind)
        if found is None:
            given = {"action": f"android.settings.{BAR_PAGES[kind]}"}
            problem = yield from self._try(sentence, call, "phone_send_intent", given)
            if problem:
                return problem
            yield from call("phone_screen", {})  # the look that the ids of nodes refer to
            found = yield from self._bar(kind)
        wanted = None if found is None else _level(sentence.slots, found[1])
        if found is None or wanted is None:
            return self._reply(sentence, "page_open", name=name)
        problem = yield from self._try(sentence, call, "phone_set_bar", {"nodeId": found[0], "percent": wanted})
        if problem:
            return problem
        after = yield from self._bar(kind)
        is_set = after is not None and after[1] is not None and abs(after[1] - wanted) <= NEAR
        return self._reply(sentence, "level_set" if is_set else "level_unsure", name=name, percent=str(wanted))

    def _bar(self, kind: str) -> Flow[tuple[str, int | None] | None]:
        """Return the node of the bar that the screen shows, and its value in percent if known; None without a bar."""
        node = yield from self._control(BARS, f"bar_{kind}")
        if node is None:
            return None
        value = node.text("value")
        return node.text("nodeId"), int(value) if value.isdecimal() else None

    def _control(self, classes: tuple[str, ...], key: str) -> Flow[JsonObject | None]:
        """Return a control of these classes with a word for `key` in its texts, else beside it; None without one."""
        nodes = yield from self._rows("GET", "/screen", {"include_bounds": True}, "nodes")
        words = self.parser.words(key)
        controls = [node for node in nodes if node.text("className").rpartition(".")[2] in classes]
        labels = [node for node in nodes if _names(node, words)]
        named = (node for node in controls if _names(node, words))
        beside = (node for node in controls if any(_is_beside(node, label) for label in labels))
        return next(chain(named, beside), None)


def _level(slots: Mapping[str, str], now: int | None) -> int | None:
    """Return the percentage to set; None for a step up or down from an unknown level (`now`)."""
    if "percent" in slots:
        return int(slots["percent"])
    if now is None:
        return None
    return min(100, now + STEP) if slots["change"] == "up" else max(0, now - STEP)


def _names(node: JsonObject, words: tuple[str, ...]) -> bool:
    """Report whether a node's text or description is one of these words, or begins or ends with it."""
    texts = (node.text("text").casefold(), node.text("contentDescription").casefold())
    return any(text and (text.startswith(word) or text.endswith(word)) for text in texts for word in words)


def _is_beside(control: JsonObject, label: JsonObject) -> bool:
    """Report whether the middle of a control is at the height of a label."""
    mine, theirs = control.get_object("bounds"), label.get_object("bounds")
    top, bottom = mine.integer("top") or 0, mine.integer("bottom") or 0
    middle = (top + bottom) // 2
    return (theirs.integer("top") or 0) <= middle <= (theirs.integer("bottom") or 0)
