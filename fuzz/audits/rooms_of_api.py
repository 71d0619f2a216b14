"""The rooms of the API's side in which everything that is told follows from what was drawn beforehand."""

from __future__ import annotations

from fuzz.audit import Kind
from fuzz.audits.consents import CONSENTS
from fuzz.audits.messages import MESSAGES
from fuzz.audits.parts import PARTS
from fuzz.audits.probes import PROBES
from fuzz.audits.refusals import REFUSALS
from fuzz.audits.streams import STREAMS
from fuzz.audits.tellings import TELLINGS
from fuzz.audits.tools import PHONE_TOOLS
from fuzz.audits.upkeep import UPKEEP

__all__ = ["ROOMS_OF_API"]

ROOMS_OF_API: tuple[Kind, ...] = (
    *TELLINGS,
    *PHONE_TOOLS,
    *CONSENTS,
    *PARTS,
    *STREAMS,
    *MESSAGES,
    *UPKEEP,
    *PROBES,
    *REFUSALS,
)
