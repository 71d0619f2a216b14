"""Steps with the package `openai` for Python."""

from functools import partial
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import openai_shapes, steps

MODEL = "svc-agent"


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with the client `openai`, for the route under test."""
    openai: Any = import_module("openai")

    def client(key: str) -> Any:
        return openai.OpenAI(base_url=instructions["url"], api_key=key, max_retries=0, timeout=30.0)

    ours = client(instructions["key"])
    make = completion_steps if instructions["route"] == "completions" else response_steps
    return make(instructions, ours, client("wrong"))


def completion_steps(instructions: steps.Instructions, client: Any, unauthorized: Any) -> steps.Steps:
    """Return the steps that call the service with `client.chat.completions`."""
    create = partial(client.chat.completions.create, model=MODEL)

    def streamed(rows: list[Any]) -> Any:
        more: Any = {"messages": rows, "tools": openai_shapes.CHAT_TOOLS}
        with client.chat.completions.stream(model=MODEL, **more) as stream:
            return stream.get_final_completion()

    def cancel() -> object:
        with create(messages=[openai_shapes.user(steps.PROMPTS["cancel"])], stream=True) as stream:
            next(iter(stream))
        return steps.is_cancelled(instructions)

    return {
        **openai_shapes.completion_steps(create),
        "streamed tools": lambda: openai_shapes.call_tools(streamed),
        "wrong key": lambda: steps.status_of(unauthorized.models.list),
        "unknown model": lambda: steps.status_of(lambda: client.models.retrieve("gpt-5")),
        "cancel": cancel,
    }


def response_steps(instructions: steps.Instructions, client: Any, unauthorized: Any) -> steps.Steps:
    """Return the steps that call the service with `client.responses`."""
    create = partial(client.responses.create, model=MODEL)

    def streamed(**more: Any) -> Any:
        with client.responses.stream(model=MODEL, tools=openai_shapes.RESPONSE_TOOLS, **more) as stream:
            return stream.get_final_response()

    def streamed_tools() -> object:
        first = streamed(input=steps.PROMPTS["tools"])
        return streamed(previous_response_id=first.id, input=openai_shapes.outputs_of(first)).output_text

    def cancel() -> object:
        with create(input=steps.PROMPTS["cancel"], stream=True) as stream:
            next(openai_shapes.deltas(stream))
        return steps.is_cancelled(instructions)

    return {
        **openai_shapes.response_steps(create),
        "streamed tools": streamed_tools,
        "wrong key": lambda: steps.status_of(lambda: unauthorized.responses.create(model=MODEL, input="x")),
        "unknown model": lambda: steps.status_of(lambda: client.responses.retrieve("resp_0")),
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
