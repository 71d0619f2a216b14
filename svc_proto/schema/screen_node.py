"""Node of a phone's screen, as `GET /screen` and `/describe_node` report it (wire bridge 3.1, 3.2, 3.4).

Coordinates are pixels. Only some phones send `checkable`, `checked`, `password`, `hintText` and `more`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject

__all__ = ["CHECKABLE", "KEYBOARD", "NO_PLACE", "Bounds", "ScreenNode", "parse_bounds"]

Bounds: TypeAlias = tuple[int, int, int, int]  # left, top, right, bottom, px
NO_PLACE: Bounds = (0, 0, 0, 0)
SIDES = ("left", "top", "right", "bottom")
KINDS = {
    "Switch": "switch", "ToggleButton": "switch", "CheckBox": "checkbox", "CheckedTextView": "checkbox",
    "RadioButton": "radio", "SeekBar": "slider", "Slider": "slider", "RatingBar": "slider", "Spinner": "choice",
    "WebView": "web",
}  # fmt: skip
"""Kinds of nodes by class, without the package and the prefixes and suffixes of compatibility libraries."""
KEYBOARD = re.compile(r"inputmethod|keyboard|honeyboard|swiftkey|\.ime\b", re.IGNORECASE)
"""Packages of on-screen keyboards."""
CHECKABLE = ("switch", "checkbox", "radio")
_WITH_STATE = ("Switch", "CheckBox", "RadioButton", "ToggleButton", "CheckedTextView", "SeekBar", "RatingBar")
_COMPATIBILITY = re.compile("^(?:AppCompat|Material)|(?:Compat|Material)$")
_STATE = ("checkable", "checked", "password", "hintText")  # members that a description supplies


@fast_frozen(kw_only=True)
class ScreenNode:
    """Node of a screen. `node_id` is the phone's; `bounds` are all 0 if the phone reports none."""

    node_id: str = ""
    text: str = ""
    description: str = ""
    hint: str = ""
    class_name: str = ""  # the last part
    view_id: str = ""
    bounds: Bounds = NO_PLACE
    clickable: bool = False
    long_clickable: bool = False
    scrollable: bool = False
    editable: bool = False
    focused: bool = False
    selected: bool = False
    enabled: bool = True
    checkable: bool | None = None  # None: not reported, as its state is not
    reported_checked: bool | None = None  # None: not reported
    hides_text: bool = False  # a password
    more: str = ""  # where a list goes on; empty: nowhere, or unknown
    value: str = ""  # of a bar; empty: none, or unknown
    text_length: int = 0  # of the whole text, which a phone may have cut

    @classmethod
    def parse(cls, node: JsonObject, described: JsonObject | None = None) -> ScreenNode:
        """Parse a node of `GET /screen`, and the answer to `/describe_node` for it, if that names the same class."""
        more = described if described is not None and described.text("className") == node.text("className") else {}
        state = JsonObject({name: found[name] for found in (more, node) for name in _STATE if name in found})
        text = node.text("text")
        return cls(
            node_id=node.text("nodeId"),
            text=text,
            description=node.text("contentDescription"),
            hint=state.text("hintText"),
            class_name=node.text("className").rpartition(".")[2],
            view_id=node.text("viewId") or JsonObject(more).text("viewIdResourceName"),
            bounds=parse_bounds(node.get_object("bounds")) or NO_PLACE,
            clickable=node.boolean("clickable") is True,
            long_clickable=node.boolean("longClickable") is True,
            scrollable=node.boolean("scrollable") is True,
            editable=node.boolean("editable") is True,
            focused=node.boolean("focused") is True,
            selected=node.boolean("selected") is True,
            enabled=node.boolean("enabled") is not False,
            checkable=state.boolean("checkable"),
            reported_checked=state.boolean("checked"),
            hides_text=state.boolean("password") is True,
            more=node.text("more"),
            value=node.text("value"),
            text_length=max(node.integer("textLength") or 0, len(text)),
        )

    @property
    def window(self) -> str:
        """Return the part of the id that names the window."""
        return self.node_id.rpartition(":")[0]

    @property
    def number(self) -> str:
        """Return the part of the id that names the node within its screen."""
        return self.node_id.rpartition(":")[2]

    @property
    def view_name(self) -> str:
        """Return the last part of the view id."""
        return self.view_id.rpartition("/")[2]

    @property
    def package(self) -> str:
        """Return the package of the view id."""
        return self.view_id.partition(":")[0]

    @property
    def kind(self) -> str:
        """Return the kind of control for a reader, such as `button`, `field` or `checkbox`; empty for no control."""
        if self.editable:
            return "password" if self.hides_text else "field"
        found = KINDS.get(_COMPATIBILITY.sub("", self.class_name), "")
        if found:
            return found
        if self.scrollable:
            return "scroll"
        if self.clickable or self.long_clickable:
            return "button"
        return "" if self.checked is None else "checkbox"

    @property
    def checked(self) -> bool | None:
        """Return the state of a node that can be checked; None if it cannot, or if the state is unknown."""
        return None if self.checkable is False else self.reported_checked

    @property
    def has_state(self) -> bool:
        """Report whether the node can be checked, by the phone's report or its class, or is a bar, by its class."""
        return self.checkable is True or self.class_name.endswith(_WITH_STATE)

    @property
    def is_actionable(self) -> bool:
        """Report whether the node reacts to a touch or takes text."""
        return self.clickable or self.long_clickable or self.scrollable or self.editable

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the text and the description, if they are not blank."""
        return tuple(label for label in (self.text, self.description) if label.strip())

    @property
    def texts(self) -> tuple[str, ...]:
        """Return text, description and hint, each once, without empty ones."""
        return tuple(dict.fromkeys(text for text in (self.text, self.description, self.hint) if text))

    @property
    def content(self) -> str:
        """Return the text of a field; empty if it is the hint, which phones send as the text of an empty field."""
        return "" if self.text == self.hint else self.text

    @property
    def center(self) -> tuple[int, int]:
        """Return the point in the middle of the node's bounds, in whole pixels."""
        left, top, right, bottom = self.bounds
        return (left + right) // 2, (top + bottom) // 2

    @property
    def area(self) -> int:
        """Return the area in square pixels."""
        left, top, right, bottom = self.bounds
        return max(0, right - left) * max(0, bottom - top)

    def covers(self, point: tuple[int, int]) -> bool:
        """Report whether a point is within the node's bounds."""
        left, top, right, bottom = self.bounds
        return left <= point[0] < right and top <= point[1] < bottom


def parse_bounds(found: JsonObject) -> Bounds | None:
    """Parse a rectangle of the wire; return None if a side is missing."""
    left, top, right, bottom = (found.integer(side) for side in SIDES)
    if left is None or top is None or right is None or bottom is None:
        return None
    return left, top, right, bottom
