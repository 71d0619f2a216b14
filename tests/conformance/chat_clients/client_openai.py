"""Steps with the package `openai` for Python."""

import json
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps

MODEL = "svc-agent"
FUNCTION = {"name": "get_weather", "description": "Weather of a city", "parameters": steps.CITY, "strict": True}


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

    def create(prompt: object, **more: object) -> Any:
        messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
        return client.chat.completions.create(model=MODEL, messages=messages, **more)

    def tools() -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["tools"]}]
        offered = [{"type": "function", "function": FUNCTION}]
        message = create(rows, tools=offered).choices[0].message
        rows.append(message)
        rows += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        return create(rows, tools=offered).choices[0].message.content

    def streamed_tools() -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["tools"]}]
        offered = [{"type": "function", "function": FUNCTION}]
        with client.chat.completions.stream(model=MODEL, messages=rows, tools=offered) as stream:
            message = stream.get_final_completion().choices[0].message
        rows.append(message)
        rows += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        with client.chat.completions.stream(model=MODEL, messages=rows, tools=offered) as stream:
            return stream.get_final_completion().choices[0].message.content

    def structured() -> object:
        schema = {"type": "json_schema", "json_schema": {"name": "place", "schema": steps.PLACE, "strict": True}}
        return json.loads(create(steps.PROMPTS["structured"], response_format=schema).choices[0].message.content)

    def image() -> object:
        url = f"data:image/png;base64,{steps.PICTURE}"
        parts = [{"type": "text", "text": steps.PROMPTS["image"]}, {"type": "image_url", "image_url": {"url": url}}]
        return create([{"role": "user", "content": parts}]).choices[0].message.content

    def usage() -> object:
        found = create(steps.PROMPTS["plain"]).usage
        *_, last = create(steps.PROMPTS["plain"], stream=True, stream_options={"include_usage": True})
        return [[seen.prompt_tokens, seen.completion_tokens] for seen in (found, last.usage)]

    def second_turn() -> object:
        rows: list[Any] = [{"role": "user", "content": steps.PROMPTS["first turn"]}]
        rows.append(create(rows).choices[0].message)
        rows.append({"role": "user", "content": steps.PROMPTS["second turn"]})
        return create(rows).choices[0].message.content

    def cancel() -> object:
        with create(steps.PROMPTS["cancel"], stream=True) as stream:
            next(iter(stream))
        return steps.is_cancelled(instructions)

    def stream() -> object:
        chunks = create(steps.PROMPTS["stream"], stream=True)
        return steps.collect(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)

    return {
        "plain": lambda: create(steps.PROMPTS["plain"]).choices[0].message.content,
        "stream": stream,
        "tools": tools,
        "streamed tools": streamed_tools,
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(unauthorized.models.list),
        "unknown model": lambda: steps.status_of(lambda: client.models.retrieve("gpt-5")),
        "refused": lambda: create(steps.PROMPTS["refused"]),
        "refused stream": lambda: list(create(steps.PROMPTS["refused"], stream=True)),
        "own tools": lambda: create(steps.PROMPTS["own tools"]).choices[0].message.content,
        "cancel": cancel,
    }


def response_steps(instructions: steps.Instructions, client: Any, unauthorized: Any) -> steps.Steps:
    """Return the steps that call the service with `client.responses`."""

    def create(prompt: object, **more: object) -> Any:
        return client.responses.create(model=MODEL, input=prompt, **more)

    def run_calls(first: Any) -> list[object]:
        found = [item for item in first.output if item.type == "function_call"]
        return [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in found]

    def tools() -> object:
        offered = [{"type": "function", **FUNCTION}]
        first = create(steps.PROMPTS["tools"], tools=offered)
        rows = [{"role": "user", "content": steps.PROMPTS["tools"]}, *first.output, *run_calls(first)]
        return create(rows, tools=offered).output_text

    def streamed_tools() -> object:
        offered = [{"type": "function", **FUNCTION}]
        with client.responses.stream(model=MODEL, input=steps.PROMPTS["tools"], tools=offered) as stream:
            first = stream.get_final_response()
        more: Any = {"previous_response_id": first.id, "input": run_calls(first), "tools": offered}
        with client.responses.stream(model=MODEL, **more) as stream:
            return stream.get_final_response().output_text

    def structured() -> object:
        schema = {"type": "json_schema", "name": "place", "schema": steps.PLACE, "strict": True}
        return json.loads(create(steps.PROMPTS["structured"], text={"format": schema}).output_text)

    def image() -> object:
        url = f"data:image/png;base64,{steps.PICTURE}"
        parts = [{"type": "input_text", "text": steps.PROMPTS["image"]}, {"type": "input_image", "image_url": url}]
        return create([{"role": "user", "content": parts}]).output_text

    def usage() -> object:
        found = create(steps.PROMPTS["plain"]).usage
        *_, last = create(steps.PROMPTS["plain"], stream=True)
        return [[seen.input_tokens, seen.output_tokens] for seen in (found, last.response.usage)]

    def second_turn() -> object:
        first = create(steps.PROMPTS["first turn"])
        return create(steps.PROMPTS["second turn"], previous_response_id=first.id).output_text

    def cancel() -> object:
        with create(steps.PROMPTS["cancel"], stream=True) as stream:
            next(event for event in stream if event.type == "response.output_text.delta")
        return steps.is_cancelled(instructions)

    def stream() -> object:
        events = create(steps.PROMPTS["stream"], stream=True)
        return steps.collect(event.delta for event in events if event.type == "response.output_text.delta")

    return {
        "plain": lambda: create(steps.PROMPTS["plain"]).output_text,
        "stream": stream,
        "tools": tools,
        "streamed tools": streamed_tools,
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: unauthorized.responses.create(model=MODEL, input="x")),
        "unknown model": lambda: steps.status_of(lambda: client.responses.retrieve("resp_0")),
        "refused": lambda: create(steps.PROMPTS["refused"]),
        "refused stream": lambda: [str(event) for event in create(steps.PROMPTS["refused"], stream=True)],
        "own tools": lambda: create(steps.PROMPTS["own tools"]).output_text,
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
