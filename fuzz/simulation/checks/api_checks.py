"""Checks of the API server."""

from __future__ import annotations

from fuzz.simulation.checks.chat import approvals, turn_in_all_protocols
from fuzz.simulation.checks.check_context import Kind

API_CHECKS: tuple[Kind, ...] = (*turn_in_all_protocols.CHECKS, *approvals.CHECKS)
