from __future__ import annotations

from typing import Any

import pytest

from svc_proto.service_clients.model_probe import (
    ModelAbilities,
    ModelListing,
    ModelTrial,
    find_abilities,
    list_models,
    try_model,
)
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json

URL = "http://model.lan/v1"


def listed(answer: Reply) -> ModelListing:
    return OneShotHarness(lambda engine: list_models(engine, URL, "k3y"), http=answer).run()


def test_the_list() -> None:
    rows = [{"id": "a"}, {"id": "b", "max_model_len": 8192}, {"id": "c", "meta": {"n_ctx": 4096}}, {"id": ""}, 5]
    found = listed(as_json({"data": rows}))
    assert (found.names, found.contexts, found.status, found.problem) == (
        ("a", "b", "c"),
        (("b", 8192), ("c", 4096)),
        200,
        "",
    )
    assert listed((401, b"{}")).status == 401
    assert listed(REFUSED).problem == "connection refused"


def able(routes: dict[str, Any], listing: ModelListing | None = None) -> ModelAbilities:
    def answer(asked: UpstreamRequest) -> Reply:
        return as_json(routes[asked.path]) if asked.path in routes else (404, b"")

    known = ModelListing() if listing is None else listing
    return OneShotHarness(lambda engine: find_abilities(engine, URL, "m", "", known), http=answer).run()


SHOWN = {"capabilities": ["completion", "tools"], "model_info": {"llama.context_length": 131_072, "x": 1}}


@pytest.mark.parametrize(
    ("routes", "contexts", "abilities"),
    [
        ({}, (), ModelAbilities()),
        ({}, (("m", 8192),), ModelAbilities(context=8192)),
        ({"/props": {"default_generation_settings": {"n_ctx": 4096}}}, (), ModelAbilities(context=4096)),
        ({"/api/show": SHOWN}, (), ModelAbilities(has_tools=True, context=131_072)),
        (
            {"/api/show": SHOWN, "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}, {"name": "n"}]}},
            (),
            ModelAbilities(has_tools=True, context=4096),
        ),
        ({"/api/show": SHOWN, "/api/ps": {"models": []}}, (("m", 8192),), ModelAbilities(has_tools=True, context=8192)),
        ({"/api/show": {"capabilities": ["completion"]}}, (), ModelAbilities(has_tools=False)),
        ({"/api/show": {}}, (), ModelAbilities()),
    ],
)
def test_abilities(routes: dict[str, Any], contexts: tuple[tuple[str, int], ...], abilities: ModelAbilities) -> None:
    assert able(routes, ModelListing(contexts=contexts)) == abilities


def tried(answer: Reply) -> ModelTrial:
    return OneShotHarness(lambda engine: try_model(engine, URL, "m", ""), http=answer).run()


def test_a_trial() -> None:
    call = {"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]}
    assert tried(as_json(call)) == ModelTrial(called_tool=True)
    assert tried(as_json({"choices": []})) == ModelTrial()
    assert tried(REFUSED).problem == "connection refused"


@pytest.mark.parametrize(
    ("status", "body", "problem", "refuses"),
    [
        (400, b'{"error": {"message": "m does not support tools"}}', "status 400: m does not support tools", True),
        (404, b'{"error": "model not found"}', "status 404: model not found", False),
        (500, b"", "status 500", False),
        (401, b'{"error": "no tool key"}', "status 401: no tool key", False),
    ],
)
def test_refused_trials(status: int, body: bytes, problem: str, refuses: bool) -> None:
    found = tried((status, body))
    assert (found.problem, found.refuses_tools) == (problem, refuses)
