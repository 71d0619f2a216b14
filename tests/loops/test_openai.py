"""Tests of unmodified external clients of the API server: `openai` and `httpx-sse`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from tests.loops.clients import PATIENCE
from tests.loops.conftest import open_world
from tests.loops.environment import ApiHandle, Environment
from tests.support.servers.model_server import ModelAnswer, ScriptedModel, calls, plain, refusal

if TYPE_CHECKING:
    import openai
else:

    class _Package:
        """The module `openai`, imported when one of its names is first used, since the import is slow."""

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):  # pytest inspects these
                raise AttributeError(name)
            return getattr(import_module("openai"), name)

    openai = _Package()

KEY = "sk-openai-9e12"
TEXT = "Grüße aus Köln, 東京 und 🙂!"
NOWHERE = "http://127.0.0.1:9"
REMEMBER = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})
HI: Any = [{"role": "user", "content": "Hi"}]
Live = tuple[Environment, ApiHandle, ScriptedModel]


@pytest.fixture(scope="module")
def live(runtime: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield environment, API server and model for the tests of this module, on a real loop: clients need sockets."""
    with open_world(runtime, tmp_path_factory.mktemp("openai"), request) as world:
        model = ScriptedModel()
        yield world, world.api(key=KEY, model_base_url=f"{world.peer(model)}/v1", model="m", relay_url=NOWHERE), model


def script(live: Live, *answers: ModelAnswer) -> ApiHandle:
    """Set the next answers of the model, and return the API server."""
    _, api, model = live
    model.answers[:] = answers
    return api


def base_url(api: ApiHandle) -> str:
    return f"http://127.0.0.1:{api.server.port}"


@pytest.fixture
def client(live: Live) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{base_url(live[1])}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE) as opened:
        yield opened


# --- openai ---------------------------------------------------------------------------------------------------------


def test_the_client_lists_models(live: Live, client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert [model.id for model in models] == ["svc-agent"]
    assert (models[0].object, models[0].owned_by) == ("model", "svc")
    assert client.models.retrieve("svc-agent").id == "svc-agent"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("gpt-5")
    assert missing.value.code == "model_not_found"


def test_completions_equal_their_streams(live: Live, client: openai.OpenAI) -> None:
    script(live, plain(TEXT), plain(TEXT, reasoning="Let me see"))
    messages: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Grüß mich"}]
    whole = client.chat.completions.create(model="svc-agent", messages=messages)
    assert whole.object == "chat.completion"
    (choice,) = whole.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", TEXT, "stop")
    chunks = list(
        client.chat.completions.create(
            model="svc-agent", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == TEXT
    assert [delta.role for delta in deltas if delta.role] == ["assistant"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert whole.usage is not None
    assert chunks[-1].usage == whole.usage


TOOL: Any = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}


def test_the_client_executes_its_own_tools(live: Live, client: openai.OpenAI) -> None:
    script(live, calls(("add", {"a": 2})), plain("Four."), calls(("add", {"a": 3}), text="Hm."))
    messages: list[Any] = [{"role": "user", "content": "2 + 2?"}]
    first = client.chat.completions.create(model="m", messages=messages, tools=[TOOL], temperature=0.2, seed=7)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls is not None
    assert [call.function.arguments for call in message.tool_calls if call.type == "function"] == ['{"a": 2}']
    sent = live[2].seen[-1]
    assert (sent["temperature"], sent["seed"], sent["tools"]) == (0.2, 7, [TOOL])
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "4"}]
    second = client.chat.completions.create(model="m", messages=messages, tools=[TOOL])
    assert second.choices[0].message.content == "Four."
    assert [row["role"] for row in live[2].seen[-1]["messages"]] == ["user", "assistant", "tool"]
    with client.chat.completions.stream(model="m", messages=messages[:1], tools=[TOOL]) as stream:
        stream.until_done()
        final = stream.get_final_completion().choices[0]
    assert (final.finish_reason, final.message.content) == ("tool_calls", "Hm.")
    assert final.message.tool_calls is not None
    assert final.message.tool_calls[0].function.arguments == '{"a": 3}'


def test_wrong_keys_are_refused(live: Live) -> None:
    url = f"{base_url(live[1])}/v1"
    for key in ("wrong", f"{KEY}x"):  # a sixth wrong one within a minute would be refused with 429
        with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as unknown_host:
            with pytest.raises(openai.AuthenticationError) as refused:
                unknown_host.models.list()
            assert refused.value.code == "invalid_api_key"
            assert key not in str(refused.value)
            assert isinstance(refused.value.body, dict)
            assert refused.value.body["message"] in str(refused.value)
            assert "API_SERVER_KEY" in refused.value.body["message"] or "key" in refused.value.body["message"].lower()
            with pytest.raises(openai.AuthenticationError):
                unknown_host.chat.completions.create(model="m", messages=HI, stream=True)


def test_the_client_maps_our_errors(live: Live, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="svc-agent", messages=[])
    assert bad.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError):
        client.get("/no/such/route", cast_to=httpx.Response)
    script(live, refusal(401, "no"))
    with pytest.raises(openai.InternalServerError) as incomplete:
        client.chat.completions.create(model="svc-agent", messages=HI)
    assert incomplete.value.status_code == 502
    assert incomplete.value.code == "agent_incomplete"
    script(live, plain("one two").dropped(2))
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="svc-agent", messages=HI, stream=True))


def test_the_client_uses_responses(live: Live, client: openai.OpenAI) -> None:
    script(live, plain(TEXT), plain("Of course."), plain(TEXT))
    first = client.responses.create(model="svc-agent", input="Grüß mich", instructions="Be kind.")
    assert (first.output_text, first.status, first.object) == (TEXT, "completed", "response")
    second = client.responses.create(model="svc-agent", input="Again?", previous_response_id=first.id)
    assert second.output_text == "Of course."
    sent = live[2].seen[-1]["messages"]
    assert [message["content"] for message in sent if message["role"] != "system"] == ["Grüß mich", TEXT, "Again?"]
    assert client.responses.retrieve(first.id).output_text == TEXT
    events = list(client.responses.create(model="svc-agent", input="Grüß mich", stream=True))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == TEXT
    assert [event.type for event in events][:: len(events) - 1] == ["response.created", "response.completed"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_the_client_disconnects_within_a_stream(live: Live, client: openai.OpenAI) -> None:
    api = script(live, plain("word " * 1_000).slow(0.02))
    stream = client.chat.completions.create(model="svc-agent", messages=HI, stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    logged = len(api.server.logs)
    stream.close()
    live[0].wait_until(lambda: any(line.event == "turn ended" for line in api.server.logs[logged:]))
    (ended,) = [line for line in api.server.logs[logged:] if line.event == "turn ended"]
    assert ended.fields["state"] == "cancelled"
    script(live, plain("Still here."))
    again = client.chat.completions.create(model="svc-agent", messages=HI)
    assert again.choices[0].message.content == "Still here."


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
    _, api, model = live
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


def test_httpx_sse_reads_a_run_that_was_begun_apart(live: Live) -> None:
    api = script(live, plain(TEXT))
    run_id = api.request("POST", "/v1/runs", {"input": "Hi"}).json["run_id"]
    with (
        httpx.Client(base_url=base_url(api), headers=api.headers, timeout=PATIENCE) as client,
        connect_sse(client, "GET", f"/v1/runs/{run_id}/events") as source,
    ):
        events = list(source.iter_sse())
    assert [event.event for event in events][:: len(events) - 1] == ["run.started", "run.completed"]
    assert data_of(events[-1])["output"] == TEXT
