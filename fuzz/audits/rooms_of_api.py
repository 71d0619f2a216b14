"""The rooms of the API's side in which everything that is told follows from what was drawn beforehand."""

from __future__ import annotations

from fuzz.audit import Kind
from fuzz.audits.asked_in import ASKED_IN
from fuzz.audits.callers import CALLERS
from fuzz.audits.messages import MESSAGES
from fuzz.audits.stalls import STALLS
from fuzz.audits.tenants import TENANTS
from fuzz.audits.tools import PHONE_TOOLS
from fuzz.simulation.checks.chat import approvals, turn_in_all_protocols

__all__ = ["ROOMS_OF_API"]

ROOMS_OF_API: tuple[Kind, ...] = (
    *turn_in_all_protocols.CHECKS,
    *approvals.CHECKS,
    *PHONE_TOOLS,
    *MESSAGES,
    *TENANTS,
    *STALLS,
    *CALLERS,
    *ASKED_IN,
)
