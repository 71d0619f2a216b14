"""Steps with pydantic-ai: `OpenAIChatModel` and `OpenAIResponsesModel`."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps


def make_steps(instructions: steps.Instructions) -> steps.Steps:  # noqa: C901 - a closure for each step
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
            return steps.collect([piece async for piece in result.stream_text(delta=True, debounce_by=None)])

    async def streamed_tools() -> object:
        """Run the prompt for tools as a stream of events; return its final output.

        `run_stream` would take the first text for the answer, though calls follow.
        """
        answer: Any = None
        async with agent(tools=[steps.get_weather]).run_stream_events(steps.PROMPTS["tools"]) as events:
            async for event in events:
                answer = getattr(event, "result", answer)
        return answer.output

    async def streamed_usage() -> object:
        async with agent().run_stream(steps.PROMPTS["plain"]) as result:
            await result.get_output()
            return counts(result.usage)

    async def cancel() -> object:
        async with agent().run_stream(steps.PROMPTS["cancel"]) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                await result.cancel()
                break
        return await asyncio.to_thread(steps.is_cancelled, instructions)

    def counts(usage: Any) -> list[int]:
        found = usage() if callable(usage) else usage
        return [found.input_tokens, found.output_tokens]

    def second_turn() -> object:
        first = run(steps.PROMPTS["first turn"])
        return run(steps.PROMPTS["second turn"], message_history=first.all_messages()).output

    def image() -> object:
        return run(
            [steps.PROMPTS["image"], package.BinaryContent(base64.b64decode(steps.PICTURE), media_type="image/png")]
        ).output

    def structured() -> object:
        """Request structured output by a tool and by a schema; return the answer, or both if they differ."""
        by_tool, by_schema = (
            agent(output_type=kind).run_sync(steps.PROMPTS["structured"]).output.model_dump()
            for kind in (place, package.NativeOutput(place))
        )
        return by_schema if by_tool == by_schema else [by_tool, by_schema]

    def awaited(step: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[], object]:
        return lambda: asyncio.run(step())

    return {
        **steps.text_steps(lambda prompt: run(prompt).output),
        "stream": awaited(lambda: stream(steps.PROMPTS["stream"])),
        "tools": lambda: agent(tools=[steps.get_weather]).run_sync(steps.PROMPTS["tools"]).output,
        "streamed tools": awaited(streamed_tools),
        "structured": structured,
        "image": image,
        "usage": lambda: [counts(run(steps.PROMPTS["plain"]).usage), asyncio.run(streamed_usage())],
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: agent("wrong").run_sync("x")),
        "refused stream": awaited(lambda: stream(steps.PROMPTS["refused"])),
        "cancel": awaited(cancel),
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
