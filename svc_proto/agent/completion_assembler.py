"""Assembler of one model answer from the chunks of a chat-completions stream.

Servers differ. Reasoning has three names. A tool call comes whole or in pieces, with or without index and id, with its
name repeated or not, its arguments as text or as an object. Usage comes in a chunk of its own or not at all. An answer
that was not streamed is one chunk with a `message`. A member of a wrong type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from attrs import define, field

from svc_proto.agent.interface import ReasoningDelta, TextDelta
from svc_proto.basics import strict_json
from svc_proto.schema.completion_chunks import chunk_text_fast, content_as_text
from svc_proto.schema.json_object import JsonObject, error_text, json_value

__all__ = ["MAX_CALLS", "MAX_TEXT", "CompletionAssembler", "PartialToolCall", "ModelResponseError"]

MAX_TEXT = 1024 * 1024  # characters of one answer, its reasoning, or its arguments; the answer is cut there
MAX_CALLS = 32  # calls of one answer; more are an error
MAX_CHUNK = 16 * 1024  # characters of a chunk that may be read without parsing
MAX_TEMPLATES = 8  # chunks of an answer from which templates are learned
CONTENT = ('"content":', '"content": ')  # with and without a blank
PROBE = "\u2042"  # a text that no chunk contains
MAX_NAME = 200  # characters of an id or the name of a tool
REASONING = ("reasoning_content", "reasoning", "thinking")
_WORDS = re.compile('[^"\\\\\0-\x1f\ud800-\udfff]++')  # JSON string content without escapes
Delta: TypeAlias = TextDelta | ReasoningDelta


class ModelResponseError(Exception):
    """Unusable response of the model's server, or an error that it reports; the text may quote the server."""


