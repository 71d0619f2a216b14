"""Steps with LlamaIndex: `OpenAILike` and `OpenAILikeResponses`, with its agent for tools."""

import asyncio
import base64
import gc
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with LlamaIndex, for the route under test."""
    like: Any = import_module("llama_index.llms.openai_like")
    llms: Any = import_module("llama_index.core.llms")
    workflow: Any = import_module("llama_index.core.agent.workflow")
    function_tool: Any = import_module("llama_index.core.tools").FunctionTool
    pydantic: Any = import_module("pydantic")
    chat = instructions["route"] == "completions"
    kind = like.OpenAILike if chat else like.OpenAILikeResponses
    place = pydantic.create_model("Place", city=(str, ...), degrees=(int, ...))

    def client(key: str) -> Any:
        more: dict[str, object] = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 32_000}
        if chat:
            more["additional_kwargs"] = {"stream_options": {"include_usage": True}}
        return kind(model="svc-agent", api_base=instructions["url"], api_key=key, max_retries=0, **more)

    ours = client(instructions["key"])

    def ask(*rows: Any) -> Any:
        return ours.chat([llms.ChatMessage(role="user", content=row) if isinstance(row, str) else row for row in rows])

    def streamed(prompt: str) -> Any:
        return ours.stream_chat([llms.ChatMessage(role="user", content=prompt)])

    async def agent(*, stream: bool) -> object:
        tool = function_tool.from_defaults(fn=steps.get_weather)
        runner = workflow.FunctionAgent(
            tools=[tool], llm=client(instructions["key"]), streaming=stream, allow_parallel_tool_calls=True
        )
        return (await runner.run(steps.PROMPTS["tools"])).response.content

    def image() -> object:
        picture = llms.ImageBlock(image=base64.b64decode(steps.PICTURE), image_mimetype="image/png")
        row = llms.ChatMessage(role="user", blocks=[llms.TextBlock(text=steps.PROMPTS["image"]), picture])
        return ask(row).message.content

    def counts(raw: Any) -> list[int]:
        usage = raw.usage
        return [usage.prompt_tokens, usage.completion_tokens] if chat else [usage.input_tokens, usage.output_tokens]

    def usage() -> object:
        *_, last = streamed(steps.PROMPTS["plain"])
        return [counts(ask(steps.PROMPTS["plain"]).raw), counts(last.raw if chat else last.raw.response)]

    def second_turn() -> object:
        first = ask(steps.PROMPTS["first turn"])
        return ask(steps.PROMPTS["first turn"], first.message, steps.PROMPTS["second turn"]).message.content

    def cancel() -> object:
        stream = ours.stream_chat([llms.ChatMessage(role="user", content=steps.PROMPTS["cancel"])])
        next(chunk for chunk in stream if chunk.delta)
        stream.close()
        del stream
        gc.collect()  # only then the package closes the connection
        return steps.is_cancelled(instructions)

    return {
        **steps.text_steps(lambda prompt: ask(prompt).message.content),
        "stream": lambda: steps.collect(chunk.delta for chunk in streamed(steps.PROMPTS["stream"])),
        "tools": lambda: asyncio.run(agent(stream=False)),
        "streamed tools": lambda: asyncio.run(agent(stream=True)),
        "structured": lambda: ours.structured_predict(
            place, import_module("llama_index.core.prompts").PromptTemplate(steps.PROMPTS["structured"])
        ).model_dump(),
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(
            lambda: client("wrong").chat([llms.ChatMessage(role="user", content="x")])
        ),
        "refused stream": lambda: [chunk.delta for chunk in streamed(steps.PROMPTS["refused"])],
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
