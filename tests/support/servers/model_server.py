"""Scripted model server for tests: one answer for each request, in order.

    model = ScriptedModel([calls(("phone_ping", {})), plain("Done.")])
    model = ScriptedModel([lambda request: plain(last_result(request))])

An answer may depend on its request. After the last answer, the server answers with `default`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import evolve, frozen

from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, StreamedResponse, json_response
from svc_proto.wire.events import Headers
from tests.support.servers.scripted_service import PacedAnswer, ScriptedService, row

MODEL_PORT = 9000
NO_PAGES: Mapping[str, object] = {}
DONE = b"data: [DONE]\n\n"


@frozen(kw_only=True)
class ModelAnswer(PacedAnswer):
    """Answer of the model server to one request: an event stream of `events`, or `body` if `events` is None."""

    events: tuple[bytes, ...] | None = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    kind: bytes = b"text/event-stream"  # label of `events`; empty: none

    def dropped(self, after: int) -> ModelAnswer:
        """Return this answer cut after `after` events, with the connection lost behind them."""
        return evolve(self, events=(self.events or ())[:after], breaks=True)

    def stuck(self, after: int) -> ModelAnswer:
        """Return this answer cut after `after` events, with no end behind them."""
        return evolve(self, events=(self.events or ())[:after], hangs=True)


Scripted: TypeAlias = "ModelAnswer | Callable[[dict[str, Any]], ModelAnswer]"


# --- events -------------------------------------------------------------------------------------------------------


def event(value: object) -> bytes:
    """Return a server-sent event whose data is `value` as JSON."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: Mapping[str, object] | None = None, finish: str | None = None) -> bytes:
    """Return the event of a chat completion chunk with this delta."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]})


def usage(asked: int, answered: int) -> bytes:
    """Return the event of the last chunk: token counts, for `include_usage`."""
    counts = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
    return event({"id": "c-1", "object": "chat.completion.chunk", "choices": [], "usage": counts})


# --- answers ------------------------------------------------------------------------------------------------------


def plain(text: str, *, reasoning: str = "", finish: str | None = "stop") -> ModelAnswer:
    """Return a streamed answer with an event for each word: `reasoning`, then `text`."""
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": f"{word} "}) for word in reasoning.split()]
    words = text.split(" ")
    events += [chunk({"content": word + (" " if place < len(words) - 1 else "")}) for place, word in enumerate(words)]
    return ModelAnswer(events=(*events, chunk(finish=finish), usage(7, len(words)), DONE))


def calls(*wanted: tuple[str, object], text: str = "") -> ModelAnswer:
    """Return a streamed answer with parallel tool calls, whose arguments come in two pieces.

    Arguments of type str are sent unchanged, others as JSON.
    """
    events = [chunk({"content": text})] if text else []
    for place, (name, arguments) in enumerate(wanted):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(written) // 2
        first = {"index": place, "id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(chunk({"tool_calls": [first]}))
        pieces = [{"index": place, "function": {"arguments": piece}} for piece in (written[:half], written[half:])]
        events += [chunk({"tool_calls": [piece]}) for piece in pieces]
    return ModelAnswer(events=(*events, chunk(finish="tool_calls"), usage(11, 5), DONE))


def whole(message: Mapping[str, object], finish: str = "stop") -> ModelAnswer:
    """Return an answer with this message that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    counts = {"prompt_tokens": 3, "completion_tokens": 4}
    return ModelAnswer(body=json.dumps({"id": "c-1", "choices": [choice], "usage": counts}).encode())


def refusal(status: int, message: str = "no", *, retry_after: str | None = None) -> ModelAnswer:
    headers = ((b"retry-after", retry_after.encode()),) if retry_after is not None else ()
    return ModelAnswer(status=status, headers=headers, body=json.dumps({"error": {"message": message}}).encode())


def huge(events: int, size: int) -> ModelAnswer:
    """Return a streamed answer of `events` pieces of `size` characters, whose text does not repeat itself."""
    text = "".join(f"{number:06}," for number in range(events * size // 7 + 1))
    pieces = (chunk({"content": text[place * size : (place + 1) * size]}) for place in range(events))
    return ModelAnswer(events=(*pieces, chunk(finish="stop"), DONE))


def last_result(request: Mapping[str, Any]) -> str:
    """Return the content of the last tool message of a request."""
    return next(str(row["content"]) for row in reversed(request["messages"]) if row["role"] == "tool")


def counting(start: int, deltas: int, *, size: int = 0, together: int = 10) -> ModelAnswer:
    """Return a streamed answer of numbered pieces of at least `size` characters, from `start`.

    The pieces are written in batches of `together`.
    """
    pieces = [chunk({"content": counted(number, size)}) for number in range(start, start + deltas)]
    batches = [b"".join(pieces[at : at + together]) for at in range(0, len(pieces), together)]
    return ModelAnswer(events=(*batches, chunk(finish="stop"), usage(1, deltas), DONE))


def counted(number: int, size: int = 0) -> str:
    """Return the number and a space, padded with dots on the left to at least `size` characters."""
    return f"{number} ".rjust(size, ".")


THE_END = plain("The script is over.")


# --- the server ---------------------------------------------------------------------------------------------------


class ScriptedModel(ScriptedService):
    """Scripted model service.

    `seen` are the bodies of chat completions, `keys` their `Authorization`, `heads` their fields.
    `pages` are the JSON answers of further GET routes, `default` is the answer after the last of `answers`.
    """

    def __init__(
        self, answers: Iterable[Scripted] = (), pages: Mapping[str, object] = NO_PAGES, default: Scripted = THE_END
    ) -> None:
        self.answers = list(answers)
        self.default = default
        self.seen: list[dict[str, Any]] = []
        self.keys: list[bytes | None] = []
        self.heads: list[Headers] = []
        rows = [row("GET", path, lambda request, page=page: json_response(200, page)) for path, page in pages.items()]
        super().__init__([row("POST", "/v1/chat/completions", self._complete), *rows])

    # --- the route ---

    def _complete(self, request: Request) -> Flow[Response | StreamedResponse]:
        asked = json.loads(request.body)
        self.seen.append(asked)
        self.keys.append(request.headers.get(b"authorization"))
        self.heads.append(request.headers)
        channel = self.channels[-1]
        answer = self.answers.pop(0) if self.answers else self.default
        if not isinstance(answer, ModelAnswer):
            answer = answer(asked)
        yield from sleep(self.engine, answer.before)
        if answer.events is None:
            headers = Headers([(b"content-type", b"application/json"), *answer.headers])
            return Response(answer.status, headers, answer.body)
        kind = [(b"content-type", answer.kind)] if answer.kind else []
        headers = Headers([*kind, *answer.headers])
        told, events = answer, answer.events
        return StreamedResponse(told.status, headers, lambda writer: self.write(writer, channel, events, told))