@define
class PartialToolCall:
    """A tool call, as far as it has arrived."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(factory=list)

    @property
    def arguments(self) -> str:
        """Return the arguments as the model wrote them: JSON as a rule."""
        return "".join(self.pieces)


class CompletionAssembler:
    """Collects the data of each event through `feed`."""

    def __init__(self) -> None:
        self.calls: list[PartialToolCall] = []
        self.finish: str | None = None  # the server's finish reason
        self.done = False  # `[DONE]` arrived, or the answer was one piece
        self.full = False  # cut at `MAX_TEXT`
        self.input_tokens = 0
        self.output_tokens = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._text_size = 0
        self._reasoning_size = 0
        self._argument_size = 0
        self._places: dict[int, int] = {}  # call by index; the latest one
        self._template = _ChunkTemplate()

    @property
    def text(self) -> str:
        """Return the answer so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """Return the reasoning so far."""
        return "".join(self._reasoning)

    @property
    def begun(self) -> bool:
        """Report whether any part of an answer has arrived."""
        return bool(self._text or self._reasoning or self.calls)

    @property
    def is_finished(self) -> bool:
        """Report whether further events are to be ignored."""
        return self.done or self.full

    def feed(self, data: str) -> Iterable[Delta]:
        """Parse one event's data. Consume the result before the next call; both may raise `ModelResponseError`."""
        text = self._template.words(data)
        size = self._text_size + len(text)
        if text and size < MAX_TEXT:
            self._text_size = size
            self._text.append(text)
            return (TextDelta(text),)
        if data.strip() == "[DONE]":
            self.done = True
            return ()
        value = json_value(data, data)
        if value is data:
            raise ModelResponseError("it sent an event that is not JSON")
        chunk = JsonObject.of(value)
        text = chunk_text_fast(chunk)
        size = self._text_size + len(text)
        if not text or size >= MAX_TEXT:
            return self._add_chunk(chunk)
        self._template.learn(data, text)
        self._text_size = size
        self._text.append(text)
        return (TextDelta(text),)

    def _add_chunk(self, chunk: JsonObject) -> Iterator[Delta]:
        error = chunk.get("error")
        if error:
            raise ModelResponseError(error_text(error) or "it reported an error")
        self._count(chunk.get_object("usage"))
        choice = JsonObject.of(next(iter(chunk.array("choices")), None))
        whole = choice.object_or_none("message")
        if whole is not None:
            self.done = True
        delta = JsonObject.of(choice.get("message") or choice.get("delta"))
        yield from self._reason(delta)
        yield from self._add_text(delta)
        for fragment in delta.array("tool_calls"):
            self._call(JsonObject.of(fragment))
        self.finish = choice.text("finish_reason") or self.finish

    def _reason(self, delta: JsonObject) -> Iterator[Delta]:
        text = next((text for name in REASONING if (text := content_as_text(delta.get(name)))), "")
        text = text[: MAX_TEXT - self._reasoning_size]
        if text:
            self._reasoning_size += len(text)
            self.full = self.full or self._reasoning_size >= MAX_TEXT
            self._reasoning.append(text)
            yield ReasoningDelta(text)

    def _add_text(self, delta: JsonObject) -> Iterator[Delta]:
        text = content_as_text(delta.get("content")) or content_as_text(delta.get("refusal"))
        text = text[: MAX_TEXT - self._text_size]
        if text:
            self._text_size += len(text)
            self.full = self.full or self._text_size >= MAX_TEXT
            self._text.append(text)
            yield TextDelta(text)

    def _call(self, fragment: JsonObject) -> None:
        function = fragment.get_object("function")
        identity, name = fragment.text("id")[:MAX_NAME], function.text("name")[:MAX_NAME]
        call = self._slot(fragment.integer("index"), identity, name)
        call.id = call.id or identity
        if name and name != call.name and not call.pieces:
            call.name = (call.name + name)[:MAX_NAME]
        whole = function.object_or_none("arguments")
        arguments = function.text("arguments") if whole is None else strict_json.dumps(whole)
        if arguments:
            self._argument_size += len(arguments)
            if self._argument_size > MAX_TEXT:
                raise ModelResponseError(f"it wrote more than {MAX_TEXT} characters of arguments")
            call.pieces.append(arguments)

    def _slot(self, index: int | None, identity: str, name: str) -> PartialToolCall:
        """Return the call of a fragment: the one with its index, unless the ids differ; else the latest."""
        place = len(self.calls) - 1
        if index is not None:
            place = self._places.get(index, -1)
        known = self.calls[place] if place >= 0 else None
        if known is not None:
            same = bool(identity) and identity == known.id
            other = bool(identity and known.id) and not same
            begins = index is None and bool(name and known.pieces) and not same  # a name after arguments
            if not (other or begins):
                return known
        if len(self.calls) >= MAX_CALLS:
            raise ModelResponseError(f"it asked for more than {MAX_CALLS} tools at once")
        fresh = PartialToolCall()
        self.calls.append(fresh)
        if index is not None:
            self._places[index] = len(self.calls) - 1
        return fresh

    def _count(self, usage: JsonObject) -> None:
        given, made = usage.integer("prompt_tokens", 0), usage.integer("completion_tokens", 0)
        self.input_tokens = self.input_tokens if given is None else given
        self.output_tokens = self.output_tokens if made is None else made


class _ChunkTemplate:
    """The constant text around the words of a chunk. A chunk with the same text around needs no parsing.

    A JSON text keeps its structure when one string replaces another, so only the words are checked.
    """

    __slots__ = ("_after", "_before", "_lessons")

    def __init__(self) -> None:
        self._before = self._after = ""
        self._lessons = MAX_TEMPLATES

    def words(self, data: str) -> str:
        """Return the words of a chunk that fits the template; empty if it must be parsed."""
        before, after = self._before, self._after
        if not before or not data.startswith(before) or not data.endswith(after) or len(data) > MAX_CHUNK:
            return ""
        found = _WORDS.fullmatch(data, len(before), len(data) - len(after))
        return "" if found is None else found[0]

    def learn(self, data: str, text: str) -> None:
        """Learn the template of a parsed chunk that holds nothing but `text`."""
        if not self._lessons or len(data) > MAX_CHUNK or _WORDS.fullmatch(text) is None:
            return
        self._lessons -= 1
        for member in CONTENT:
            before, found, after = data.partition(f'{member}"{text}"')
            if found and chunk_text_fast(JsonObject.parse_or_empty(f'{before}{member}"{PROBE}"{after}')) == PROBE:
                self._before, self._after = f'{before}{member}"', f'"{after}'
