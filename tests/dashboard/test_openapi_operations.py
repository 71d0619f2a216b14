"""The dashboard's document has exactly its routes, and the responses to GET match it."""

from typing import Any

import pytest

from svc_proto.dashboard import openapi_types
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.openapi_operations import build_api_doc
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.dashboard.service import Dashboard
from svc_proto.openapi.document import build_document
from tests.loops.dashboard_client import FILES, DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.openapi_validation import OpenApiValidator, answer_differences
from tests.support.routes_page import DASHBOARD, assert_shown

NAMES = {"id": "none", "token": "none", "prefix": "none"}


@pytest.mark.parametrize("prefix", ["", "/board"])
def test_document_has_exactly_the_routes(prefix: str) -> None:
    routes = Dashboard(DashboardConfig(root_path=prefix), FILES).router.routes
    document: Any = build_document(routes, build_api_doc(FILES, prefix), prefix)
    OpenApiValidator(document).expect_routes(routes)
    if not prefix:
        assert_shown(DASHBOARD, document)
    schemes = document["components"]["securitySchemes"]
    assert {name: scheme["description"].partition("`")[2].partition("`")[0] for name, scheme in schemes.items()} == {
        "password": "SVC_DASHBOARD_PASSWORD",
        "session": "POST /auth/password-login",
        "metrics": "SVC_METRICS_TOKEN",
    }


def test_handlers_return_the_types_of_the_dashboard() -> None:
    manual = build_api_doc(FILES)
    found = answer_differences(Dashboard(DashboardConfig(), FILES).router.routes, manual)
    docs = manual.by_label
    own = [label for label in found if getattr(docs[label].answer, "__module__", "") == openapi_types.__name__]
    assert own == list(manual.operations["Reference phone"])


def test_get_answers_match_the_document(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    board = DashboardServer(virtual, api=virtual.api())
    made = board.request("POST", "/api/agent/sessions", {"title": "One"})
    documented = OpenApiValidator.of(board.request("GET", "/openapi.json").body)
    documented.check("POST /api/agent/sessions", made)
    for path in documented.gets():
        for places in (NAMES, {**NAMES, "id": made.json["id"]}):
            answer = documented.get_and_check(lambda target: board.request("GET", target), path, places)
            assert answer.status in (200, 303, 400, 404), answer
    for place in PREFIXES:
        label = f"POST {place}/pairing"
        for body in ({}, {"mode": "lan"}, {"mode": "moon"}, {"tls": 5}):
            documented.check(label, board.request("POST", f"{place}/pairing", body))


def test_without_a_relay(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    documented = OpenApiValidator.of(board.request("GET", "/openapi.json").body)
    label = f"GET {PREFIXES[0]}/overview"
    answer = board.request("GET", label.partition(" ")[2])
    assert answer.status == 502
    documented.check(label, answer)
