"""Tests of unmodified external clients of the API server: `openai` and `httpx-sse`."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from tests.conformance.chat_clients import client_openai, steps
from tests.conformance.chat_clients.model import FAILURE, ClientModel
from tests.conformance.chat_clients_suite import ROUTES, WANTED
from tests.loops.clients import PATIENCE
from tests.loops.conftest import open_world
from tests.loops.environment import ApiHandle
from tests.support.servers.model_server import ModelAnswer, calls, plain, refusal

KEY = "sk-openai-9e12"
TEXT = "Grüße aus Köln, 東京 und 🙂!"
NOWHERE = "http://127.0.0.1:9"
REMEMBER = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})
HI: Any = [{"role": "user", "content": "Hi"}]
Live = tuple[ApiHandle, ClientModel, str]


@pytest.fixture(scope="module")
def live(runtime: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield API server, model and the URL of the model for this module, on a real loop: clients need sockets."""
    with open_world(runtime, tmp_path_factory.mktemp("openai"), request) as world:
        model = ClientModel()
        url = world.peer(model)
        yield world.api(key=KEY, model_base_url=f"{url}/v1", model="m", relay_url=NOWHERE), model, url


def script(live: Live, *answers: ModelAnswer) -> ApiHandle:
    """Set the next answers of the model, and return the API server."""
    api, model, _ = live
    model.answers[:] = answers
    return api


def base_url(api: ApiHandle) -> str:
    return f"http://127.0.0.1:{api.server.port}"


# --- openai ---------------------------------------------------------------------------------------------------------


def outcome(step: Callable[[], object]) -> object:
    """Return the result of a step, or the text of the error that it raises."""
    try:
        return step()
    except Exception as problem:
        return str(problem)


@pytest.mark.parametrize("route", ROUTES)
def test_the_client_uses_all_abilities(live: Live, route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "CANCELLED_WITHIN", PATIENCE)
    api, _, model = live
    told: steps.Instructions = {"url": f"{base_url(api)}/v1", "key": KEY, "route": route, "model": f"{model}/open"}
    seen = {ability: outcome(step) for ability, step in client_openai.make_steps(told).items()}
    refused = [ability for ability, wanted in WANTED.items() if wanted == FAILURE]
    assert [FAILURE in str(seen.pop(ability)) for ability in refused] == [True] * len(refused)
    assert seen == {ability: wanted for ability, wanted in WANTED.items() if ability not in refused}


def test_the_client_maps_our_errors(live: Live) -> None:
    openai: Any = import_module("openai")  # slow, so not at the top
    with openai.OpenAI(base_url=f"{base_url(live[0])}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        assert [model.id for model in client.models.list().data] == ["svc-agent"]
        with pytest.raises(openai.NotFoundError) as missing:
            client.models.retrieve("gpt-5")
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as bad:
            client.chat.completions.create(model="svc-agent", messages=[])
        assert bad.value.type == "invalid_request_error"
        script(live, refusal(401, "no"))
        with pytest.raises(openai.InternalServerError) as incomplete:
            client.chat.completions.create(model="svc-agent", messages=HI)
        assert (incomplete.value.status_code, incomplete.value.code) == (502, "agent_incomplete")
        script(live, plain("one two").dropped(2))
        with pytest.raises(openai.APIError):
            list(client.chat.completions.create(model="svc-agent", messages=HI, stream=True))


# --- httpx-sse ------------------------------------------------------------------------------------------------------


def streams(api: ApiHandle) -> list[tuple[str, str, Any]]:
    """Return method, path and body of four requests for event streams: a session, a completion, a run, a response."""
    message = [{"role": "user", "content": "I like tea"}]
    return [
        ("POST", f"/api/sessions/{api.session()}/chat/stream", {"message": "I like tea"}),
        ("POST", "/v1/chat/completions", {"messages": message, "stream": True}),
        ("POST", "/v1/runs", {"input": "I like tea", "stream": True}),
        ("POST", "/v1/responses", {"input": "I like tea", "stream": True}),
    ]


def data_of(event: ServerSentEvent) -> dict[str, Any]:
    data: dict[str, Any] = event.json()
    return data


def test_httpx_sse_reads_every_stream(live: Live) -> None:
    api, model, _ = live
    with httpx.Client(base_url=base_url(api), headers=api.headers, timeout=PATIENCE) as client:
        for method, path, body in streams(api):
            model.answers[:] = [calls(REMEMBER), plain(TEXT, reasoning="Let me see")]
            with connect_sse(client, method, path, json=body, headers={"X-Svc-Tool-Progress": "1"}) as source:
                assert source.response.status_code == 200
                events = list(source.iter_sse())
            deltas = [event for event in events if event.event in ("assistant.delta", "message.delta")]
            match path.rpartition("/")[2]:
                case "stream" | "runs":
                    assert "".join(data_of(event)["delta"] for event in deltas) == TEXT
                    assert events[-1].event == ("done" if path.endswith("stream") else "run.completed")
                case "completions":
                    assert events[-1].data == "[DONE]"
                    chunks = [data_of(event) for event in events[:-1] if event.event == "message"]
                    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == TEXT
                    assert [event.event for event in events].count("svc.tool.progress") == 2
                case _:
                    assert events[-1].event == "response.completed"
                    assert [data_of(event)["sequence_number"] for event in events] == list(range(len(events)))
