"""The person who holds the phone, at a keyboard: lines on one channel, each a decision, a switch or a wish.

| line                        | what it does                                                          |
|-----------------------------|-----------------------------------------------------------------------|
| `y`, `yes`, `allow`         | allow what the open question asks about                               |
| `a`, `always`               | allow it, and do not ask again about that verb or action              |
| `n`, `no`, `deny`           | deny it                                                               |
| `y c2`, `a c2`, `n c2`      | the same of a question by its name                                    |
| `on`, `off`                 | the master toggle                                                     |
| `unattended on`, …          | a switch by its name: see `Switch`                                    |
| `show MEDIA:svc-relay://…`  | a chat text: fetch what is in it                                      |
| `tap 2`                     | ask for an attachment by its number                                   |
| `notify Ann: hi`            | a notification has come: the relay is told of it                      |
| `say what is the time?`     | the agent hears it, and answers aloud                                 |
| `say question.wav`          | the agent hears the speech in that file                               |
| `chat what is the time?`    | the same as text, by the agent's line on the relay's host             |
| `shell uname -a`            | a line for a terminal there                                           |
| `leave`                     | lets go of both                                                       |
| `wifi`, `cellular`          | the network is another one now                                        |

The core that hears the words decides what they come to; here they are only read.
"""

from __future__ import annotations

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

KEYBOARD = Address("stdio", 0)  # from where the runtime accepts standard input
MAX_DIGITS = 10  # of a number that is typed
MAX_LINE_BYTES = 4096  # bytes; a longer one is no line of a person
SOUND = ".wav"  # at the end of what is said: it is a file
HELP = (
    "y, a or n answer the open question (a: do not ask again; add its name if several are open); "
    f"on or off turn Device Control on or off; {', '.join(switch.value for switch in Switch)} on or off: that switch; "
    "show TEXT fetches the media markers in a text, tap N an attachment; "
    "notify TITLE: TEXT: it has come; wifi or cellular: the network has changed; "
    "say TEXT is heard by the agent, and so is the speech of say FILE.wav, chat TEXT is read by it; "
    "shell LINE is typed on the relay's host, leave ends both"
)
_ANSWERS = {
    "y": (True, False),
    "yes": (True, False),
    "allow": (True, False),
    "a": (True, True),
    "always": (True, True),
    "n": (False, False),
    "no": (False, False),
    "deny": (False, False),
}  # allow, remember
_SWITCHES = {switch.value: switch for switch in Switch}


@frozen(kw_only=True)
class ConfirmationAnswer:
    """An answer to a question; `which` is its name, None for the one that is open."""

    allow: bool
    remember: bool
    which: str | None


class TextAction(Enum):
    """What is to become of a text."""

    SHOW = "show"  # a chat text has come
    NOTIFY = "notify"  # a notification has come
    SAY = "say"  # the agent is to hear this
    PLAY = "play"  # the agent is to hear the speech in this file
    CHAT = "chat"  # the agent is to read this
    SHELL = "shell"  # a line for a terminal on the relay's host


@frozen
class TextInput:
    """A text, and what is to become of it."""

    verb: TextAction
    text: str


@frozen
class SetSwitch:
    """A switch is turned on or off."""

    switch: Switch
    on: bool


@frozen
class TapAttachment:
    """An attachment is asked for."""

    number: int


@frozen
class NetworkChanged:
    """The phone is on another network."""

    cellular: bool


@frozen
class DetachChannels:
    """Terminal and agent are let go of."""


UserInput: TypeAlias = ConfirmationAnswer | SetSwitch | TapAttachment | NetworkChanged | TextInput | DetachChannels


def parse_user_input(line: str) -> UserInput | None:
    """What a line means; None for one that means nothing."""
    match line.lower().split():
        case [("on" | "off") as way]:
            return SetSwitch(Switch.MASTER, way == "on")
        case [name, ("on" | "off") as way] if name in _SWITCHES:
            return SetSwitch(_SWITCHES[name], way == "on")
        case [answer, *names] if answer in _ANSWERS and len(names) < 2:
            allow, remember = _ANSWERS[answer]
            return ConfirmationAnswer(allow=allow, remember=remember, which=names[0] if names else None)
        case [("show" | "notify" | "say" | "chat" | "shell") as verb, _, *_]:
            text = line.strip()[len(verb) :].strip()  # as it was typed: markers have capitals
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
    """Who hears the person."""

    def on_user_input(self, word: UserInput | None) -> None:
        """A line came; None when it made no sense."""

    def on_keyboard_closed(self) -> None:
        """No word will come any more."""


class KeyboardInputChannel(Channel):
    """The keyboard. Nothing is written to it: what the person is shown goes to the program as news."""

    __slots__ = ("_left", "_lines", "_listener")

    def __init__(self, engine: Engine, fact: Accepted, listener: UserInputHandler) -> None:
        super().__init__(engine, fact.ch, DEFAULT_LIMITS)
        self._listener = listener
        self._lines = LineBuffer(MAX_LINE_BYTES)
        self._left = False

    def received(self, data: bytes) -> None:
        """Hear the lines that are whole."""
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
        """The keyboard is at its end."""
        self.stop_reading()

    def closed(self, why: str) -> None:
        """The person's keyboard is gone: nobody answers any more."""
        super().closed(why)
        self._leave_once()

    def stop(self) -> None:
        """The process ends."""
        self.stop_reading()

    def stop_reading(self) -> None:
        """Read no more."""
        self.abort()
        self._leave_once()

    def _leave_once(self) -> None:
        if not self._left:
            self._left = True
            self._listener.on_keyboard_closed()
