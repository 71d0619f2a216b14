"""The script of a seed: what people do and what breaks, step by step, as its swarm has it."""

from __future__ import annotations

from random import Random

from attrs import evolve

from fuzz.episodes import APART, episodes
from fuzz.mcp_episodes import SPOKEN, mcp_episodes
from fuzz.script import PAIRED, Deed, Script, Step
from fuzz.subplots import subplots
from fuzz.swarm import swarm

__all__ = ["ALWAYS", "KINDS", "WEIGHTS", "draw"]

ALWAYS = (Deed.REGISTER, Deed.PAIR)  # are in every world
KINDS = [deed for deed in Deed if deed not in (*APART, *SPOKEN)]
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
    Deed.NOTIFY: 3,
    Deed.REPORT: 2,
    Deed.GUESS: 5,
    Deed.GARBAGE: 3,
    Deed.BROWSE: 3,
    Deed.STRAY: 4,
    Deed.TERMINAL: 8,
    Deed.CHAT: 10,
    Deed.SLOW_CHAT: 2,
    Deed.RUN: 3,
    Deed.STOP_RUN: 2,
    Deed.COMPLETE: 3,
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
PEACEFUL = 0.3  # of all worlds
SUDDEN = 0.4  # of all faults
MOMENTS = (0.01, 0.05, 0.5)  # s at most after what they strike
NEWEST = (Deed.CUT, Deed.HANG, Deed.SLOW)  # of what they strike, there may be several: it is the newest
STOPPED = (Deed.CHAT, Deed.RUN)
STOPPED_SOON = 0.1  # of those: by somebody who has changed his mind
TOO_LATE = 640.0  # s after which a code that was registered is shown: it has expired then
LIFETIMES = (0.0, 0.0, 20.0, 60.0, 300.0, 3600.0)  # s that sessions live; 0: never ends, or the default


def draw(seed: int) -> Script:
    """The script of a seed. It begins with two devices that pair, since without them nothing can happen."""
    rng, mine = Random(f"script {seed}"), swarm(seed, KINDS, ALWAYS)
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
    steps += subplots(seed, mine, steps)
    steps += [*episodes(seed, steps), *mcp_episodes(seed, steps)]
    return Script(seed, tuple(sorted((step for step in steps if mine.has(step.deed)), key=lambda step: step.at)))


def _amount(deed: Deed, rng: Random) -> float:
    match deed:
        case Deed.REGISTER | Deed.EXTEND:
            return rng.choice(LIFETIMES)
        case Deed.UPLOAD:
            return float(rng.choice((1, 200, 5_000, 30_000)))
        case Deed.CHAT:
            return round(rng.choice((0.0, 0.0, 0.5, 3.0)) * rng.random(), 3)
        case Deed.COMPLETE:
            return round(3.0 * rng.random() ** 2, 3)
        case Deed.RUN:
            return round(rng.choice((2.0, 15.0, 40.0, 280.0)) * rng.random(), 3)
        case Deed.NOISE:
            return round(rng.choice((0.0, 0.5, 2.0, 5.0)), 3)
        case Deed.CLOCK:
            return round(rng.choice((-1.0, 1.0)) * rng.choice((2.0, 40.0, 3600.0)) * rng.random(), 3)
        case Deed.SLOW | Deed.SLOW_CHAT:
            return round(rng.choice((2.0, 15.0, 40.0, 200.0, 200.0)) * rng.random(), 3)
        case Deed.STOP | Deed.KILL:
            return round(rng.uniform(0.1, 8.0), 3)
        case _:
            return round(rng.choice((2.0, 15.0, 40.0)) * rng.random(), 3)
