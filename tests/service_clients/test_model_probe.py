from typing import Any

import pytest

from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.model_probe import (
    TRIAL_TIMEOUT,
    ModelAbilities,
    ModelListing,
    ModelTrial,
    find_abilities,
    find_context,
    list_models,
    probe_context,
    try_model,
)
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, UpstreamRequest, as_json

URL = "http://model.lan/v1"


def listed(answer: Reply) -> ModelListing:
    return OneShotHarness(lambda engine: list_models(engine, URL, "k3y"), http=answer).run()


def test_the_list() -> None:
    rows = [{"id": "a"}, {"id": "b", "max_model_len": 8192}, {"id": "c", "meta": {"n_ctx": 4096}}, {"id": ""}, 5]
    found = listed(as_json({"data": rows}))
    assert (found.names, found.contexts, found.status) == (("a", "b", "c"), (("b", 8192), ("c", 4096)), 200)
    assert found.problem == ""
    assert listed((401, b"{}")).status == 401
    assert listed(REFUSED).problem == "connection refused"


def able(routes: dict[str, Any], listing: ModelListing | None = None) -> ModelAbilities:
    def answer(asked: UpstreamRequest) -> Reply:
        is_show = asked.path == "/api/show"
        assert (asked.method, asked.body) == (("POST", b'{"model":"m"}') if is_show else ("GET", b""))
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
        ({"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 4096}]}}, (), ModelAbilities(context=4096)),
    ],
)
def test_abilities(routes: dict[str, Any], contexts: tuple[tuple[str, int], ...], abilities: ModelAbilities) -> None:
    assert able(routes, ModelListing(contexts=contexts)) == abilities


@pytest.mark.parametrize(
    ("page", "context"),
    [
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 32_768}}, 4096),
        ({"default_generation_settings": {"n_ctx": 2048}}, 2048),
        ({"max_model_len": 8192}, 8192),
        ({"context_length": 200_000, "top_provider": {"context_length": 128_000}}, 128_000),
        ({"max_context_length": 32_768, "loaded_context_length": 4096}, 4096),
        ({"context_window": "large", "n_ctx": 3}, None),
        ({}, None),
    ],
)
def test_size_of_a_context(page: dict[str, object], context: int | None) -> None:
    assert find_context(JsonObject(page)) == context


def probed(model: str, routes: dict[str, Any], url: str = URL) -> tuple[int | None, list[str]]:
    """Return the context that a probe finds, and the paths that it requests after the list.

    The answer of a route with `*` behind its path is used once `/api/generate` was requested.
    """
    paths: list[str] = []

    def answer(asked: UpstreamRequest) -> Reply:
        paths.append(asked.path)
        found = routes.get(f"{asked.path}*" if "/api/generate" in paths and f"{asked.path}*" in routes else asked.path)
        return (404, b"") if found is None else as_json(found)

    context = OneShotHarness(lambda engine: probe_context(engine, url, model, ""), http=answer).run()
    return context, paths[1:]


LISTED = {"data": [{"id": "a", "meta": {"n_ctx": 4096}}, {"id": "b", "max_model_len": 8192}]}
NO_SIZE = {"/v1/models": {"data": [{"id": "m"}]}}
RUNNING = {"models": [{"name": "m:latest", "context_length": 4096}]}
V0 = [{"id": "n", "loaded_context_length": 512}, {"id": "m", "max_context_length": 32_768}]
V1 = [
    {"key": "n", "loaded_instances": [{"id": "n", "config": {"context_length": 512}}]},
    {"key": "m", "loaded_instances": [{"id": "m:2", "config": {"context_length": 6144}}]},
]


@pytest.mark.parametrize(
    ("model", "routes", "context"),
    [
        ("a", {"/v1/models": LISTED}, 4096),
        ("b", {"/v1/models": LISTED}, 8192),
        ("c", {"/v1/models": LISTED}, None),
        ("m", {"/v1/models": {"data": [{"id": "a.gguf", "meta": {"n_ctx": 4096}}]}}, 4096),
        ("b", {"/v1/models": LISTED["data"]}, 8192),
        ("m", {"/v1/models": {"data": []}, "/props": {"n_ctx": 512}}, None),
        ("m", {}, None),
        ("m", {**NO_SIZE, "/props": {"default_generation_settings": {"n_ctx": 512}}}, 512),
        ("m", {**NO_SIZE, "/api/ps": RUNNING}, 4096),
        ("m", {**NO_SIZE, "/api/ps": {"models": [{"name": "n"}]}, "/api/ps*": RUNNING, "/api/generate": {}}, 4096),
        ("m", {**NO_SIZE, "/api/ps": {"models": []}}, None),
        ("m", {**NO_SIZE, "/api/ps": {"status": "ok"}, "/api/v0/models": {"data": V0[:1]}}, None),
        ("m", {**NO_SIZE, "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 1}]}}, 1),
        ("m", {**NO_SIZE, "/api/v0/models": {"data": V0}}, None),
        ("m", {**NO_SIZE, "/api/v0/models": {"data": V0}, "/api/v1/models": {"models": V1}}, 6144),
        ("m:2", {**NO_SIZE, "/api/v1/models": {"models": V1}}, 6144),
    ],
)
def test_context_of_a_model(model: str, routes: dict[str, Any], context: int | None) -> None:
    assert probed(model, routes)[0] == context


def test_only_a_model_of_ollama_is_loaded() -> None:
    assert "/api/generate" not in probed("m", NO_SIZE)[1]
    assert "/api/generate" not in probed("m", {**NO_SIZE, "/api/ps": RUNNING})[1]
    assert probed("m", {**NO_SIZE, "/api/ps": {"models": []}})[1] == ["/props", "/api/ps", "/api/generate", "/api/ps"]


def test_address_without_pages_is_not_probed() -> None:
    assert probed("m", {"/v1/models": LISTED}, url=f"{URL}?api-version=1") == (None, [])


def tried(answer: Reply) -> ModelTrial:
    return OneShotHarness(lambda engine: try_model(engine, URL, "m", ""), http=answer).run()


def test_a_trial() -> None:
    call = {"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]}
    assert tried(as_json(call)) == ModelTrial(called_tool=True)
    assert tried(as_json({"choices": []})) == ModelTrial()
    assert tried(REFUSED).problem == "connection refused"
    assert tried(SILENT).seconds == TRIAL_TIMEOUT


@pytest.mark.parametrize(
    ("status", "body", "problem", "refuses"),
    [
        (400, b'{"error": {"message": "m does not support tools"}}', "status 400: m does not support tools", True),
        (422, b'{"error": "no tools"}', "status 422: no tools", True),
        (404, b'{"error": "model not found"}', "status 404: model not found", False),
        (500, b"", "status 500", False),
        (401, b'{"error": "no tool key"}', "status 401: no tool key", False),
    ],
)
def test_refused_trials(status: int, body: bytes, problem: str, refuses: bool) -> None:
    found = tried((status, body))
    assert (found.problem, found.refuses_tools) == (problem, refuses)
