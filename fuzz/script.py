"""What happens in one simulated world: a list of steps, drawn from a seed, kept as text.

A step names everybody by a number that is taken modulo who is there, and has a time of its own. So any step can be
left out, and the others still happen, at the same times.
"""

from __future__ import annotations

import json
from enum import Enum
from random import Random

from attrs import evolve, frozen

from fuzz.swarm import Swarm, swarm

__all__ = ["FAULTS", "Deed", "Script", "Step", "draw"]


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
    GUESS = "guess"  # who: an attacker; other: how often
    GARBAGE = "garbage"  # who: an attacker; other: which bytes
    BROWSE = "browse"  # who: which page; other: which route
    STRAY = "stray"  # who: a socket that answers a command that it was not sent
    TERMINAL = "terminal"  # who: a socket; other: what it types
    CHAT = "chat"  # who: a chat; other: how the model answers; amount: when the reader leaves, s, or 0
    SLOW_CHAT = "slow chat"  # a long answer, and a reader who does not read for `amount` s
    RUN = "run"  # who: a chat; other: how the model answers
    STOP_RUN = "stop run"  # who: a run
    DELETE_CHAT = "delete chat"  # who: a chat
    SPEAK = "speak"  # who: a session, or an API bearer; other: what is wanted and how they behave; amount: for so long
    TALK = "talk"  # the same, with the realtime agent; other: how the model answers, and how they behave
    TUI = "tui"  # who: a socket; other: what it asks its gateway for
    SAY = "say"  # who: a voice session in which something more is said
    COME_BACK = "come back"  # who: a phone that has a socket; other: how that one ends; amount: when, s
    CUT_SHORT = "cut short"  # who: a session that waits for a phone; other: which, and how it ends; amount: when, s
    RENEW = "renew"  # who: a socket; other: what grants its session is given; amount: when it tries them again, s
    SHARE = "share"  # the operator gives a file of the host to fetch; who: which file
    ASK = "ask"  # who: a session; other: what the phone's holder says, and how the phone is lost; amount: s it takes
    # faults
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
    DISK = "disk"  # other: the store refuses, files cannot be had, or all of it is slow; amount: for so long, s


FAULTS = (
    Deed.CUT,
    Deed.HANG,
    Deed.PART,
    Deed.SLOW,
    Deed.NOISE,
    Deed.STOP,
    Deed.KILL,
    Deed.DISK_FULL,
    Deed.CLOCK,
    Deed.REFUSE,
    Deed.AGE,
    Deed.UPSTREAM,
    Deed.DROP,
    Deed.DISK,
)

