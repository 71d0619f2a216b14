"""Steps with the package `llm`: its OpenAI models, as a line in `extra-openai-models.yaml` creates them."""

import base64
import gc
import json
from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with `llm`, for the route under test."""
    llm: Any = import_module("llm")
    models: Any = import_module("llm.default_plugins.openai_models")
    kind = models.Chat if instructions["route"] == "completions" else models.Responses
    able = {"supports_tools": True, "supports_schema": True, "vision": True}
    ours: Any = kind("ours", model_name="svc-agent", api_base=instructions["url"], **able)
    key = instructions["key"]

    def ask(prompt: str, **more: Any) -> Any:
        return ours.prompt(prompt, key=key, **{"stream": False, **more})

    def tools(*, stream: bool) -> object:
        return ours.chain(steps.PROMPTS["tools"], tools=[steps.get_weather], key=key, stream=stream)

    def final(chain: Any) -> str:
        *_, last = chain.responses()
        return str(last.text())

    def counts(response: Any) -> list[int]:
        response.text()
        return [response.input_tokens, response.output_tokens]

    def second_turn() -> object:
        conversation = ours.conversation()
        conversation.prompt(steps.PROMPTS["first turn"], key=key, stream=False).text()
        return conversation.prompt(steps.PROMPTS["second turn"], key=key, stream=False).text()

    def cancel() -> object:
        stream = iter(ask(steps.PROMPTS["cancel"], stream=True))
        next(stream)
        stream.close()
        del stream
        gc.collect()  # only then the package closes the connection
        return steps.is_cancelled(instructions)

    picture = llm.Attachment(content=base64.b64decode(steps.PICTURE), type="image/png")
    return {
        **steps.text_steps(lambda prompt: ask(prompt).text()),
        "stream": lambda: steps.collect(ask(steps.PROMPTS["stream"], stream=True)),
        "tools": lambda: final(tools(stream=False)),
        "streamed tools": lambda: final(tools(stream=True)),
        "structured": lambda: json.loads(ask(steps.PROMPTS["structured"], schema=steps.PLACE).text()),
        "image": lambda: ask(steps.PROMPTS["image"], attachments=[picture]).text(),
        "usage": lambda: [counts(ask(steps.PROMPTS["plain"])), counts(ask(steps.PROMPTS["plain"], stream=True))],
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: ours.prompt("x", key="wrong").text()),
        "refused stream": lambda: list(ask(steps.PROMPTS["refused"], stream=True)),
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
