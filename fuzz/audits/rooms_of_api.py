"""The checks of the API's side."""

from __future__ import annotations

from fuzz.audit import Kind
from fuzz.simulation.checks.chat import approvals, turn_in_all_protocols

ROOMS_OF_API: tuple[Kind, ...] = (*turn_in_all_protocols.CHECKS, *approvals.CHECKS)
