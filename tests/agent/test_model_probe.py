from __future__ import annotations

import pytest

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.agent.model_probe import find_context, probe_context
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from tests.agent.harness import KEY, ROUTE, AgentHarness
from tests.support.servers.model_server import MODEL_PORT, ScriptedModel


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


def probed(model: str, pages: dict[str, object]) -> int | None:
    world = AgentHarness()
    server = ScriptedModel(pages=pages)
    world.serve(server, MODEL_PORT + 1, world.sim.host("listed", "10.0.0.9"))

    def plan(parts: object, engine: Engine) -> Flow[int | None]:
        endpoint = ModelEndpoint(base_url=f"http://listed:{MODEL_PORT + 1}/v1", model=model, api_key=KEY)
        return probe_context(engine, endpoint)

    return world.run(plan)


LISTED = {"data": [{"id": "a", "meta": {"n_ctx": 4096}}, {"id": "b", "max_model_len": 8192}]}


@pytest.mark.parametrize(
    ("model", "pages", "context"),
    [
        ("a", {"/v1/models": LISTED}, 4096),
        ("b", {"/v1/models": LISTED}, 8192),
        ("c", {"/v1/models": LISTED}, None),
        ("x", {"/v1/models": {"data": [{"id": "a.gguf", "meta": {"n_ctx": 4096}}]}}, 4096),
        ("x", {"/v1/models": {"data": [{"id": "x"}]}, "/props": {"default_generation_settings": {"n_ctx": 512}}}, 512),
        ("b", {"/v1/models": LISTED["data"]}, 8192),
        ("x", {"/v1/models": {"data": []}, "/props": {"n_ctx": 512}}, None),
        ("x", {}, None),
    ],
)
def test_pages_of_a_server(model: str, pages: dict[str, object], context: int | None) -> None:
    assert probed(model, pages) == context


def test_address_without_pages_is_not_probed() -> None:
    world = AgentHarness()
    route = ModelEndpoint(base_url=f"{ROUTE.base_url}?api-version=1", model="m")
    assert world.run(lambda parts, engine: probe_context(engine, route)) is None
