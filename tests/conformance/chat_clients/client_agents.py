"""Steps with the package openai-agents: its chat completions model and its responses model."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps


def make_steps(instructions: steps.Instructions) -> steps.Steps:  # noqa: C901 - a closure for each step
    """Return the steps that call the service with the OpenAI Agents SDK, for the route under test."""
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    agents: Any = import_module("agents")
    openai: Any = import_module("openai")
    pydantic: Any = import_module("pydantic")
    chat = instructions["route"] == "completions"
    kind = agents.OpenAIChatCompletionsModel if chat else agents.OpenAIResponsesModel
    place = pydantic.create_model("Place", city=(str, ...), degrees=(int, ...))

    def agent(key: str = instructions["key"], **more: Any) -> Any:
        client = openai.AsyncOpenAI(base_url=instructions["url"], api_key=key, max_retries=0)
        settings = agents.ModelSettings(include_usage=True)
        return agents.Agent(
            name="Tester", model=kind("svc-agent", openai_client=client), model_settings=settings, **more
        )

    def run(prompt: object, **more: Any) -> Any:
        return agents.Runner.run_sync(agent(**more), prompt)

    def deltas(stream: Any) -> Any:
        return (
            event.data.delta
            async for event in stream.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        )

    async def stream() -> object:
        return steps.collect(
            [delta async for delta in deltas(agents.Runner.run_streamed(agent(), steps.PROMPTS["stream"]))]
        )

    async def streamed(prompt: str, **more: Any) -> Any:
        result = agents.Runner.run_streamed(agent(**more), prompt)
        async for _ in result.stream_events():
            pass
        return result

    async def cancel() -> object:
        result = agents.Runner.run_streamed(agent(), steps.PROMPTS["cancel"])
        async for _ in deltas(result):
            result.cancel()
            break
        async for _ in result.stream_events():
            pass
        return await asyncio.to_thread(steps.is_cancelled, instructions)

    def counts(result: Any) -> list[int]:
        usage = result.context_wrapper.usage
        return [usage.input_tokens, usage.output_tokens]

    def second_turn() -> object:
        first = run(steps.PROMPTS["first turn"])
        return run([*first.to_input_list(), {"role": "user", "content": steps.PROMPTS["second turn"]}]).final_output

    def image() -> object:
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{steps.PICTURE}", "detail": "auto"}
        parts = [{"type": "input_text", "text": steps.PROMPTS["image"]}, picture]
        return run([{"role": "user", "content": parts}]).final_output

    def awaited(step: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(step())

    offered = [agents.function_tool(steps.get_weather)]
    return {
        **steps.text_steps(lambda prompt: run(prompt).final_output),
        "stream": lambda: awaited(stream),
        "tools": lambda: run(steps.PROMPTS["tools"], tools=offered).final_output,
        "streamed tools": lambda: awaited(lambda: streamed(steps.PROMPTS["tools"], tools=offered)).final_output,
        "structured": lambda: run(steps.PROMPTS["structured"], output_type=place).final_output.model_dump(),
        "image": image,
        "usage": lambda: [
            counts(run(steps.PROMPTS["plain"])),
            counts(awaited(lambda: streamed(steps.PROMPTS["plain"]))),
        ],
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: run("x", key="wrong")),
        "refused stream": lambda: awaited(lambda: streamed(steps.PROMPTS["refused"])),
        "cancel": lambda: awaited(cancel),
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
