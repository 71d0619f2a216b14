"""All rooms that somebody may go through in the end."""

from __future__ import annotations

from fuzz.audit import Kind
from fuzz.audits.agents import AGENTS
from fuzz.audits.board import BOARDS
from fuzz.audits.bridge import BRIDGES
from fuzz.audits.desk import DESKS
from fuzz.audits.grants import GRANTED
from fuzz.audits.limits import LIMITERS
from fuzz.audits.races import RACES
from fuzz.audits.sessions import SESSIONS
from fuzz.audits.shelves import SHELVES
from fuzz.audits.speech import SPEECH
from fuzz.audits.talks import TALKS
from fuzz.audits.turns import TURNS
from fuzz.audits.wires import WIRES

__all__ = ["ROOMS"]

ROOMS: tuple[Kind, ...] = (
    *SESSIONS,
    *LIMITERS,
    *BRIDGES,
    *SHELVES,
    *TALKS,
    *TURNS,
    *DESKS,
    *SPEECH,
    *BOARDS,
    *RACES,
    *WIRES,
    *AGENTS,
    *GRANTED,
)
"""Each as often as it stands here."""
