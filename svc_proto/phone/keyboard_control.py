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
    "Answered",
    "LetGo",
    "PersonListener",
    "OtherNetwork",
    "PersonChannel",
    "Phrase",
    "Tap",
    "TurnSwitch",
    "Verb",
    "Word",
    "read_word",
]

KEYBOARD = Address("stdio", 0)  # from where the runtime accepts standard input
MOST_DIGITS = 10  # of a number that is typed
LONGEST_LINE = 4096  # bytes; a longer one is no line of a person
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
class Answered:
    """An answer to a question; `which` is its name, None for the one that is open."""

    allow: bool
    remember: bool
    which: str | None


class Verb(Enum):
    """What is to become of a text."""

    SHOW = "show"  # a chat text has come
    NOTIFY = "notify"  # a notification has come
    SAY = "say"  # the agent is to hear this
    PLAY = "play"  # the agent is to hear the speech in this file
    CHAT = "chat"  # the agent is to read this
    SHELL = "shell"  # a line for a terminal on the relay's host


@frozen
class Phrase:
    """A text, and what is to become of it."""

    verb: Verb
    text: str


@frozen
class TurnSwitch:
    """A switch is turned on or off."""

    switch: Switch
    on: bool


@frozen
class Tap:
    """An attachment is asked for."""

    number: int


@frozen
class OtherNetwork:
    """The phone is on another network."""

    cellular: bool


@frozen
class LetGo:
    """Terminal and agent are let go of."""


Word: TypeAlias = Answered | TurnSwitch | Tap | OtherNetwork | Phrase | LetGo


def read_word(line: str) -> Word | None:
    """What a line means; None for one that means nothing."""
    match line.lower().split():
        case [("on" | "off") as way]:
            return TurnSwitch(Switch.MASTER, way == "on")
        case [name, ("on" | "off") as way] if name in _SWITCHES:
            return TurnSwitch(_SWITCHES[name], way == "on")
        case [answer, *names] if answer in _ANSWERS and len(names) < 2:
            allow, remember = _ANSWERS[answer]
            return Answered(allow=allow, remember=remember, which=names[0] if names else None)
        case [("show" | "notify" | "say" | "chat" | "shell") as verb, _, *_]:
            text = line.strip()[len(verb) :].strip()  # as it was typed: markers have capitals
            return Phrase(Verb.PLAY if verb == "say" and text.lower().endswith(SOUND) else Verb(verb), text)
        case ["leave"]:
            return LetGo()
        case ["tap", number] if number.isdecimal() and len(number) < MOST_DIGITS:
            return Tap(int(number))
        case [("wifi" | "cellular") as network]:
            return OtherNetwork(network == "cellular")
        case _:
            return None


class PersonListener(Protocol):
    """Who hears the person."""

    def on_word(self, word: Word | None) -> None:
        """A line came; None when it made no sense."""

    def on_person_left(self) -> None:
        """No word will come any more."""


class PersonChannel(Channel):
    """The keyboard. Nothing is written to it: what the person is shown goes to the program as news."""

    __slots__ = ("_left", "_lines", "_listener")

    def __init__(self, engine: Engine, fact: Accepted, listener: PersonListener) -> None:
        super().__init__(engine, fact.ch, DEFAULT_LIMITS)
        self._listener = listener
        self._lines = LineBuffer(LONGEST_LINE)
        self._left = False

    def received(self, data: bytes) -> None:
        """Hear the lines that are whole."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self.leave()
            return
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._listener.on_word(read_word(text))

    def read_closed(self) -> None:
        """The keyboard is at its end."""
        self.leave()

    def closed(self, why: str) -> None:
        """The person's keyboard is gone: nobody answers any more."""
        super().closed(why)
        self._leave_once()

    def stop(self) -> None:
        """The process ends."""
        self.leave()

    def leave(self) -> None:
        """Read no more."""
        self.abort()
        self._leave_once()

    def _leave_once(self) -> None:
        if not self._left:
            self._left = True
            self._listener.on_person_left()
