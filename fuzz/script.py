"""What happens in one simulated world: a list of steps, kept as text.

A step names everybody by a number that is taken modulo who is there, and has a time of its own. So any step can be
left out, and the others still happen, at the same times.
"""

from __future__ import annotations

import json
from enum import Enum

from attrs import frozen

__all__ = ["FAULTS", "PAIRED", "Deed", "Script", "Step"]

PAIRED = 2.0  # s after which the phone and two devices are paired; a code whose answer is lost is used up


class Deed(Enum):
    """What a step does. The comment says what `who`, `other` and `amount` are."""

    REGISTER = "register"  # the operator makes a code; other: its grants; amount: its lifetime, s
    PAIR = "pair"  # who: a device's host; other: a code, used ones too
    RECONNECT = "reconnect"  # who: a session
    LEAVE = "leave"  # who: a socket; other: with a reset if odd
    COMMAND = "command"  # who: a session; other: which route and which phone
    REVOKE = "revoke"  # who: the caller's session; other: the session that goes
    EXTEND = "extend"  # who: a session; other: grants; amount: lifetime, s
    LIST = "list"  # who: a session, or the operator
    UPLOAD = "upload"  # who: a session; amount: bytes
    FETCH = "fetch"  # who: a session, or nobody; other: an upload
    INSPECT = "inspect"  # who: which inspector
    NOTIFY = "notify"  # who: a socket
    REPORT = "report"  # who: a phone that reports its status
    GUESS = "guess"  # who: an attacker; other: how often
    GARBAGE = "garbage"  # who: an attacker; other: which bytes
    BROWSE = "browse"  # who: which page; other: which route
    STRAY = "stray"  # who: a socket that answers a command that it was not sent
    TERMINAL = "terminal"  # who: a socket; other: what it types
    CHAT = "chat"  # who: a chat; other: how the model answers; amount: when the reader leaves, s, or 0
    SLOW_CHAT = "slow chat"  # a long answer, and a reader who does not read for `amount` s
    RUN = "run"  # who: a chat; other: how the model answers
    STOP_RUN = "stop run"  # who: a run
    COMPLETE = "complete"  # who: how many ask, and whether they wait; other: how the model answers; amount: how long, s
    DELETE_CHAT = "delete chat"  # who: a chat
    SPEAK = "speak"  # who: a session, or an API bearer; other: what is wanted and how they behave; amount: for so long
    TALK = "talk"  # the same, with the realtime agent; other: how the model answers, and how they behave
    TUI = "tui"  # who: a socket; other: what it asks its gateway for
    SAY = "say"  # who: a voice session in which something more is said
    COME_BACK = "come back"  # who: a phone that has a socket; other: how that one ends; amount: when, s
    CUT_SHORT = "cut short"  # who: a session that waits for a phone; other: which, and how it ends; amount: when, s
    RENEW = "renew"  # who: a socket; other: what grants its session is given; amount: when it tries them again, s
    SHARE = "share"  # the operator gives a file of the host to fetch; who: which file
    CHANGE = "change"  # the operator changes, or removes, such a file; other: which
    IGNORE = "ignore"  # who: a socket that hears no close and goes on talking; other: how its session ends
    IMPATIENT = "impatient"  # who asks for something next leaves; other: with a reset if odd; amount: after so many s
    ASK = "ask"  # who: a session; other: what the phone's holder says, and how the phone is lost; amount: s it takes
    NOTE = "note"  # who: a chat; other: what is said to its agent's questions; amount: s that takes
    FORK = "fork"  # who: a chat that is forked; other: is the last copy deleted first?
    REPEAT = "repeat"  # other: how the model answers a program that asks the same again, with one key, `amount` s later
    SKIM = "skim"  # who: how many of the notifications the operator wants to see
    DOWNLOAD = "download"  # who: a session that ends in the middle; other: how; amount: when, s
    MCP = "mcp"  # who: a session; other: what its agent does; amount: s it takes
    BURY = "bury"  # who: a session that is revoked while nothing can be written; amount: s until a restart
    SUSPECT = "suspect"  # who: a session whose device guesses
    GUEST = (
        "guest"  # who: an agent that the owner lets in; other: how, or what it does with its tokens; amount: s it takes
    )
    DRIVE = "drive"  # who: such an agent, or a session; other: what it does with a phone; amount: s it takes
    INQUIRE = "inquire"  # who: a chat that is gone on with by MCP; other: how; amount: s it takes
    TOOL = "tool"  # who: a chat; other: which tools of MCP servers its agent uses, what they do; amount: s until a yes
    ERRAND = "errand"  # other: of which kind
    # faults, from here on
    CUT = "cut"  # who: a connection
    HANG = "hang"  # who: a connection; amount: for so long, s
    PART = "part"  # who: a device's host; amount: for so long, s
    SLOW = "slow"  # who: a socket that does not read; amount: for so long, s
    NOISE = "noise"  # amount: how bad
    STOP = "stop"  # who: relay or API; amount: s until it is started again
    KILL = "kill"  # the same
    DISK_FULL = "disk full"  # amount: for so long, s
    CLOCK = "clock"  # amount: s by which the wall clock of the home jumps
    REFUSE = "refuse"  # the store takes no session; who: a session; other: what is asked; amount: s until a restart
    AGE = "age"  # in the end; amount: s by which the wall clock of the home jumps
    UPSTREAM = "upstream"  # other: how it fails; amount: for so long, s
    DROP = "drop"  # who: model or voice provider; amount: s after the next question that its connection ends
    HICCUP = "hiccup"  # the store takes no rows of chats for `amount` s
    DISK = "disk"  # other: the store refuses, files cannot be had, all of it is slow or stalls; amount: for so long, s


FAULTS = tuple(Deed)[tuple(Deed).index(Deed.CUT) :]


@frozen
class Step:
    """At `at` seconds from the start somebody does something."""

    at: float
    deed: Deed
    who: int = 0
    other: int = 0
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.at:9.3f} s  {self.deed.value} {self.who} {self.other} {self.amount:g}"


@frozen
class Script:
    """The steps in order of time, the seed of all other chance in the world, and what is gone through in the end."""

    seed: int
    steps: tuple[Step, ...]
    rooms: tuple[str, ...] = ()  # by their names; none: those that the seed draws

    @property
    def faults(self) -> int:
        """How many of the steps are faults."""
        return sum(step.deed in FAULTS for step in self.steps)

    def to_json(self) -> str:
        """One line for the seed, and the rooms if there are some, and one for each step."""
        rows = [[step.at, step.deed.value, step.who, step.other, step.amount] for step in self.steps]
        first = {"seed": self.seed, **({"rooms": self.rooms} if self.rooms else {})}
        return "\n".join([json.dumps(first), *map(json.dumps, rows)]) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Script:
        """Read what `to_json` wrote. ValueError for anything else."""
        first, *rows = text.splitlines()
        steps: list[Step] = []
        for row in rows:
            at, deed, who, other, amount = json.loads(row)
            steps.append(Step(at, Deed(deed), who, other, amount))
        head = json.loads(first)
        return cls(head["seed"], tuple(steps), tuple(head.get("rooms", ())))
