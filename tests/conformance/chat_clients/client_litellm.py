"""Steps with litellm: `completion` and `responses`, with the prefix of OpenAI-compatible servers."""

import json
import os
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps

FUNCTION = {"name": "get_weather", "description": "Weather of a city", "parameters": steps.CITY}


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with LiteLLM, for the route under test."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no page of the web
    litellm: Any = import_module("litellm")
    make = completion_steps if instructions["route"] == "completions" else response_steps
    return make(instructions, litellm)


def completion_steps(instructions: steps.Instructions, litellm: Any) -> steps.Steps:
    """Return the steps that call the service with `litellm.completion`."""

    def create(prompt: object, key: str = instructions["key"], **more: Any) -> Any:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        more = {"api_base": instructions["url"], "api_key": key, "max_retries": 0, **more}
        return litellm.completion(model="openai/svc-agent", messages=messages, **more)

    def text(prompt: object, **more: Any) -> Any:
        return create(prompt, **more).choices[0].message.content

    def tools(*, stream: bool) -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["tools"]}]
        for _ in range(2):
            found = create(rows, tools=[{"type": "function", "function": FUNCTION}], stream=stream)
            answer = litellm.stream_chunk_builder(list(found)) if stream else found
            message = answer.choices[0].message
            rows.append(message)
            for call in message.tool_calls or ():
                result = steps.get_weather(**json.loads(call.function.arguments))
                rows.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return rows[-1].content

    def structured() -> object:
        schema = {"type": "json_schema", "json_schema": {"name": "place", "schema": steps.PLACE, "strict": True}}
        return json.loads(text(steps.PROMPTS["structured"], response_format=schema))

    def image() -> object:
        url = f"data:image/png;base64,{steps.PICTURE}"
        parts = [{"type": "text", "text": steps.PROMPTS["image"]}, {"type": "image_url", "image_url": {"url": url}}]
        return text([{"role": "user", "content": parts}])

    def usage() -> object:
        *_, last = create(steps.PROMPTS["plain"], stream=True, stream_options={"include_usage": True})
        found = (create(steps.PROMPTS["plain"]).usage, last.usage)
        return [[counts.prompt_tokens, counts.completion_tokens] for counts in found]

    def second_turn() -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["first turn"]}]
        rows.append(create(rows).choices[0].message)
        return text([*rows, {"role": "user", "content": steps.PROMPTS["second turn"]}])

    def cancel() -> object:
        stream = create(steps.PROMPTS["cancel"], stream=True)
        next(iter(stream))
        stream.completion_stream.close()
        return steps.is_cancelled(instructions)

    def stream() -> object:
        return steps.collect(chunk.choices[0].delta.content for chunk in create(steps.PROMPTS["stream"], stream=True))

    return {
        "plain": lambda: text(steps.PROMPTS["plain"]),
        "stream": stream,
        "tools": lambda: tools(stream=False),
        "streamed tools": lambda: tools(stream=True),
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: create("x", key="wrong")),
        "refused": lambda: text(steps.PROMPTS["refused"]),
        "refused stream": lambda: [str(chunk) for chunk in create(steps.PROMPTS["refused"], stream=True)],
        "own tools": lambda: text(steps.PROMPTS["own tools"]),
        "cancel": cancel,
    }


def response_steps(instructions: steps.Instructions, litellm: Any) -> steps.Steps:  # noqa: C901 - a closure for each step
    """Return the steps that call the service with `litellm.responses`."""

    def create(prompt: object, key: str = instructions["key"], **more: Any) -> Any:
        more = {"api_base": instructions["url"], "api_key": key, **more}
        return litellm.responses(model="openai/svc-agent", input=prompt, **more)

    def text(response: Any) -> str:
        return "".join(part.text for item in response.output if item.type == "message" for part in item.content)

    def completed(stream: Any) -> Any:
        return next(event.response for event in stream if event.type == "response.completed")

    def tools(*, stream: bool) -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["tools"]}]
        answer: Any = None
        for _ in range(2):
            found = create(rows, tools=[{"type": "function", **FUNCTION}], stream=stream)
            answer = completed(found) if stream else found
            rows += [item.model_dump(exclude_none=True) for item in answer.output]
            for call in (item for item in answer.output if item.type == "function_call"):
                result = steps.get_weather(**json.loads(call.arguments))
                rows.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        return text(answer)

    def structured() -> object:
        schema = {"type": "json_schema", "name": "place", "schema": steps.PLACE, "strict": True}
        return json.loads(text(create(steps.PROMPTS["structured"], text={"format": schema})))

    def image() -> object:
        url = f"data:image/png;base64,{steps.PICTURE}"
        parts = [{"type": "input_text", "text": steps.PROMPTS["image"]}, {"type": "input_image", "image_url": url}]
        return text(create([{"role": "user", "content": parts}]))

    def usage() -> object:
        found = (create(steps.PROMPTS["plain"]), completed(create(steps.PROMPTS["plain"], stream=True)))
        return [[each.usage.input_tokens, each.usage.output_tokens] for each in found]

    def second_turn() -> object:
        first = create(steps.PROMPTS["first turn"])
        return text(create(steps.PROMPTS["second turn"], previous_response_id=first.id))

    def deltas(stream: Any) -> Any:
        return (event.delta for event in stream if event.type == "response.output_text.delta")

    def cancel() -> object:
        stream = create(steps.PROMPTS["cancel"], stream=True)
        next(deltas(stream))
        stream.response.close()
        return steps.is_cancelled(instructions)

    return {
        "plain": lambda: text(create(steps.PROMPTS["plain"])),
        "stream": lambda: steps.collect(deltas(create(steps.PROMPTS["stream"], stream=True))),
        "tools": lambda: tools(stream=False),
        "streamed tools": lambda: tools(stream=True),
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: create("x", key="wrong")),
        "refused": lambda: create(steps.PROMPTS["refused"]),
        "refused stream": lambda: [str(event) for event in create(steps.PROMPTS["refused"], stream=True)],
        "own tools": lambda: text(create(steps.PROMPTS["own tools"])),
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
