"""Steps with litellm: `completion` and `responses`, with the prefix of OpenAI-compatible servers."""

import os
from functools import partial
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import openai_shapes, steps

MODEL = "openai/svc-agent"


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with LiteLLM, for the route under test."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no page of the web
    litellm: Any = import_module("litellm")
    make = completion_steps if instructions["route"] == "completions" else response_steps
    return make(instructions, litellm)


def completion_steps(instructions: steps.Instructions, litellm: Any) -> steps.Steps:
    """Return the steps that call the service with `litellm.completion`."""
    more = {"api_base": instructions["url"], "api_key": instructions["key"], "max_retries": 0}
    create = partial(litellm.completion, model=MODEL, **more)

    def streamed(rows: list[Any]) -> Any:
        chunks = create(messages=rows, tools=openai_shapes.CHAT_TOOLS, stream=True)
        return litellm.stream_chunk_builder(list(chunks))

    def cancel() -> object:
        stream = create(messages=[openai_shapes.user(steps.PROMPTS["cancel"])], stream=True)
        next(iter(stream))
        stream.completion_stream.close()
        return steps.is_cancelled(instructions)

    return {
        **openai_shapes.completion_steps(create),
        "streamed tools": lambda: openai_shapes.call_tools(streamed),
        "wrong key": lambda: steps.status_of(lambda: create(messages=[openai_shapes.user("x")], api_key="wrong")),
        "cancel": cancel,
    }


def response_steps(instructions: steps.Instructions, litellm: Any) -> steps.Steps:
    """Return the steps that call the service with `litellm.responses`."""
    create = partial(litellm.responses, model=MODEL, api_base=instructions["url"], api_key=instructions["key"])

    def streamed(rows: list[Any]) -> Any:
        return openai_shapes.completed(create(input=rows, tools=openai_shapes.RESPONSE_TOOLS, stream=True))

    def cancel() -> object:
        stream = create(input=steps.PROMPTS["cancel"], stream=True)
        next(openai_shapes.deltas(stream))
        stream.response.close()
        return steps.is_cancelled(instructions)

    return {
        **openai_shapes.response_steps(create),
        "streamed tools": lambda: openai_shapes.call_response_tools(streamed),
        "wrong key": lambda: steps.status_of(lambda: create(input="x", api_key="wrong")),
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
