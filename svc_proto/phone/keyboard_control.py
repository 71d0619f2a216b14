"""Keyboard control of a phone: each line of a channel is an input of the user.

The table shows the effects with the handler `UserControls`; a `DashboardPhone` handles some of the lines differently.

| line                        | effect                                                                |
|-----------------------------|-----------------------------------------------------------------------|
| `y`, `yes`, `allow`         | allow the command of the open confirmation                            |
| `a`, `always`               | allow it, and trust that verb or action from now on                   |
| `n`, `no`, `deny`           | deny it                                                               |
| `y c2`, `a c2`, `n c2`      | the same for a confirmation by its name                               |
| `on`, `off`                 | the master toggle                                                     |
| `unattended on`, …          | a switch by its name: see `Switch`                                    |
| `show MEDIA:svc-relay://…`  | a chat text: fetch the attachments in it                              |
| `tap 2`                     | fetch an attachment by its number                                     |
| `notify Ann: hi`            | a notification arrives, and is sent to the relay                      |
| `say what is the time?`     | a turn of the voice, which the agent answers aloud                    |
| `say question.wav`          | the same with the speech in that file                                 |
| `chat what is the time?`    | the same as text, by the `tui` channel of the relay                   |
| `shell uname -a`            | a line for a terminal on the relay's host                             |
| `leave`                     | detach from both channels                                             |
| `wifi`, `cellular`          | the network has changed                                               |

This module only parses the lines; `UserInputHandler` acts on them.
"""

from enum import Enum
from typing import Protocol, TypeAlias

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Address
from svc_proto.machines.line_buffer import LineBuffer
from svc_proto.phone.safety.settings import Switch
from svc_proto.wire.limits import DEFAULT_LIMITS

__all__ = [
    "HELP",
    "KEYBOARD",
    "ConfirmationAnswer",
    "DetachChannels",
    "UserInputHandler",
    "NetworkChanged",
    "KeyboardInputChannel",
    "TextInput",
    "TapAttachment",
    "SetSwitch",
    "TextAction",
    "UserInput",
    "parse_user_input",
]

KEYBOARD = Address("stdio", 0)  # address of the channel of standard input
MAX_DIGITS = 10  # of a number in a line
MAX_LINE_BYTES = 4096  # bytes; a longer line ends the input
SOUND = ".wav"  # a text with this suffix names a file
HELP = (
    "y, a or n answer the open question (a: do not ask again; add its name if several are open); "
    f"on or off turn Device Control on or off; {', '.join(switch.value for switch in Switch)} on or off: that switch; "
    "show TEXT fetches the media markers in a text, tap N an attachment; "
    "notify TITLE: TEXT: it has come; wifi or cellular: the network has changed; "
    "say TEXT is heard by the agent, and so is the speech of say FILE.wav, chat TEXT is read by it; "
    "shell LINE is typed on the relay's host, leave ends both"
)
# Values: allow, and trust from now on.
_ANSWERS = {
    "y": (True, False),
    "yes": (True, False),
    "allow": (True, False),
    "a": (True, True),
    "always": (True, True),
    "n": (False, False),
    "no": (False, False),
    "deny": (False, False),
}
_SWITCHES = {switch.value: switch for switch in Switch}


@frozen(kw_only=True)
class ConfirmationAnswer:
    """Answer to a confirmation; `which` is its name, None for the only open one."""

    allow: bool
    remember: bool
    which: str | None


class TextAction(Enum):
    """Use of a typed text, such as a line for the agent or for the shell."""

    SHOW = "show"  # a chat text is displayed
    NOTIFY = "notify"  # a notification arrives
    SAY = "say"  # a voice turn by text
    PLAY = "play"  # a voice turn by the speech in this file
    CHAT = "chat"  # a line for the agent
    SHELL = "shell"  # a line for a terminal on the relay's host


@frozen
class TextInput:
    """A line of the user that carries a text, with the action for the text."""

    verb: TextAction
    text: str


@frozen
class SetSwitch:
    """A line of the user that turns a switch on or off."""

    switch: Switch
    on: bool


@frozen
class TapAttachment:
    """A line of the user that requests an attachment by its number."""

    number: int


@frozen
class NetworkChanged:
    """A line of the user that reports a change between Wi-Fi and cellular."""

    cellular: bool


@frozen
class DetachChannels:
    """Request to detach from terminal and agent."""


UserInput: TypeAlias = ConfirmationAnswer | SetSwitch | TapAttachment | NetworkChanged | TextInput | DetachChannels


def parse_user_input(line: str) -> UserInput | None:
    """Parse a line; return None for an invalid one."""
    match line.lower().split():
        case [("on" | "off") as way]:
            return SetSwitch(Switch.MASTER, way == "on")
        case [name, ("on" | "off") as way] if name in _SWITCHES:
            return SetSwitch(_SWITCHES[name], way == "on")
        case [answer, *names] if answer in _ANSWERS and len(names) < 2:
            allow, remember = _ANSWERS[answer]
            return ConfirmationAnswer(allow=allow, remember=remember, which=names[0] if names else None)
        case [("show" | "notify" | "say" | "chat" | "shell") as verb, _, *_]:
            text = line.strip()[len(verb) :].strip()  # in the original case: markers have capitals
            return TextInput(
                TextAction.PLAY if verb == "say" and text.lower().endswith(SOUND) else TextAction(verb), text
            )
        case ["leave"]:
            return DetachChannels()
        case ["tap", number] if number.isdecimal() and len(number) < MAX_DIGITS:
            return TapAttachment(int(number))
        case [("wifi" | "cellular") as network]:
            return NetworkChanged(network == "cellular")
        case _:
            return None


class UserInputHandler(Protocol):
    """Handler of the user's lines."""

    def on_user_input(self, word: UserInput | None) -> None:
        """Handle a parsed line of the user; None stands for an invalid line."""

    def on_keyboard_closed(self) -> None:
        """Handle the end of the input."""


class KeyboardInputChannel(Channel):
    """Channel of the keyboard; nothing is written to it, since texts for the user are `Notify` events."""

    __slots__ = ("_left", "_lines", "_listener")

    def __init__(self, engine: Engine, fact: Accepted, listener: UserInputHandler) -> None:
        super().__init__(engine, fact.ch, DEFAULT_LIMITS)
        self._listener = listener
        self._lines = LineBuffer(MAX_LINE_BYTES)
        self._left = False

    def received(self, data: bytes) -> None:
        """Parse the complete lines that are not blank and pass them to the handler.

        If a line in `data` is too long, the input ends, and no line of `data` is passed on.
        """
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self.stop_reading()
            return
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._listener.on_user_input(parse_user_input(text))

    def read_closed(self) -> None:
        """Stop reading, and report the end of the input if that was not done before."""
        self.stop_reading()

    def closed(self, why: str) -> None:
        """Report the end of the input if that was not done before, since the channel was closed."""
        super().closed(why)
        self._close_once()

    def stop(self) -> None:
        """Stop reading, and report the end of the input if that was not done before, because the process ends."""
        self.stop_reading()

    def stop_reading(self) -> None:
        """Abort the channel, and report the end of the input if that was not done before."""
        self.abort()
        self._close_once()

    def _close_once(self) -> None:
        if not self._left:
            self._left = True
            self._listener.on_keyboard_closed()
