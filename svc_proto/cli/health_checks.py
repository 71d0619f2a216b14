"""All health checks of a host, in the order of the report."""

from svc_proto.cli import server_finders, state_finders
from svc_proto.cli.health_facts import HealthCheck, HealthResult, HostFacts

__all__ = ["CHECKS", "run_health_checks"]

CHECKS: tuple[HealthCheck, ...] = (*server_finders.CHECKS.checks, *state_finders.CHECKS.checks)


def run_health_checks(facts: HostFacts) -> list[HealthResult]:
    """Run all checks, in their order."""
    return [HealthResult(check, check.look(facts)) for check in CHECKS]
