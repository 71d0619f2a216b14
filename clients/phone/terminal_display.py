"""Terminal display of the reference phone: notifications, safety gates, confirmation requests.

It makes no decisions. Text from the network is shown without control characters, except newline and tab in answers and
in the output of terminals.
"""

import io
import os
import re
import select
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TextIO, cast

import click

from svc_proto.cli.input_parsing import strip_escapes
from svc_proto.commands import Notify
from svc_proto.phone.safety.activity_log import ActivityEntry, ActivityStatus
from svc_proto.phone.safety.view import SafetyView, StatusChip

__all__ = ["BlockingStream", "PhoneDisplay", "one_line", "strip_terminal_escapes"]

MAX_QUESTION_CHARS = 4000  # shown characters of a question's text; the number of omitted ones follows
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")  # a redrawn screen has many
COLOURS = {ActivityStatus.SUCCESS: "green", ActivityStatus.FAILED: "yellow", ActivityStatus.BLOCKED: "red"}


class BlockingStream(io.TextIOBase):
    """Text stream that waits while its descriptor takes no more.

    A terminal whose input is read without blocking does not block its writers either.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, text: str) -> int:
        """Write all of a text, and return its length."""
        data = memoryview(text.encode("utf-8", "replace"))
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                select.select([], [self._fd], [])
        return len(text)

    def isatty(self) -> bool:
        """Report whether the descriptor is a terminal."""
        return os.isatty(self._fd)


class PhoneDisplay:
    """Display of the phone's notifications. With `view`, the gates' state shows the commands' outcomes.

    The file `sound` gets the agent's latest speech.
    """

    def __init__(self, out: TextIO, *, view: bool, print_token: bool, sound: Path | None = None) -> None:
        self._out = out
        self._sound = sound
        self._open = False  # the last line has no end yet
        self._view = view
        self._print_token = print_token
        self._state = ""
        self._shown: tuple[str, ...] = ()  # ids of shown activities that are still in the log

    def on_notify(self, news: Notify) -> None:
        """Print a notification of the phone; ignore one of an unknown event.

        With `view`, `performed` is ignored, too: the gates' state shows the outcomes of commands.
        """
        fields = news.fields
        match news.event:
            case "paired" | "online":
                token = str(fields["token"])
                self._print(f"{news.event}: session {token if self._print_token else token[:8] + '…'}")
            case "offline":
                self._print(f"offline: next try in {fields['retry_in']:.1f} s")
            case "asked":
                self._show_confirmation(news)
            case "pinned":
                self._print(f"pinned: {fields['pin']} ({fields['url']})")
            case "note" | "heard":
                self._print(f"{'heard:' if news.event == 'heard' else '-'} {one_line(str(fields['text']))}")
            case "route":
                self._print(f"route: {one_line(str(fields['role']))} ({fields['url']})")
            case "attachment":
                self._print(_attachment(fields))
            case "terminal" | "answer":
                self._go_on(strip_terminal_escapes(str(fields.get("text", ""))))
            case "spoken":
                self._spoken(str(fields["text"]), cast("bytes", fields["sound"]))
            case "safety":
                self._safety(cast("SafetyView", fields["view"]))
            case "performed" if not self._view:
                # Method and path come from the relay: shown unchanged only if printable.
                command = f"{fields['method']} {fields['path']}"
                self._print(f"{command if command.isprintable() else ascii(command)} -> {fields['status']}")
            case _:
                self._show_chat(news)

    def _show_chat(self, news: Notify) -> None:
        """Print an event of a chat through a dashboard; ignore other notifications."""
        fields = news.fields
        match news.event:
            case "connected":
                self._print(f"connected: {fields['url']}")
            case "question":
                choices = ", ".join(one_line(str(choice)) for choice in cast("list[object]", fields["choices"]))
                self._print(click.style(f"? {one_line(str(fields['question']))} ({choices})", bold=True))
            case "answered":
                self._go_on("")
                if fields.get("error"):
                    self._print(f"- {one_line(str(fields['error']))}")

    def _show_confirmation(self, news: Notify) -> None:
        fields = news.fields
        verb, text = fields["verb"], str(fields["text"])
        why = f' It says "{one_line(str(verb))}":' if verb is not None else ""
        self._print(
            click.style(f"? {fields['confirmation']}: allow {one_line(str(fields['action']))}?{why}", bold=True)
        )
        for line in text[:MAX_QUESTION_CHARS].splitlines():
            self._print(f"    {one_line(line)}")
        if len(text) > MAX_QUESTION_CHARS:
            self._print(f"    … and {len(text) - MAX_QUESTION_CHARS} more characters that are not shown")
        self._print(f"  y, n, or a (yes, and do not ask again); no answer in {fields['seconds']:.0f} s means no")

    def _safety(self, view: SafetyView) -> None:
        state = describe_safety(view)
        if state != self._state:
            self._state = state
            self._print(click.style(state, fg="cyan"))
        for activity in reversed(view.activity):
            if activity.status is not ActivityStatus.PENDING and activity.activity_id not in self._shown:
                self._print(_line(activity))
        over = (each for each in view.activity if each.status is not ActivityStatus.PENDING)
        self._shown = tuple(each.activity_id for each in over)

    def _spoken(self, text: str, sound: bytes) -> None:
        self._print(f"agent: {strip_terminal_escapes(text).strip()}")
        if sound and self._sound is not None:
            try:
                self._sound.write_bytes(sound)
            except OSError as error:
                self._print(f"- {self._sound} cannot be written: {(error.strerror or 'failed').lower()}")
            else:
                self._print(f"  spoken into {self._sound}")

    def _go_on(self, text: str) -> None:
        """Write a part of a text that arrives in parts; an empty part ends its line."""
        self._open = not text.endswith("\n") if text else self._open
        if not text:
            self._end_line()
        click.echo(text, file=self._out, nl=False)
        self._out.flush()

    def _end_line(self) -> None:
        if self._open:
            self._open = False
            click.echo(file=self._out)

    def _print(self, text: str) -> None:
        self._end_line()
        click.echo(text, file=self._out)
        self._out.flush()


def describe_safety(view: SafetyView) -> str:
    """Return the gates' state in one line, with the contents of the app's notification, chip and banner."""
    if view.flavor != "sideload":
        return "[store build: no Device Control]"
    parts = ["Device Control is off"]
    if view.notification is not None:
        parts = [f"{view.notification.text} ({view.auto_disable_minutes} min idle turn it off)"]
    elif view.turned_off_by is not None:
        parts = [f"Device Control is off ({view.turned_off_by.value})"]
    if view.banner:
        parts.append("UNATTENDED ACCESS IS ON")
    elif view.unattended:
        parts.append("unattended access on")
    if view.chip is not StatusChip.HIDDEN:
        parts.append(f"status chip {view.chip.value}")
    missing = {
        "accessibility": view.accessibility_granted,
        "screen capture": view.screen_capture_granted,
        "overlay permission": view.overlay_granted,
    }
    parts += [f"no {name}" for name, is_there in missing.items() if not is_there]
    if view.trusted_verbs or view.trusted_actions:
        parts.append(f"not asked about: {', '.join(map(one_line, view.trusted_verbs + view.trusted_actions))}")
    return f"[{' | '.join(parts)}]"


def one_line(text: str) -> str:
    """Return a text as one line: unprintable characters are replaced by U+FFFD."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def strip_terminal_escapes(text: str) -> str:
    """Return text without terminal escapes, control characters except newline and tab, and repeated empty lines."""
    words = "".join(sign for sign in strip_escapes(text) if sign.isprintable() or sign in "\n\t")
    return _EMPTY_LINES.sub("\n\n", words)


def _attachment(fields: Mapping[str, object]) -> str:
    what = f"attachment {fields['number']}: {fields['state']}"
    if fields["message"]:
        what += f" ({fields['message']})"
    if fields["size"]:
        what += f", {fields['size']} bytes of {one_line(str(fields['content_type']))}"
    return f"{what}; tap {fields['number']} fetches it" if fields["tap"] else what


def _line(activity: ActivityEntry) -> str:
    time = datetime.fromtimestamp(activity.timestamp_ms / 1000).astimezone().strftime("%H:%M:%S")
    status = click.style(f"{activity.status.value:7}", fg=COLOURS[activity.status])
    words = " ".join(one_line(word) for word in (activity.method, activity.summary) if word)
    return f"{time} {status} {words}{f': {one_line(activity.result_text)}' if activity.result_text else ''}"
