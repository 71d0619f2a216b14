"""The rooms of the API's side in which everything that is told follows from what was drawn beforehand."""

from __future__ import annotations

from fuzz.audit import Kind
from fuzz.audits.brims import BRIMS
from fuzz.audits.consents import CONSENTS
from fuzz.audits.copies import COPIES
from fuzz.audits.cuts import CUTS
from fuzz.audits.farewells import FAREWELLS
from fuzz.audits.manners import MANNERS
from fuzz.audits.messages import MESSAGES
from fuzz.audits.offers import OFFERS
from fuzz.audits.orders import ORDERS
from fuzz.audits.parts import PARTS
from fuzz.audits.probes import PROBES
from fuzz.audits.refusals import REFUSALS
from fuzz.audits.servers import SERVERS
from fuzz.audits.sources import SOURCES
from fuzz.audits.streams import STREAMS
from fuzz.audits.tellings import TELLINGS
from fuzz.audits.troubles import TROUBLES
from fuzz.audits.upkeep import UPKEEP

__all__ = ["ROOMS_OF_API"]

ROOMS_OF_API: tuple[Kind, ...] = (
    *TELLINGS,
    *CONSENTS,
    *PARTS,
    *STREAMS,
    *MESSAGES,
    *UPKEEP,
    *PROBES,
    *REFUSALS,
    *FAREWELLS,
    *OFFERS,
    *MANNERS,
    *SOURCES,
    *CUTS,
    *TROUBLES,
    *BRIMS,
    *COPIES,
    *SERVERS,
    *ORDERS,
)
