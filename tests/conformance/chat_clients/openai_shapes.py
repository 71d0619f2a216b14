"""Steps with packages whose calls and answers have the shapes of OpenAI's API: `openai` and LiteLLM."""

import json
from collections.abc import Callable
from typing import Any

from tests.conformance.chat_clients import steps

FUNCTION = {"name": "get_weather", "description": "Weather of a city", "parameters": steps.CITY, "strict": True}
CHAT_TOOLS = [{"type": "function", "function": FUNCTION}]
RESPONSE_TOOLS = [{"type": "function", **FUNCTION}]
PLACE = {"name": "place", "schema": steps.PLACE, "strict": True}
PICTURE = f"data:image/png;base64,{steps.PICTURE}"


def user(content: object) -> dict[str, object]:
    """Build a message of the user."""
    return {"role": "user", "content": content}


def completion_steps(create: Callable[..., Any]) -> steps.Steps:
    """Return the steps that `create` suffices for: the package's function for completions, which takes `messages`."""

    def message(content: object, **more: object) -> Any:
        return create(messages=[user(content)], **more).choices[0].message

    def stream(name: str, **more: object) -> Any:
        return create(messages=[user(steps.PROMPTS[name])], stream=True, **more)

    def structured() -> object:
        schema = {"type": "json_schema", "json_schema": PLACE}
        return json.loads(message(steps.PROMPTS["structured"], response_format=schema).content)

    def image() -> object:
        text = {"type": "text", "text": steps.PROMPTS["image"]}
        return message([text, {"type": "image_url", "image_url": {"url": PICTURE}}]).content

    def usage() -> object:
        found = create(messages=[user(steps.PROMPTS["plain"])]).usage
        *_, last = stream("plain", stream_options={"include_usage": True})
        return [[seen.prompt_tokens, seen.completion_tokens] for seen in (found, last.usage)]

    def second_turn() -> object:
        rows = [user(steps.PROMPTS["first turn"]), message(steps.PROMPTS["first turn"])]
        return create(messages=[*rows, user(steps.PROMPTS["second turn"])]).choices[0].message.content

    return {
        **steps.text_steps(lambda prompt: message(prompt).content),
        "stream": lambda: steps.collect(chunk.choices[0].delta.content for chunk in stream("stream") if chunk.choices),
        "tools": lambda: call_tools(lambda rows: create(messages=rows, tools=CHAT_TOOLS)),
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "refused stream": lambda: [str(chunk) for chunk in stream("refused")],
    }


def call_tools(ask: Callable[[list[Any]], Any]) -> object:
    """Return the text after a round of tools; `ask` returns the completion for messages."""
    rows: list[Any] = [user(steps.PROMPTS["tools"])]
    for _ in range(2):
        message = ask(rows).choices[0].message
        rows.append(message)
        for call in message.tool_calls or ():
            result = steps.get_weather(**json.loads(call.function.arguments))
            rows.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return rows[-1].content


def response_steps(create: Callable[..., Any]) -> steps.Steps:
    """Return the steps that `create` suffices for: the package's function for responses, which takes `input`."""

    def ask(name: str, **more: object) -> Any:
        return create(input=steps.PROMPTS[name], **more)

    def structured() -> object:
        return json.loads(text_of(ask("structured", text={"format": {"type": "json_schema", **PLACE}})))

    def image() -> object:
        text = {"type": "input_text", "text": steps.PROMPTS["image"]}
        return text_of(create(input=[user([text, {"type": "input_image", "image_url": PICTURE}])]))

    def usage() -> object:
        found = (ask("plain"), completed(ask("plain", stream=True)))
        return [[seen.usage.input_tokens, seen.usage.output_tokens] for seen in found]

    return {
        **steps.text_steps(lambda prompt: text_of(create(input=prompt))),
        "stream": lambda: steps.collect(deltas(ask("stream", stream=True))),
        "tools": lambda: call_response_tools(lambda rows: create(input=rows, tools=RESPONSE_TOOLS)),
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": lambda: text_of(ask("second turn", previous_response_id=ask("first turn").id)),
        "refused stream": lambda: [str(event) for event in ask("refused", stream=True)],
    }


def call_response_tools(ask: Callable[[list[Any]], Any]) -> object:
    """Return the text after a round of tools; `ask` returns the response to items of input."""
    rows: list[Any] = [user(steps.PROMPTS["tools"])]
    answer: Any = None
    for _ in range(2):
        answer = ask(rows)
        rows += [item.model_dump(exclude_none=True) for item in answer.output]
        rows += outputs_of(answer)
    return text_of(answer)


def outputs_of(response: Any) -> list[object]:
    """Return the outputs of the function calls of a response, as items of input."""
    calls = [item for item in response.output if item.type == "function_call"]
    outputs = [(call.call_id, steps.get_weather(**json.loads(call.arguments))) for call in calls]
    return [{"type": "function_call_output", "call_id": call_id, "output": output} for call_id, output in outputs]


def text_of(response: Any) -> str:
    """Return the text of the messages of a response."""
    return "".join(part.text for item in response.output if item.type == "message" for part in item.content)


def completed(stream: Any) -> Any:
    """Return the response of a stream, which is read to its end: `openai` 2 may hang while it closes another."""
    (response,) = [event.response for event in stream if event.type == "response.completed"]
    return response


def deltas(stream: Any) -> Any:
    """Return the pieces of text of a stream of a response."""
    return (event.delta for event in stream if event.type == "response.output_text.delta")
