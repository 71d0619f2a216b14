"""Steps with pydantic-ai: `OpenAIChatModel` and `OpenAIResponsesModel`."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients.steps import (
    PICTURE,
    PROMPTS,
    Instructions,
    Steps,
    collect,
    get_weather,
    is_cancelled,
    run_steps,
    status_of,
)


def make_steps(instructions: Instructions) -> Steps:  # noqa: C901 - a closure for each step
    """Return the steps that call the service with Pydantic AI, for the route under test."""
    package: Any = import_module("pydantic_ai")
    models: Any = import_module("pydantic_ai.models.openai")
    provider: Any = import_module("pydantic_ai.providers.openai").OpenAIProvider
    pydantic: Any = import_module("pydantic")
    kind = models.OpenAIChatModel if instructions["route"] == "completions" else models.OpenAIResponsesModel
    place = pydantic.create_model("Place", city=(str, ...), degrees=(int, ...))

    def agent(key: str = instructions["key"], **more: object) -> Any:
        model = kind("svc-agent", provider=provider(base_url=instructions["url"], api_key=key))
        return package.Agent(model, retries=0, **more)

    def run(prompt: object, **more: object) -> Any:
        return agent().run_sync(prompt, **more)

    async def stream(prompt: str) -> object:
        async with agent().run_stream(prompt) as result:
            return collect([piece async for piece in result.stream_text(delta=True, debounce_by=None)])

    async def streamed_tools() -> object:
        """Run the prompt for tools as a stream of events; return its final output.

        `run_stream` would take the first text for the answer, though calls follow.
        """
        answer: Any = None
        async with agent(tools=[get_weather]).run_stream_events(PROMPTS["tools"]) as events:
            async for event in events:
                answer = getattr(event, "result", answer)
        return answer.output

    async def streamed_usage() -> object:
        async with agent().run_stream(PROMPTS["plain"]) as result:
            await result.get_output()
            return counts(result.usage)

    async def cancel() -> object:
        async with agent().run_stream(PROMPTS["cancel"]) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                await result.cancel()
                break
        return await asyncio.to_thread(is_cancelled, instructions)

    def counts(usage: Any) -> list[int]:
        found = usage() if callable(usage) else usage
        return [found.input_tokens, found.output_tokens]

    def second_turn() -> object:
        first = run(PROMPTS["first turn"])
        return run(PROMPTS["second turn"], message_history=first.all_messages()).output

    def image() -> object:
        return run([PROMPTS["image"], package.BinaryContent(base64.b64decode(PICTURE), media_type="image/png")]).output

    def structured() -> object:
        """Request structured output by a tool and by a schema; return the answer, or both if they differ."""
        by_tool, by_schema = (
            agent(output_type=kind).run_sync(PROMPTS["structured"]).output.model_dump()
            for kind in (place, package.NativeOutput(place))
        )
        return by_schema if by_tool == by_schema else [by_tool, by_schema]

    def awaited(step: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[], object]:
        return lambda: asyncio.run(step())

    return {
        "plain": lambda: run(PROMPTS["plain"]).output,
        "stream": awaited(lambda: stream(PROMPTS["stream"])),
        "tools": lambda: agent(tools=[get_weather]).run_sync(PROMPTS["tools"]).output,
        "streamed tools": awaited(streamed_tools),
        "structured": structured,
        "image": image,
        "usage": lambda: [counts(run(PROMPTS["plain"]).usage), asyncio.run(streamed_usage())],
        "second turn": second_turn,
        "wrong key": lambda: status_of(lambda: agent("wrong").run_sync("x")),
        "refused": lambda: run(PROMPTS["refused"]).output,
        "refused stream": awaited(lambda: stream(PROMPTS["refused"])),
        "own tools": lambda: run(PROMPTS["own tools"]).output,
        "cancel": awaited(cancel),
    }


if __name__ == "__main__":
    run_steps(make_steps)
