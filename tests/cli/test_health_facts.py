from __future__ import annotations

from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts


def test_unknown_observations_are_no_problem_and_secrets_are_not_shown() -> None:
    facts = HostFacts(now=0.0, version="1", home="/h", key="sk-0123456789abcdef", dashboard_password="open sesame")
    assert [result.check.code for result in run_health_checks(facts) if result.is_problem] == []
    assert "sk-" not in repr(facts)
    assert "sesame" not in repr(facts)
