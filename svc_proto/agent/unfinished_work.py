"""Unfinished work of a turn on a phone: what its acts left open, from the screens before and after them.

    work = UnfinishedWork()
    work.record_screen(tree)                      # each screen that is read
    work.record_act("/tap", arguments, tree)      # each command that acts, before it is sent
    lines = work.lines(prompt, answer)            # for people, at the end of the turn

A line states what was seen and is no verdict: a text that an app saves by itself also still stands in its field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, frozen

from svc_proto.basics.entropy import sha256_hex
from svc_proto.schema.device_control import ScreenGesture
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.effects.screen_tree import ScreenTree, TouchedControl
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import KEYBOARD, ScreenNode

__all__ = ["UnfinishedWork"]

MAX_STEPS = 256  # acts of a turn that are compared
MAX_TEXTS = 4_096  # texts of a turn's screens
MAX_NAMED = 3  # labels or numbers in a line
MAX_SHOWN = 40  # characters of a text in a line
MAX_REQUEST = 300  # characters of a request whose numbers are looked for
MAX_OPENING = 24  # characters of a request that may just be one for an app
MIN_QUOTED = 4  # letters of a word in lower case that an answer repeats from the screen
GESTURES = {row.path: row.gesture for row in DEVICE_CONTROL.values() if row.gesture is not None}
TOUCHES = (ScreenGesture.PRESS, ScreenGesture.KEY)
_NUMBER = re.compile(r"[0-9]+")
_WORD = re.compile(r"\w+")


@frozen(kw_only=True)
class _Page:
    """Screen without its keyboard. `place` identifies a page of an app, `digest` its content."""

    digest: str
    main: str  # digest of the topmost window that can be acted on
    parts: frozenset[str]  # digests of all windows
    place: tuple[str, int, str]
    window: str
    is_dialog: bool  # another window of the app is behind it
    labels: tuple[str, ...]
    fields: Mapping[str, str]
    selected: frozenset[str]

    @classmethod
    def of(cls, tree: ScreenTree) -> _Page:
        windows: dict[str, list[ScreenNode]] = {}
        for node in tree.nodes:
            windows.setdefault(node.window, []).append(node)
        owners = {window: tree.package_of(nodes[0]) for window, nodes in windows.items()}
        shown = [window for window in windows if not KEYBOARD.search(owners[window])]
        main = next((window for window in shown if any(node.is_actionable for node in windows[window])), "")
        nodes = windows.get(main, [])
        behind = [each for each in shown[shown.index(main) + 1 :] if owners[each] == owners[main]] if nodes else []
        heading = next((node.text for node in nodes if node.text and not node.is_actionable), "")
        parts = {window: sha256_hex(repr(list(map(_seen_of, windows[window]))))[:16] for window in shown}
        return cls(
            digest=" ".join(parts.values()),
            main=parts.get(main, ""),
            parts=frozenset(parts.values()),
            place=(owners.get(main, tree.package), len(behind), heading),
            window=main,
            is_dialog=bool(behind),
            labels=tuple(dict.fromkeys(label for node in nodes for label in node.labels))[:MAX_NAMED],
            fields={_name_of(node): node.content for node in nodes if node.editable and not node.hides_text},
            selected=frozenset(label for node in nodes if node.selected for label in node.labels),
        )


@define
class _Step:
    """Act with the pages before and after it. `field` and `text`: what was typed, and where."""

    path: str
    before: _Page | None
    windows: frozenset[str]  # of the controls that were touched
    labels: tuple[str, ...]
    field: str = ""
    text: str = ""
    is_enter: bool = False
    has_effect: bool = False  # one that may need consent
    after: _Page | None = None


class UnfinishedWork:
    """Acts of one turn, and what they left unfinished."""

    def __init__(self) -> None:
        self._page: _Page | None = None
        self._steps: list[_Step] = []
        self._texts: dict[str, None] = {}  # of all screens
        self._facts: dict[str, None] = {}  # the words of the texts that are no buttons
        self.has_picture = False  # a picture of the screen was read, which is not compared
        self._given: list[str] = []  # the texts of all commands

    def record_screen(self, tree: ScreenTree) -> None:
        """Record a screen that was read, also as the latest screen after the last act."""
        self._page = _Page.of(tree)
        if len(self._texts) < MAX_TEXTS:
            self._texts |= dict.fromkeys((*tree.texts, *(node.value for node in tree.nodes)))
            facts = (node for node in tree.nodes if node.editable or not node.is_actionable)
            self._facts |= dict.fromkeys(word for node in facts for text in node.labels for word in _WORD.findall(text))
        if self._steps:
            self._steps[-1].after = self._page

    def record_act(
        self,
        path: str,
        arguments: Mapping[str, object],
        tree: ScreenTree,
        controls: Sequence[TouchedControl] = (),
        *,
        has_effect: bool = False,
    ) -> None:
        """Record a command that acts, before it is sent, with the controls of the screen that it touches.

        `/wait` is not recorded, nor is a command after `MAX_STEPS` others.
        """
        if path == "/wait" or len(self._steps) >= MAX_STEPS:
            return
        given = JsonObject.of(arguments)
        field = tree.field if path == "/type" else None
        text = "" if field is None or field.hides_text else given.text("text").strip()
        if GESTURES.get(path) in (None, ScreenGesture.TEXT):
            self._given.append(" ".join(map(str, arguments.values())))
        self._steps.append(
            _Step(
                path=path,
                before=self._page,
                windows=frozenset(control.node.window for control in controls),
                labels=tuple(label for control in controls for label in control.labels),
                field="" if field is None or not text else _name_of(field),
                text=text,
                has_effect=has_effect,
                is_enter=path == "/press_key" and given.text("key") == "enter",
            )
        )

    def lines(self, prompt: str, answer: str) -> tuple[str, ...]:
        """Return what is unfinished, as lines for people. The answer is the last text of the model."""
        if not self._steps:
            return ()
        found = [*self._typed(), *self._dialogs(), *self._selected(), *self._numbers(prompt)]
        return tuple(found or self._only_pages(prompt, answer))

    def _typed(self) -> Iterator[str]:
        """Yield lines about typed texts that may not have been sent or saved.

        Such a text is still in its field without a later Enter, or its page was left for one that shows no change. Of
        the latter only the first gets a line.
        """
        steps, page = self._steps, self._page
        typed = {step.field: place for place, step in enumerate(steps) if step.text}
        left = False
        for field, place in typed.items():
            text, then = steps[place].text, steps[place].before
            later = steps[place + 1 :]
            if page is not None and text in page.fields.get(field, ""):
                if not any(step.is_enter for step in later):
                    yield f"{_quote(text)} still stands in {_quote(field)}: it may not have been sent or saved"
            elif then is not None and not left and self._is_left_unchanged(place, then):
                left = True
                yield f"{_quote(text)} was typed, and the page was left for one that shows no change"

    def _is_left_unchanged(self, place: int, then: _Page) -> bool:
        """Report whether a typed text's page was left, without an effect, for a page that is as before the text."""
        page, known = self._page, [step.before for step in self._steps[: place + 1] if step.before is not None]
        if page is None or page.is_dialog or page.place == then.place:
            return False
        return page.digest in [each.digest for each in known] and not any(s.has_effect for s in self._steps[place:])

    def _dialogs(self) -> Iterator[str]:
        """Yield a line about the dialog or menu that is open, or about one closed without a choice by the last acts."""
        if self._page is not None and self._page.is_dialog:
            yield f"a dialog or menu is still open: {_list(self._page.labels)}"
            return
        for place in range(len(self._steps) - 1, -1, -1):
            step = self._steps[place]
            before, after = step.before, step.after
            if before is None or after is None or self._has_changed(place):
                return
            if before.is_dialog and not after.is_dialog and before.window not in step.windows:
                yield f"a dialog or menu was closed without a choice: {_list(before.labels)}"
                return

    def _selected(self) -> Iterator[str]:
        held = {label for step in self._steps if step.path == "/long_press" for label in step.labels}
        selected = [] if self._page is None else sorted(held & self._page.selected)
        if selected:
            yield f"still selected: {_list(selected)}"

    def _numbers(self, prompt: str) -> Iterator[str]:
        """Yield a line with numbers of the request, of two digits or more, that were neither typed nor on a screen.

        Zeros at the start of a number are ignored. The line has at most `MAX_NAMED` numbers. A request longer than
        `MAX_REQUEST` gives no line.
        """
        if len(prompt) > MAX_REQUEST:
            return
        known = " ".join((*self._texts, *self._given))
        wanted = dict.fromkeys(number.lstrip("0") for number in _NUMBER.findall(prompt))
        missing = [number for number in wanted if len(number) > 1 and number not in known]
        if missing:
            yield f"of the request, {', '.join(missing[:MAX_NAMED])} was neither typed nor seen on a screen"

    def _only_pages(self, prompt: str, answer: str) -> Iterator[str]:
        """Yield a line if the turn only opened and left pages, and its answer repeats nothing from a screen.

        Choices in dialogs before the last act count as nothing more if an earlier page is shown again. There is no line
        if a screenshot was taken, or if a short request only opened an app.
        """
        if self.has_picture or self._quotes(prompt, answer):
            return
        steps, page = self._steps, self._page
        changes = [place for place in range(len(steps)) if self._has_changed(place)]
        only_choices = not any(place == len(steps) - 1 or self._has_changed(place, choices=False) for place in changes)
        came_back = page is not None and any(page.main in step.before.parts for step in steps[:-1] if step.before)
        is_request_to_open = len(steps) == 1 and steps[0].path == "/open_app" and len(prompt) <= MAX_OPENING
        if (not changes and not is_request_to_open) or (only_choices and came_back):
            yield "pages were opened or left; the screens show no other change"

    def _has_changed(self, place: int, *, choices: bool = True) -> bool:
        """Report whether an act did, or may have done, more than open or leave a page or scroll.

        With `choices`, a choice in a dialog or menu counts.
        """
        step = self._steps[place]
        before, after = step.before, step.after
        if step.path in ("/open_app", "/scroll"):
            return False
        if GESTURES.get(step.path) not in TOUCHES or step.has_effect or before is None or after is None:
            return True
        if before.is_dialog and not after.is_dialog and before.window in step.windows:
            return choices  # it may show nowhere
        if before.place == after.place:
            return before.digest != after.digest
        known = [each for past in self._steps[: place + 1] if (each := past.before) and each.place == after.place]
        return bool(known) and known[-1].digest != after.digest

    def _quotes(self, prompt: str, answer: str) -> bool:
        """Report whether an answer repeats a word of the screens that the prompt lacks.

        The word must be long, or have two characters or more and not be in lower case, as names and numbers are not.
        """
        given, words = set(_WORD.findall(prompt)), set(_WORD.findall(answer))
        found = [
            word for word in self._facts if word not in given and word in (answer if not word.isascii() else words)
        ]
        return any(len(word) >= MIN_QUOTED or (len(word) > 1 and not word.islower()) for word in found)


def _seen_of(node: ScreenNode) -> tuple[object, ...]:
    return node.labels, node.class_name, node.bounds, node.selected, node.reported_checked, node.value


def _name_of(field: ScreenNode) -> str:
    return field.hint or field.description or field.view_name


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= MAX_SHOWN else f"“{line[: MAX_SHOWN - 1]}…”"


def _list(labels: Iterable[str]) -> str:
    return ", ".join(map(_quote, labels))
