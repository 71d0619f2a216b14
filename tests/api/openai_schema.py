"""OpenAI's `chat.completion.chunk` and `chat.completion` as a strict schema with exact members and types.

The source is the API reference (Chat Completions, streaming). Two members are additions, read by clients in use.
`reasoning_content` of a delta is sent by servers of reasoning models and shown by Open WebUI. A failed turn has the
`finish_reason` `error` with an `error` beside the choices (wire api 5.3), and the same `error` alone before it.
"""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]
FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")


def check_chunk(value: object, *, usage: bool = False) -> None:
    """Check one chunk of a stream against the schema; `usage` means that the client requested usage."""
    assert isinstance(value, dict)
    if value.keys() == {"error"}:
        assert of(message=text, type=text)(value["error"]), value
        return
    failed = "error" in value
    choice = of(index=whole, delta=DELTA, finish_reason=maybe(one_of("error") if failed else one_of(*FINISHES)))
    last = value.get("choices") == []
    members: dict[str, Check] = {
        "id": text,
        "object": one_of("chat.completion.chunk"),
        "created": whole,
        "model": text,
        "choices": lists(choice, 0 if last else 1, 0 if last else 1),
    }
    if usage:
        members["usage"] = USAGE if last else one_of(None)
    if failed:
        members["error"] = of(message=text, type=text)
    assert of(**members)(value), value
    assert usage or not last, value


def check_completion(value: object) -> None:
    """Check a whole completion against the schema."""
    choice = of(index=whole, message=MESSAGE, finish_reason=one_of(*FINISHES))
    found = of(
        id=text, object=one_of("chat.completion"), created=whole, model=text, choices=lists(choice, 1, 1), usage=USAGE
    )
    assert found(value), value


def text(value: Any) -> bool:
    return isinstance(value, str)


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def one_of(*values: object) -> Check:
    return lambda value: value in values


def maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def lists(check: Check, least: int = 0, most: int = 128) -> Check:
    return lambda value: isinstance(value, list) and least <= len(value) <= most and all(map(check, value))


def of(optional: dict[str, Check] | None = None, /, **required: Check) -> Check:
    """Return a check for an object with exactly the `required` members and perhaps the `optional` ones."""
    known = {**required, **(optional or {})}

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required.keys() <= value.keys() <= known.keys()
            and all(known[name](member) for name, member in value.items())
        )

    return check


def named(value: Any) -> bool:
    return text(value) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value) is not None


FUNCTION = of(name=named, arguments=text)
CALL = of(id=text, type=one_of("function"), function=FUNCTION)
PIECE = of(index=whole, id=text, type=one_of("function"), function=FUNCTION)
DELTA = of(
    {"role": one_of("assistant"), "content": maybe(text), "tool_calls": lists(PIECE, 1), "reasoning_content": text}
)
MESSAGE = of({"tool_calls": lists(CALL, 1)}, role=one_of("assistant"), content=maybe(text))
USAGE = of(prompt_tokens=whole, completion_tokens=whole, total_tokens=whole)
