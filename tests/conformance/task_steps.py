"""Steps of a scripted model: tool calls whose references are taken from the last screen that the model received.

    tap("Save")(screen)         # ("phone_tap", {"nodeId": "14", "look": 812})

A tap on a text that the screen lacks names the text instead, as a model does that guesses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

HEAD = re.compile(r"^screen (\d+) (\S+) ", re.MULTILINE)
Act: TypeAlias = tuple[str, Mapping[str, Any]]
LOOK: Act = ("phone_screen", {})


@frozen
class SeenScreen:
    """The screen in the last tool result that shows one: its number and its lines."""

    number: int = 0
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Sequence[str]) -> SeenScreen:
        """Return the last screen in the results; without one, a screen without lines."""
        for text in reversed(results):
            heads = list(HEAD.finditer(text))
            if heads:
                return cls(int(heads[-1][1]), tuple(text[heads[-1].end() :].splitlines()[1:]))
        return cls()

    def node(self, text: str, *kinds: str, place: int = 0) -> str:
        """Return the node number of a line that has exactly this text as one of its quoted texts; empty without one.

        If such a line is of one of `kinds`, only those of `kinds` count, otherwise all. `place` selects among them,
        from 0 on; the number is empty if there are too few.
        """
        quoted = json.dumps(text, ensure_ascii=False)
        found = [line.split(" ") for line in self.lines if quoted in line and line[:1].isdigit()]
        best = [words for words in found if len(words) > 1 and words[1] in kinds] or found
        return best[place][0] if place < len(best) else ""

    def others(self, text: str) -> list[str]:
        """Return the node numbers of the buttons without this text."""
        quoted = json.dumps(text, ensure_ascii=False)
        return [line.split(" ")[0] for line in self.lines if " button " in line and quoted not in line]


Step: TypeAlias = Callable[[SeenScreen], Act]
CONTROLS = ("button", "switch", "checkbox", "choice")


def call(tool: str, /, **arguments: Any) -> Step:
    """Return a step that calls a tool with fixed arguments."""
    return lambda screen: (tool, arguments)


def look() -> Step:
    return lambda screen: LOOK


def open_app(package: str) -> Step:
    return call("phone_open_app", package=package)


def key(name: str) -> Step:
    return call("phone_press_key", key=name)


def tap(text: str, place: int = 0) -> Step:
    """Return a step that taps the control with a text; `place` selects among several."""

    def step(screen: SeenScreen) -> Act:
        node = screen.node(text, *CONTROLS, place=place)
        if not node:
            return "phone_tap_text", {"text": text, "exact": True}
        return "phone_tap", {"nodeId": node, "look": screen.number}

    return step


def more(text: str) -> Step:
    """Return a step that taps the next button More options behind the row with a text."""

    def step(screen: SeenScreen) -> Act:
        row = screen.node(text, "button")
        numbers = [line.split(" ")[0] for line in screen.lines if '"More options"' in line]
        node = next((each for each in numbers if row and int(each) > int(row)), "")
        return "phone_tap", {"nodeId": node, "look": screen.number}

    return step


def hold(text: str, place: int = 0) -> Step:
    """Return a step that presses the row or field with a text for long; `place` selects among several."""

    def step(screen: SeenScreen) -> Act:
        node = screen.node(text, "button", "field", place=place)
        return "phone_long_press", {"nodeId": node, "look": screen.number}

    return step


def type_text(field: str, text: str, mode: str = "replace") -> Step:
    """Return a step that types a text into the field with the hint `field`."""

    def step(screen: SeenScreen) -> Act:
        node = screen.node(field, "field", "password")
        return "phone_type", {"text": text, "nodeId": node, "look": screen.number, "mode": mode}

    return step


def bar(text: str, percent: int) -> Step:
    """Return a step that sets the slider with a text to a percentage."""

    def step(screen: SeenScreen) -> Act:
        return "phone_set_bar", {"nodeId": screen.node(text, "slider"), "look": screen.number, "percent": percent}

    return step


def scroll(until: str) -> Step:
    return call("phone_scroll", direction="down", until=until)


def drag(*points: int) -> Step:
    return call("phone_drag", **dict(zip(("start_x", "start_y", "end_x", "end_y"), points, strict=True)))
