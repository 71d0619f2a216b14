"""Optional scenarios, each in a share of the scripts: a few related steps."""

from collections.abc import Callable, Sequence
from random import Random

from fuzz.simulation.script import PAIRED
from fuzz.steps import (
    ChatOnGateway,
    DownloadSlowly,
    Fault,
    ForkChat,
    GuessFromDevice,
    ListNotifications,
    PostNotification,
    RepeatCompletion,
    RequestNoteApproval,
    RevokeOnFullDisk,
    Step,
    StopReading,
    TypeInTerminal,
    UseMcp,
)

SHARE = 1 / 3  # share of all scripts
ON_GATEWAY = 1 / 8  # share of all scripts with phones on the app's standard connection
SUSPECTED = 1 / 16  # share of all scripts in which a device guesses
MOST = 3  # other scenarios of one script at most
NEXT = 1.0  # s at most from one step of a scenario to the next
BEHIND = 3  # scenarios start after so many other steps


def optional_scenarios(seed: int, others: list[Step]) -> list[Step]:
    """Return the steps of optional scenarios for a seed."""
    return [*_several(seed, others), *_suspected(seed, others), *_on_gateway(seed, others)]


def _on_gateway(seed: int, others: list[Step]) -> list[Step]:
    rng = Random(f"gateway {seed}")
    if rng.random() >= ON_GATEWAY:
        return []
    begin = max(PAIRED + 1.0, rng.choice(others).at)
    return _row(rng, begin, [(ChatOnGateway, rng.randrange(64), rng.randrange(64), 0.0) for _ in range(12)])


def _suspected(seed: int, others: list[Step]) -> list[Step]:
    rng = Random(f"suspects {seed}")
    if rng.random() >= SUSPECTED:
        return []
    return [GuessFromDevice.of(round(max(PAIRED + 1.0, rng.choice(others).at) + rng.random(), 3), rng.randrange(64))]


def _several(seed: int, others: list[Step]) -> list[Step]:
    rng = Random(f"episodes {seed}")
    if rng.random() >= SHARE:
        return []
    faulty = any(isinstance(step, Fault) for step in others)
    kinds = [kind for kind in OPTIONAL_SCENARIOS if faulty or kind is not _buried]
    steps: list[Step] = []
    for _ in range(rng.randint(1, MOST)):
        begin = max(PAIRED + 1.0, rng.choice(others[BEHIND:] or others).at) + rng.random()
        steps += rng.choice(kinds)(rng, begin)
    return steps


def _row(rng: Random, at: float, actions: Sequence[tuple[type[Step], int, int, float]]) -> list[Step]:
    steps: list[Step] = []
    for kind, index, choice, amount in actions:
        steps.append(kind.of(round(at, 3), index, choice, round(amount, 3)))
        at += NEXT * rng.random()
    return steps


def _noted(rng: Random, at: float) -> list[Step]:
    chat = rng.randrange(64)
    return _row(
        rng, at, [(RequestNoteApproval, chat, rng.randrange(64), 4.0 * rng.random()) for _ in range(rng.randint(2, 4))]
    )


def _forked(rng: Random, at: float) -> list[Step]:
    chat = rng.randrange(64)
    return _row(rng, at, [(ForkChat, chat, rng.randrange(64), 0.0) for _ in range(rng.randint(3, 5))])


def _repeated(rng: Random, at: float) -> list[Step]:
    return _row(rng, at, [(RepeatCompletion, 0, rng.randrange(64), 3.0 * rng.random()) for _ in range(2)])


def _skimmed(rng: Random, at: float) -> list[Step]:
    who = rng.randrange(64)
    notes = [(PostNotification, who, rng.randrange(64), 0.0) for _ in range(rng.randint(2, 5))]
    return [*_row(rng, at, notes), *_row(rng, at + 15.0, [(ListNotifications, rng.randint(1, 3), 0, 0.0)])]


def _downloaded(rng: Random, at: float) -> list[Step]:
    return _row(rng, at, [(DownloadSlowly, rng.randrange(64), rng.randrange(64), 0.5 + 4.0 * rng.random())])


def _told_by_mcp(rng: Random, at: float) -> list[Step]:
    few = rng.sample(range(64), 2)
    handlers = [(UseMcp, rng.choice(few), rng.randrange(64), 8.0 * rng.random() ** 2) for _ in range(rng.randint(3, 8))]
    return _row(rng, at, handlers)


def _buried(rng: Random, at: float) -> list[Step]:
    return _row(rng, at, [(RevokeOnFullDisk, rng.randrange(64), rng.randrange(64), 3.0 * rng.random())])


def _flooded(rng: Random, at: float) -> list[Step]:
    who = rng.randrange(64)
    return _row(rng, at, [(TypeInTerminal, who, 3, 0.0), (StopReading, -1, 0, 5.0), (TypeInTerminal, who, 4, 0.0)])


OPTIONAL_SCENARIOS: tuple[Callable[[Random, float], list[Step]], ...] = (
    *(_noted, _forked, _repeated, _skimmed, _downloaded, _buried, _flooded),
    *(_told_by_mcp, _told_by_mcp),
)
