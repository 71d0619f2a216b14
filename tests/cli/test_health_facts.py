import pytest

from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts, RouteFacts
from tests.cli.test_health_checks import PLANTED, URL, WELL


def test_unknown_observations_are_no_problem_and_secrets_are_not_shown() -> None:
    facts = HostFacts(now=0.0, version="1", home="/h", key="sk-0123456789abcdef", dashboard_password="open sesame")
    assert [result.check.code for result in run_health_checks(facts) if result.is_problem] == []
    assert "sk-" not in repr(facts)
    assert "sesame" not in repr(facts)


@pytest.mark.parametrize(
    ("url", "api_url", "command"),
    [
        ("ws://192.0.2.10:8767", "http://192.0.2.10:8642", "nc -vz 192.0.2.10 8767; nc -vz 192.0.2.10 8642"),
        ("wss://home.example/relay", "https://home.example:443", "nc -vz home.example 443"),
        ("ws://[fd00::20]", "", "nc -vz fd00::20 80"),
    ],
)
def test_a_route_is_tested_from_another_machine(url: str, api_url: str, command: str) -> None:
    assert RouteFacts("lan", url, api_url=api_url).remote_test == command


def test_texts_for_programs() -> None:
    (result,) = [each for each in run_health_checks(PLANTED["model_unreachable"]) if each.text is not None]
    found = f"the model's server at {URL} cannot be reached: connection refused"
    about = {"code": "model_unreachable", "title": "Model", "severity": "error", "looked_at": "GET /models"}
    assert result.members() == {**about, "ok": False, "found": found, "remedy": result.check.remedy}
    assert result.lines() == [f"✗ Model: {found}   [model_unreachable]", f"    {result.check.remedy}"]
    good = run_health_checks(WELL)[0].members()
    assert (good["ok"], good["found"], good["remedy"]) == (True, None, None)