WEIGHTS: dict[Deed, int] = {
    Deed.REGISTER: 7,
    Deed.PAIR: 12,
    Deed.RECONNECT: 6,
    Deed.LEAVE: 3,
    Deed.COMMAND: 26,
    Deed.REVOKE: 3,
    Deed.EXTEND: 5,
    Deed.LIST: 4,
    Deed.UPLOAD: 6,
    Deed.FETCH: 9,
    Deed.INSPECT: 7,
    Deed.NOTIFY: 2,
    Deed.GUESS: 5,
    Deed.GARBAGE: 3,
    Deed.BROWSE: 3,
    Deed.STRAY: 4,
    Deed.TERMINAL: 8,
    Deed.CHAT: 10,
    Deed.SLOW_CHAT: 2,
    Deed.RUN: 3,
    Deed.STOP_RUN: 2,
    Deed.DELETE_CHAT: 1,
}
FAULT_WEIGHTS: dict[Deed, int] = {
    Deed.CUT: 6,
    Deed.HANG: 3,
    Deed.PART: 2,
    Deed.SLOW: 4,
    Deed.NOISE: 3,
    Deed.STOP: 1,
    Deed.KILL: 2,
    Deed.DISK_FULL: 1,
    Deed.CLOCK: 1,
    Deed.UPSTREAM: 3,
}
VOICE_WEIGHTS: dict[Deed, int] = {Deed.SPEAK: 4, Deed.TALK: 5, Deed.SAY: 4}
LIFE_WEIGHTS: dict[Deed, int] = {Deed.COME_BACK: 4, Deed.CUT_SHORT: 3, Deed.RENEW: 3, Deed.REFUSE: 3}
STORIES = 3  # at most, of those
CLOCKS = 3  # at most, that are set near something which counts by them
JUMPS = (3.0, 40.0, 3_600.0, 72_000.0)  # s at most
TELLING = (Deed.REGISTER, Deed.PAIR, Deed.EXTEND, Deed.STOP, Deed.KILL)
OLD = 0.15  # of all worlds with faults: the clock goes on by more than a day in the end
A_DAY_AND_A_HALF = 129_600.0  # s
NATIVE = 1 << 8 | 6 << 9  # `other` of a talk with a provider that hears and speaks, by somebody who just talks
AFTERWARDS = 30.0  # s after which they give up, if they have something to wait for
LOUD = 2 + 3 * (3 + 4 * 6)  # `other` of texts tried aloud at 24 kHz, to somebody who listens late
DESKS = 4  # steps at most of those who use an agent gateway
QUIETEST, LOUDEST = 2, 8  # steps of those who speak, in a world where anybody does
SILENT = 0.3  # of all worlds: nobody does
MEDIA_ROUNDS = (0, 1, 2)  # of those who use media more than others
LOOKS_AGAIN = (2.0, 13.5, 37.5)  # s, after which a medium is looked for again: somewhat less than some of them live
KEPT, SOUND, TRUSTED = 0.65, 0.75, 0.75  # of all worlds: no far end goes, the disk is well, the phone does not ask
PEACEFUL = 0.3  # of all worlds
PAIRED = 2.0  # s after which the phone and two devices are paired; a code whose answer is lost is used up
SUDDEN = 0.4  # of all faults
MOMENTS = (0.01, 0.05, 0.5)  # s at most after what they strike
NEWEST = (Deed.CUT, Deed.HANG, Deed.SLOW)  # of what they strike, there may be several: it is the newest
STOPPED = (Deed.CHAT, Deed.RUN)
STOPPED_SOON = 0.1  # of those: by somebody who has changed his mind
TOO_LATE = 640.0  # s after which a code that was registered is shown: it has expired then
LIFETIMES = (0.0, 0.0, 20.0, 60.0, 300.0, 3600.0)  # s that sessions live; 0: never ends, or the default


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
    """The steps in order of time, and the seed of all other chance in the world."""

    seed: int
    steps: tuple[Step, ...]

    @property
    def faults(self) -> int:
        """How many of the steps are faults."""
        return sum(step.deed in FAULTS for step in self.steps)

    def to_json(self) -> str:
        """One line for the seed and one for each step."""
        rows = [[step.at, step.deed.value, step.who, step.other, step.amount] for step in self.steps]
        return "\n".join([json.dumps({"seed": self.seed}), *map(json.dumps, rows)]) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Script:
        """Read what `to_json` wrote. ValueError for anything else."""
        first, *rows = text.splitlines()
        steps: list[Step] = []
        for row in rows:
            at, deed, who, other, amount = json.loads(row)
            steps.append(Step(at, Deed(deed), who, other, amount))
        return cls(json.loads(first)["seed"], tuple(steps))


def draw(seed: int) -> Script:
    """The script of a seed. It begins with two devices that pair, since without them nothing can happen."""
    rng, mine = Random(f"script {seed}"), _swarm(seed)
    peaceful = rng.random() < PEACEFUL
    good, bad = mine.weights(WEIGHTS), mine.weights(FAULT_WEIGHTS)
    pace = mine.pace
    steps = [
        Step(0.5, Deed.REGISTER, 0, 0, 0.0),
        Step(0.6, Deed.REGISTER, 0, rng.randrange(6), rng.choice(LIFETIMES)),
        Step(1.0, Deed.PAIR, 0, 0),
        Step(1.1, Deed.PAIR, 1, 1),
    ]
    at, codes = PAIRED, 2
    for _ in range(rng.randint(pace.fewest, pace.most)):
        pause = rng.uniform(5.0, 700.0) if rng.random() < pace.rests else rng.choice(pace.pauses)
        at = round(at + rng.random() * pause, 3)
        faulty = not peaceful and rng.random() < pace.faulty
        kinds = bad if faulty else good
        deed = rng.choices(list(kinds), list(kinds.values()))[0]
        step = Step(at, deed, rng.choice(mine.people), rng.choice(mine.varieties), _amount(deed, rng))
        if faulty and rng.random() < SUDDEN:  # it strikes what was begun last
            when = max(PAIRED, round(steps[-1].at + rng.choice(MOMENTS) * rng.random(), 3))
            step = evolve(step, at=when, who=-1 if deed in NEWEST else step.who)
        steps.append(step)
        if deed in STOPPED and rng.random() < STOPPED_SOON:
            when = round(at + rng.choice(MOMENTS) * rng.random(), 3)
            steps += [Step(when, Deed.STOP_RUN)] * rng.choice((1, 1, 2))
        if deed is Deed.REGISTER:  # a code is made to be used
            soon = rng.choice((0.2, 0.2, 1.0, 1.0, 1.0, TOO_LATE if pace.rests else 1.0))
            code = -1 if soon < TOO_LATE and rng.random() < 0.5 else codes
            steps.append(Step(round(at + soon, 3), Deed.PAIR, rng.choice(mine.people), code))
            codes += 1
    steps += [*_voices(seed, steps), *_gateways(seed, steps), *_lives(seed, steps)]
    steps += [*_media(seed, steps), *_drops(seed, steps), *_disks(seed, steps), *_questions(seed, steps)]
    return Script(seed, tuple(sorted((step for step in steps if mine.has(step.deed)), key=lambda step: step.at)))


