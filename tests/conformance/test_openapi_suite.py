"""Tests of the three documents by openapi-spec-validator, and of the reader of schemathesis reports."""

import json

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.api.harness import ApiHarness
from tests.conformance.openapi_suite import read_report
from tests.conformance.result import Result
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.relay.harness import RelayHarness


def board() -> bytes:
    world = SimulatedEnvironment()
    body = DashboardServer(world).request("GET", "/openapi.json").body
    world.close()
    return body


DOCUMENTS = {
    "relay": lambda: RelayHarness().request("GET", "/openapi.json").body,
    "api": lambda: ApiHarness().request("GET", "/openapi.json").body,
    "dashboard": board,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_are_valid_openapi(name: str) -> None:
    assert list(OpenAPIV31SpecValidator(json.loads(DOCUMENTS[name]())).iter_errors()) == []


def test_a_report_is_read() -> None:
    result = Result("x")
    report = """<?xml version="1.0"?><testsuites><testsuite name="schemathesis">
        <testcase name="GET /a"/><testcase name="GET /b"><failure type="failure" message="a 500"/></testcase>
        <testcase name="GET /c"><error>gone</error></testcase><testcase name="GET /d"><skipped/></testcase>
    </testsuite></testsuites>"""
    read_report(report, "api", result)
    assert result.passed == 2
    assert result.failed == {"api: GET /b": "a 500", "api: GET /c": "gone"}
