"""All rooms that somebody may go through in the end."""

from __future__ import annotations

from random import Random

from fuzz.audit import Kind
from fuzz.audits.agents import AGENTS
from fuzz.audits.alone import ALONES
from fuzz.audits.annex import ANNEXES
from fuzz.audits.board import BOARDS
from fuzz.audits.bridge import BRIDGES
from fuzz.audits.consenting import CONSENTING
from fuzz.audits.consoles import CONSOLES
from fuzz.audits.crammed import CRAMMED
from fuzz.audits.desk import DESKS
from fuzz.audits.driven import DRIVEN
from fuzz.audits.gate import GATES
from fuzz.audits.grants import GRANTED
from fuzz.audits.guarded import GUARDED
from fuzz.audits.hushed import HUSHED
from fuzz.audits.introductions import INTRODUCTIONS
from fuzz.audits.journals import JOURNALS
from fuzz.audits.limits import LIMITERS
from fuzz.audits.methods import METHODS
from fuzz.audits.panes import PANES
from fuzz.audits.portions import PORTIONS
from fuzz.audits.races import RACES
from fuzz.audits.rooms_of_api import ROOMS_OF_API
from fuzz.audits.sessions import SESSIONS
from fuzz.audits.shelves import SHELVES
from fuzz.audits.tallies import TALLIES
from fuzz.audits.wires import WIRES
from fuzz.audits.witnesses import WITNESSES
from fuzz.script import Script

__all__ = ["ROOMS", "ROUND", "rooms_of"]

ROUND = 10  # worlds, beginning with each tenth seed, of which each room is gone through in one

ROOMS: tuple[Kind, ...] = (
    *SESSIONS,
    *LIMITERS,
    *BRIDGES,
    *SHELVES,
    *DESKS,
    *BOARDS,
    *RACES,
    *ROOMS_OF_API,
    *WIRES,
    *AGENTS,
    *GRANTED,
    *GATES,
    *CONSOLES,
    *DRIVEN,
    *ANNEXES,
    *GUARDED,
    *TALLIES,
    *INTRODUCTIONS,
    *HUSHED,
    *WITNESSES,
    *CRAMMED,
    *METHODS,
    *PORTIONS,
    *ALONES,
    *CONSENTING,
    *PANES,
    *JOURNALS,
)
"""Each in as many worlds of a round as it stands here."""


def rooms_of(script: Script) -> list[Kind]:
    """Those that are gone through in the end of a world.

    A room's worlds, and its place among the others, are drawn from its own name: another room changes neither.
    """
    if script.rooms:
        return [kind for kind in dict.fromkeys(ROOMS) if kind.__name__ in script.rooms]
    seed, there = script.seed, dict[str, Kind]()
    for turn, kind in enumerate(ROOMS):
        name = kind.__name__
        again = sum(before is kind for before in ROOMS[:turn])
        first = Random(f"{name} {seed // ROUND}").randrange(ROUND)
        if (first + again * ROUND // 3) % ROUND == seed % ROUND:
            there[name] = kind
    return [there[name] for name in sorted(there, key=lambda name: Random(f"{name} at {seed}").random())]
