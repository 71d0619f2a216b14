from __future__ import annotations

import pytest

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.agent_settings import AgentSettings
from svc_proto.api.completion_options import CompletionOptions
from svc_proto.api.content import MessageList
from svc_proto.api.runs.client_options import brings_tools, resolve_options
from svc_proto.basics.errors import Refused

MAIN, SIDE = (ModelEndpoint(base_url=f"http://{name}/v1", model=name) for name in ("main", "side"))
TOOL = {"type": "function", "function": {"name": "add"}}
ASKED = MessageList(system="", history=(), prompt="Hi")
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}


def settings(endpoint: ModelEndpoint | None) -> AgentSettings:
    return AgentSettings(endpoint=endpoint, name="agent", personalities={}, aliases={"fast": SIDE}, max_tokens=100)


@pytest.mark.parametrize(
    ("name", "endpoint", "model"), [("", MAIN, "agent"), ("fast", SIDE, "fast"), ("other", MAIN, "other")]
)
def test_model_of_a_name(name: str, endpoint: ModelEndpoint, model: str) -> None:
    found = resolve_options(settings(MAIN), name, CompletionOptions(max_tokens=7), ASKED, place="input")
    assert (found.endpoint, found.model, found.max_tokens) == (endpoint, model, 7)


@pytest.mark.parametrize(
    ("options", "results", "with_model", "without"),
    [
        (CompletionOptions(), (), None, None),
        (CompletionOptions(tools=(TOOL,)), (), (TOOL,), None),
        (CompletionOptions(no_tools=True), (), (), None),
        (CompletionOptions(), (RESULT,), (), "input"),
        (CompletionOptions(tools=(TOOL,), members={"tool_choice": "required"}), (), (TOOL,), "tools"),
    ],
)
def test_tools(
    options: CompletionOptions, results: tuple[dict[str, str], ...], with_model: object, without: str | None
) -> None:
    messages = MessageList(system="", history=results, prompt="", results=results)
    assert resolve_options(settings(MAIN), "", options, messages, place="input").tools == with_model
    if without is None:
        assert resolve_options(settings(None), "", options, messages, place="input").tools is None
        return
    with pytest.raises(Refused) as caught:
        resolve_options(settings(None), "", options, messages, place="input")
    assert caught.value.extra["field"] == without


def test_client_that_runs_tools() -> None:
    assert brings_tools([], CompletionOptions(tools=(TOOL,)))
    assert brings_tools([{"role": "user"}, RESULT], CompletionOptions())
    assert not brings_tools([RESULT, {"role": "user"}], CompletionOptions())
    assert not brings_tools([], CompletionOptions())
