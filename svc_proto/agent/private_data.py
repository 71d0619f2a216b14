"""Private data that a turn has read on the phone, and whether a text contains it."""

import re
from collections.abc import Mapping
from functools import cached_property

from svc_proto.schema.device_control import PrivateContent
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.effects.app_kinds import AppKind, kind_of_app
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject

__all__ = ["CONTENT", "PrivateData"]

CONTENT = {row.path: row.content for row in DEVICE_CONTROL.values() if row.content is not None}
"""Kind of private data in each route's answers, by path."""
PRIVATE_TOOLS = frozenset(
    f"phone_{tool.name}"
    for row in DEVICE_CONTROL.values()
    if row.content in (PrivateContent.RECORDS, PrivateContent.EVENTS)
    for tool in row.tools
)
MAX_VALUES = 4_000  # tokens that are compared; the oldest are dropped
MAX_DEPTH = 8  # levels of an answer
_PRIVATE_KINDS = (AppKind.MESSAGING, AppKind.PRIVATE, AppKind.SYSTEM_UI, AppKind.DIALER)
_OPEN_KINDS = (AppKind.BROWSER, AppKind.LAUNCHER, AppKind.INSTALLER, AppKind.SETTINGS)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_DIGITS = re.compile(r"\d[\d ().\-/]{2,}\d")
_PERSONAL = re.compile(r"\+\d[\d ().\-/]{6,}\d|\b[A-Z]{2}\d{2}[ \d]{11,}|\b\d{6}\b|\b(?:\d{4}[ -]?){3}\d{4}\b")


class PrivateData:
    """Values in content that a turn has read and that may be private.

    `was_read`: private content was read, with or without a value.
    """

    def __init__(self, prompt: str = "") -> None:
        self.was_read = False
        self._values: dict[str, None] = {}
        self._prompt = prompt

    @cached_property
    def _given(self) -> frozenset[str]:
        """Return the values in the owner's prompt; they do not count as private."""
        return frozenset(_values_of(self._prompt))

    def read_answer(self, path: str, body: Mapping[str, object]) -> None:
        """Record the values in an answer of the phone's route `path`, if the route and app may have private content.

        Values in the owner's prompt are left out.
        """
        content = CONTENT.get(path)
        if content is PrivateContent.RECORDS:
            self.was_read = True
            self._add("\n".join(_texts(body, MAX_DEPTH)))
        elif content is not None:
            self._read_screen(ScreenTree.parse(body).package, "\n".join(_texts(body, MAX_DEPTH)))

    def read_history(self, name: str, content: str) -> None:
        """Record the values in a tool's result of an earlier turn, if the tool `name` is private or the phone's."""
        if name in PRIVATE_TOOLS:
            self.was_read = True
            self._add(content)
        elif name.startswith("phone_"):
            self._read_screen("", content)

    def is_in(self, text: str) -> bool:
        """Report whether a text contains a recorded value; one of over five characters is found with any separators."""
        compact = re.sub(r"[\W_]+", "", text).casefold()
        found = _values_of(text)
        return any(value in self._values for value in found) or any(
            value in compact for value in self._values if len(value) > 5
        )

    def _read_screen(self, package: str, text: str) -> None:
        kind = kind_of_app(package)
        if kind in _PRIVATE_KINDS:
            self.was_read = True
        elif kind in _OPEN_KINDS:
            return
        elif _EMAIL.search(text) or _PERSONAL.search(text):
            self.was_read = True
        self._add(text)

    def _add(self, text: str) -> None:
        for value in _values_of(text):
            if value not in self._given:
                self._values[value] = None
        while len(self._values) > MAX_VALUES:
            del self._values[next(iter(self._values))]


def _values_of(text: str) -> list[str]:
    """Return the values in a text that may be private: mail addresses, then numbers of at least four digits.

    An address is returned as its letters and digits alone, case-folded; a number as its digits alone.
    """
    mails = [re.sub(r"[\W_]+", "", found).casefold() for found in _EMAIL.findall(text)]
    numbers = [digits for found in _DIGITS.findall(text) if len(digits := re.sub(r"\D", "", found)) >= 4]
    return mails + numbers


def _texts(members: Mapping[str, object], depth: int) -> list[str]:
    """Return the texts and numbers of an answer and of objects in it, `depth` levels deep, but those in `_NO_TEXT`."""
    found: list[str] = []
    row = JsonObject.of(members)
    for name in row:
        if name not in _NO_TEXT:
            number = row.number(name)
            found += [row.text(name), *row.texts(name)] if number is None else [str(number)]
            inner = (row.get_object(name), *row.objects(name)) if depth else ()
            found += [text for each in inner for text in _texts(each, depth - 1)]
    return found


_NO_TEXT = frozenset(("nodeId", "className", "viewId", "packageName", "bounds", "rootBounds"))
