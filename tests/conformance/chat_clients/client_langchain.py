"""Steps with LangChain's `ChatOpenAI`, one class for both routes."""

from importlib import import_module
from typing import Any

from tests.conformance.chat_clients import steps


def make_steps(instructions: steps.Instructions) -> steps.Steps:
    """Return the steps that call the service with LangChain, for the route under test."""
    chat: Any = import_module("langchain_openai").ChatOpenAI
    tool: Any = import_module("langchain_core.tools").tool(steps.get_weather)
    messages: Any = import_module("langchain_core.messages")
    pydantic: Any = import_module("pydantic")

    def client(key: str) -> Any:
        responses = instructions["route"] == "responses"
        more = {"max_retries": 0, "timeout": 30.0, "stream_usage": True, "use_responses_api": responses}
        return chat(model="svc-agent", base_url=instructions["url"], api_key=key, **more)

    ours = client(instructions["key"])

    def tools(*, stream: bool) -> object:
        bound = ours.bind_tools([tool])
        rows: list[Any] = [messages.HumanMessage(steps.PROMPTS["tools"])]
        for _ in range(2):
            answer: Any = None
            if stream:
                for chunk in bound.stream(rows):
                    answer = chunk if answer is None else answer + chunk
            else:
                answer = bound.invoke(rows)
            rows.append(answer)
            rows += [tool.invoke(call) for call in answer.tool_calls]
        return rows[-1].text

    def structured() -> object:
        place = pydantic.create_model("Place", city=(str, ...), degrees=(int, ...))
        return ours.with_structured_output(place).invoke(steps.PROMPTS["structured"]).model_dump()

    def image() -> object:
        picture = {"type": "image", "base64": steps.PICTURE, "mime_type": "image/png"}
        return ours.invoke([messages.HumanMessage([{"type": "text", "text": steps.PROMPTS["image"]}, picture])]).text

    def usage() -> object:
        streamed: Any = None
        for chunk in ours.stream(steps.PROMPTS["plain"]):
            streamed = chunk if streamed is None else streamed + chunk
        found = [ours.invoke(steps.PROMPTS["plain"]).usage_metadata, streamed.usage_metadata]
        return [[counts["input_tokens"], counts["output_tokens"]] for counts in found]

    def second_turn() -> object:
        rows: list[Any] = [messages.HumanMessage(steps.PROMPTS["first turn"])]
        rows.append(ours.invoke(rows))
        return ours.invoke([*rows, messages.HumanMessage(steps.PROMPTS["second turn"])]).text

    def cancel() -> object:
        stream = ours.stream(steps.PROMPTS["cancel"])
        next(chunk for chunk in stream if chunk.text)
        stream.close()
        return steps.is_cancelled(instructions)

    return {
        **steps.text_steps(lambda prompt: ours.invoke(prompt).text),
        "stream": lambda: steps.collect(chunk.text for chunk in ours.stream(steps.PROMPTS["stream"])),
        "tools": lambda: tools(stream=False),
        "streamed tools": lambda: tools(stream=True),
        "structured": structured,
        "image": image,
        "usage": usage,
        "second turn": second_turn,
        "wrong key": lambda: steps.status_of(lambda: client("wrong").invoke("x")),
        "refused stream": lambda: [chunk.text for chunk in ours.stream(steps.PROMPTS["refused"])],
        "cancel": cancel,
    }


if __name__ == "__main__":
    steps.run_steps(make_steps)