def _swarm(seed: int) -> Swarm[Deed]:
    return swarm(seed, Deed, (Deed.REGISTER, Deed.PAIR))


def _voices(seed: int, others: list[Step]) -> list[Step]:
    """Those who speak do so beside the others, by a chance of their own."""
    rng, mine = Random(f"voices {seed}"), _swarm(seed)
    if rng.random() < SILENT:
        return []
    kinds = mine.weights(VOICE_WEIGHTS)
    steps: list[Step] = []
    for _ in range(rng.randint(QUIETEST, LOUDEST)):
        at = round(rng.choice(others).at + 1.0 + 3.0 * rng.random(), 3)
        deed = rng.choices(list(kinds), list(kinds.values()))[0]
        steps.append(Step(at, deed, rng.choice(mine.people), rng.randrange(1 << 16), round(rng.random() * 3.0, 3)))
        again = rng.choice((0, 0, 1, 2, 4)) if deed is not Deed.SAY else 0  # who speaks goes on
        pauses = [0.5 + rng.choice((1.0, 4.0, 8.0, 30.0)) * rng.random() for _ in range(again)]
        steps += [Step(round(at + pause, 3), Deed.SAY, -1) for pause in pauses]
    return steps


def _gateways(seed: int, others: list[Step]) -> list[Step]:
    """So do those who work with an agent gateway: what one has begun is gone on with."""
    rng, mine = Random(f"gateways {seed}"), _swarm(seed)
    steps: list[Step] = []
    for _ in range(rng.randint(0, DESKS)):
        at, who = rng.choice(others).at + rng.random(), rng.choice(mine.people)
        pauses = [0.0, *(rng.choice((0.1, 3.0, 40.0)) * rng.random() for _ in range(rng.randrange(3)))]
        steps += [Step(round(at + pause, 3), Deed.TUI, who, rng.randrange(64)) for pause in pauses]
    return steps


def _lives(seed: int, others: list[Step]) -> list[Step]:
    """Sessions that come to an end, phones that come back; and the clock is set just when it matters."""
    rng = Random(f"lives {seed}")
    peaceful = not any(step.deed in FAULTS for step in others)
    weights = {deed: weight for deed, weight in LIFE_WEIGHTS.items() if not (peaceful and deed in FAULTS)}
    steps: list[Step] = []
    for _ in range(rng.randint(0, STORIES)):
        at = round(rng.choice(others).at + 2.0 + 3.0 * rng.random(), 3)
        deed = rng.choices(list(weights), list(weights.values()))[0]
        steps.append(Step(at, deed, rng.randrange(64), rng.randrange(64), round(rng.random() ** 2 * 3.0, 3)))
    if peaceful:
        return steps
    telling = [step for step in others if step.deed in TELLING]
    for _ in range(rng.choice((0, 0, 1, CLOCKS))):
        at = rng.choice(telling).at + rng.choice((-0.02, 0.05))
        amount = rng.choice((-1.0, 1.0)) * rng.choice(JUMPS) * rng.random()
        steps.append(Step(round(at, 3), Deed.CLOCK, 0, 0, round(amount, 3)))
    if rng.random() < OLD:
        steps.append(Step(others[-1].at, Deed.AGE, 0, 0, A_DAY_AND_A_HALF))
    return steps


