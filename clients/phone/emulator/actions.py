"""Effects that the press or the hold of a node has in the emulator, as values."""

from typing import TypeAlias

from attrs import frozen

__all__ = [
    "Action",
    "ChangeRecords",
    "ClearSelection",
    "Dismiss",
    "EditText",
    "Focus",
    "GoBack",
    "Launch",
    "OpenPicker",
    "Playback",
    "PressKey",
    "SelectEntry",
    "SetBar",
    "SetText",
    "ShowScreen",
    "Submit",
    "ToggleSwitch",
]


@frozen
class ShowScreen:
    """Show a screen of the same app, with some of its fields filled in."""

    screen: str
    fill: tuple[tuple[str, str], ...] = ()


@frozen
class GoBack:
    """Do what the back key does: mostly, go back one screen."""


@frozen
class Dismiss:
    """Close the system window on top."""


@frozen
class ToggleSwitch:
    """Toggle a switch or a check box."""

    key: str


@frozen
class Focus:
    """Put the cursor into a field."""

    key: str


@frozen
class SelectEntry:
    """Select or deselect a list entry (the effect of a long press)."""

    key: str


@frozen
class ClearSelection:
    """Deselect all list entries."""


@frozen
class SetText:
    """Set a text of the app, or with `adds` append to it; with `closes`, also close the picker on top."""

    key: str
    text: str
    adds: bool = False
    closes: bool = False


@frozen
class SetBar:
    """Set a bar to the touched part of its length, in percent."""

    key: str


@frozen
class OpenPicker:
    """Open a window that sets a text: one of some choices, a date or a time."""

    kind: str  # choice, date, time
    key: str
    title: str
    choices: tuple[str, ...] = ()


@frozen
class EditText:
    """Copy or cut the text of a field, or paste into it; an empty `command` opens the menu of these.

    The menu also has `Select all`, which changes nothing here.
    """

    key: str
    command: str = ""


@frozen
class PressKey:
    """Press a key of the on-screen keyboard: a letter, a space, `Enter` or `Delete`."""

    key: str


@frozen
class ChangeRecords:
    """Write, copy or delete records, and show `then`.

    The records are the selected ones, else the one whose id is the app's text `id`; if there is none, `write` makes a
    new one. `fields` of the app's texts become members of the records. `needs` are texts without which nothing is
    done. `into` is the collection of the copies. The toast and the target of `then` may name texts in braces.
    """

    how: str  # write, copy, delete
    collection: str
    then: str
    fields: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    into: str = ""
    toast: str = ""


@frozen
class Submit:
    """Put an item with the named fields into the outbox, empty the fields and show `then`."""

    kind: str
    then: str
    fields: tuple[str, ...] = ()


@frozen
class Launch:
    """Bring an app to the front, on the named screen if given."""

    package: str
    screen: str | None = None


@frozen
class Playback:
    """Press a button of the media player."""

    action: str


Action: TypeAlias = (
    ShowScreen
    | GoBack
    | Dismiss
    | ToggleSwitch
    | Focus
    | SelectEntry
    | ClearSelection
    | SetText
    | SetBar
    | OpenPicker
    | EditText
    | PressKey
    | ChangeRecords
    | Submit
    | Launch
    | Playback
)