def _media(seed: int, others: list[Step]) -> list[Step]:
    """Somebody puts a few media there, reads one of them again and again, and once more when it should be over."""
    rng = Random(f"media {seed}")
    steps: list[Step] = []
    for _ in range(rng.choice(MEDIA_ROUNDS)):
        at, few = rng.choice(others).at, rng.randint(1, 3)
        favourite = rng.randint(1, few)
        kinds = rng.choices((Deed.SHARE, Deed.UPLOAD), (2, 1), k=few) + [Deed.FETCH] * rng.randint(1, 3)
        if rng.random() < 0.5:  # then there are too many of them
            more = rng.randint(1, 5)
            kinds += [*rng.choices((Deed.SHARE, Deed.UPLOAD), (2, 1), k=more), Deed.FETCH]
        else:
            more = 0
            kinds += [Deed.FETCH, Deed.FETCH]
        for place, deed in enumerate(kinds):
            last = place == len(kinds) - 1
            pause = rng.choice(LOOKS_AGAIN) if last and not more else 0.3 + rng.choice((0.5, 4.0)) * rng.random()
            at = round(at + pause, 3)
            who = rng.randrange(64) if deed is Deed.SHARE else -1  # the newest session
            steps.append(Step(at, deed, who, -favourite - (more if last else 0), 200.0))
    return steps


def _drops(seed: int, others: list[Step]) -> list[Step]:
    """Whoever answers goes away in the middle, a model or a voice provider. Others are slow to hear what is read."""
    rng = Random(f"drops {seed}")
    if rng.random() < KEPT:
        return []
    chats = [step for step in others if step.deed in (Deed.CHAT, Deed.RUN)] or others
    steps: list[Step] = []
    for _ in range(rng.randint(1, 3)):
        who = rng.randrange(2)
        at, amount = rng.choice(others if who else chats).at, round(rng.choice((1.0, 6.0, 6.0)) * rng.random(), 3)
        steps.append(Step(at, Deed.DROP, who, 0, amount))
        if who:  # somebody with the API's key talks with that provider
            steps.append(Step(at, Deed.TALK, -1, rng.randrange(9) | NATIVE, AFTERWARDS))
    for _ in range(rng.randint(0, 2)):
        at = rng.choice(others).at
        steps.append(Step(at, Deed.SPEAK, -1, LOUD, round(1.0 + 4.0 * rng.random(), 3)))
    return steps


def _disks(seed: int, others: list[Step]) -> list[Step]:
    """A disk has a bad time while people chat and upload; then somebody pulls the plug, perhaps."""
    rng = Random(f"disks {seed}")
    if rng.random() < SOUND:
        return []
    at, which, amount = rng.choice(others).at, rng.randrange(3), round(2.0 + 8.0 * rng.random(), 3)
    steps = [Step(at, Deed.DISK, 0, which, amount)]
    deeds = ((Deed.CHAT, Deed.RUN), (Deed.SHARE, Deed.UPLOAD, Deed.FETCH), (Deed.UPLOAD,))[which]
    for _ in range(rng.randint(4, 8)):
        deed = rng.choice(deeds)
        who = -1 if deed is Deed.UPLOAD else rng.randrange(64)
        steps.append(Step(round(at + amount * rng.random(), 3), deed, who, rng.randrange(4), 0.0))
    if rng.random() < 0.5:
        steps.append(Step(round(at + amount, 3), Deed.KILL, rng.randrange(2), 0, 1.0))
    return steps


def _questions(seed: int, others: list[Step]) -> list[Step]:
    """A phone asks its holder, who takes time; meanwhile its connection may be lost."""
    rng = Random(f"questions {seed}")
    if rng.random() < TRUSTED:
        return []
    steps: list[Step] = []
    for _ in range(rng.randint(1, 4)):
        at, amount = round(rng.choice(others).at + rng.random(), 3), round(0.5 + 12.0 * rng.random(), 3)
        steps.append(Step(at, Deed.ASK, -1, rng.randrange(64), amount))
    return steps


def _amount(deed: Deed, rng: Random) -> float:
    match deed:
        case Deed.REGISTER | Deed.EXTEND:
            return rng.choice(LIFETIMES)
        case Deed.UPLOAD:
            return float(rng.choice((1, 200, 5_000, 30_000)))
        case Deed.CHAT:
            return round(rng.choice((0.0, 0.0, 0.5, 3.0)) * rng.random(), 3)
        case Deed.NOISE:
            return round(rng.choice((0.0, 0.5, 2.0, 5.0)), 3)
        case Deed.CLOCK:
            return round(rng.choice((-1.0, 1.0)) * rng.choice((2.0, 40.0, 3600.0)) * rng.random(), 3)
        case Deed.STOP | Deed.KILL:
            return round(rng.uniform(0.1, 8.0), 3)
        case _:
            return round(rng.choice((2.0, 15.0, 40.0)) * rng.random(), 3)
