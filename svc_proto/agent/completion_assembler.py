"""Assembler of one model answer from the chunks of a chat-completions stream.

Reasoning, tool calls, usage and finish reasons are read in the forms of several servers. An answer that was not
streamed is one chunk with a `message`. Unknown members are collected, up to a limit, to be sent back to the server.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from attrs import define, field

from svc_proto.agent.interface import ReasoningDelta, TextDelta, TextRetracted
from svc_proto.agent.message_extras import ExtraMembers
from svc_proto.agent.thought_tags import MARKS, ThoughtSplitter
from svc_proto.basics import lenient_json, strict_json
from svc_proto.schema.completion_chunks import chunk_text_fast, content_as_text
from svc_proto.schema.json_object import JsonObject, error_text

__all__ = ["MAX_CALLS", "MAX_TEXT", "CompletionAssembler", "PartialToolCall", "ModelResponseError"]

MAX_TEXT = 1024 * 1024  # characters of one answer, its reasoning, or its arguments; the answer is cut there
MAX_CALLS = 32  # calls of one answer; more are an error
MAX_CHUNK = 16 * 1024  # characters of a chunk that may be read without parsing
MAX_TEMPLATES = 8  # chunks of an answer from which templates are learned
CONTENT = ('"content":', '"content": ')  # with and without a blank
PROBE = "\u2042"  # a text that no chunk contains
MAX_NAME = 200  # characters of an id or the name of a tool
REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
# Members of a message and of a call with a meaning of their own, and output that does not go back.
MESSAGE_MEMBERS = frozenset(
    (*REASONING, "role", "content", "refusal", "tool_calls", "function_call", "audio", "images", "name")
)
CALL_MEMBERS = frozenset(("index", "id", "type", "function"))
REASONING_NAMES = frozenset(REASONING)
NO_REASON = ("null", "none")  # finish reasons that are none
_MARK = re.compile(f"[{re.escape(''.join(MARKS))}]")
_ESCAPED = '"\\\\\0-\x1f\ud800-\udfff'  # characters that JSON string content has with an escape only
_WORDS = re.compile(f"[^{_ESCAPED}]++")
_PLAIN_WORDS = re.compile(f"[^{_ESCAPED}{re.escape(''.join(MARKS))}]++")  # words that begin no tag
Delta: TypeAlias = TextDelta | ReasoningDelta | TextRetracted


class ModelResponseError(Exception):
    """Unusable response of the model's server, or an error that it reports; the text may quote the server."""

    def __init__(self, text: str, report: object = None) -> None:
        super().__init__(text)
        self.report = report  # the JSON value of a reported error


@define
class PartialToolCall:
    """A tool call, as far as it has arrived."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(factory=list)
    extra: ExtraMembers = field(factory=ExtraMembers)

    @property
    def arguments(self) -> str:
        """Return the text of the arguments so far: JSON as a rule."""
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        """Report whether the arguments are a whole JSON object."""
        arguments = self.arguments.strip()
        return arguments.endswith("}") and JsonObject.parse(arguments) is not None


def read_leniently(data: str) -> object:
    """Parse JSON with the deviations that `lenient_json` accepts. Raises `JsonError` for other text."""
    return lenient_json.loads(data)[0]


class CompletionAssembler:
    """Assembler of one answer: `feed` takes the data of each event. `read` is the parser for the JSON in it."""

    def __init__(self, read: Callable[[str], object] = read_leniently) -> None:
        self._read = read
        self.calls: list[PartialToolCall] = []
        self.finish: str | None = None  # the server's finish reason
        self.done = False  # `[DONE]` arrived, or the answer was one piece
        self.full = False  # cut at `MAX_TEXT`
        self.input_tokens = 0
        self.output_tokens = 0
        self.answer_pieces: list[str] = []  # of the answer so far; emptied if it is retracted
        self.reasoning_pieces: list[str] = []
        self.answer_size = 0  # characters
        self.reasoning_size = 0
        self._argument_size = 0
        self._reasoning_name = ""  # of the member that has the reasoning; empty: it is in the content
        self._extra = ExtraMembers()
        self._splitter = ThoughtSplitter(self.answer_pieces)
        self._is_finish_loose = False  # the server sends finish reasons before the end
        self._size_at_finish = -1
        self._places: dict[int, int] = {}  # call by index; the latest one
        self._template = _ChunkTemplate()

    @property
    def text(self) -> str:
        """Return the answer so far."""
        return "".join(self.answer_pieces)

    @property
    def reasoning(self) -> str:
        """Return the reasoning so far."""
        return "".join(self.reasoning_pieces)

    @property
    def begun(self) -> bool:
        """Report whether the answer has text, reasoning or a tool call so far."""
        return bool(self.answer_pieces or self.reasoning_pieces or self.calls)

    @property
    def is_finished(self) -> bool:
        """Report whether further events are to be ignored.

        They are after `[DONE]` or a `message` in one piece, or once the text or the reasoning has `MAX_TEXT`
        characters.
        """
        return self.done or self.full

    @property
    def is_ending(self) -> bool:
        """Report whether an answer with text or calls ends with its finish reason, so that only its usage may follow.

        It is False for good once a chunk with a finish reason also had content, or content came between two of them.
        """
        if self.finish is None or self._is_finish_loose:
            return False
        return self._size_at_finish == self._size and bool(self.answer_pieces or self.calls)

    @property
    def extra(self) -> dict[str, object]:
        """Return the members to send back to the server with this message in later requests.

        These are unknown ones and, if the message has calls, the reasoning under the name that the server used.
        """
        named = {self._reasoning_name: self.reasoning} if self._reasoning_name and self.calls else {}
        return {**named, **self._extra.members}

    def feed(self, data: str, event: str = "message") -> Iterable[Delta]:
        """Parse one event's data and return its deltas, which must be consumed before the next call.

        The call and the iteration raise `ModelResponseError` for an error or an unusable answer of the server.
        """
        if self._splitter.is_plain and (text := self._template.words(data)):
            size = self.answer_size + len(text)
            if size < MAX_TEXT:
                self.answer_size = size
                self.answer_pieces.append(text)
                return (TextDelta(text),)
        stripped = data.strip()
        if not stripped:
            return ()
        if stripped == "[DONE]":
            self.done = True
            return ()
        try:
            value = self._read(data)
        except strict_json.JsonError:
            text = data if event == "error" else "it sent an event that is not JSON"
            raise ModelResponseError(text, data) from None
        chunk = JsonObject.of(value)
        if event == "error" or (("choices" not in chunk or "error" in chunk) and _is_error(chunk)):
            raise ModelResponseError(error_text(value) or "it reported an error", value)
        text = chunk_text_fast(chunk)
        size = self.answer_size + len(text)
        if not text or size >= MAX_TEXT or not self._is_answer(text):
            return self._add_chunk(chunk)
        self._template.learn(data, text)
        self.answer_size = size
        self.answer_pieces.append(text)
        return (TextDelta(text),)

    def close(self) -> Iterator[Delta]:
        """Return the deltas of text that was held back as the possible start of a tag, at the end of the answer."""
        for text, is_reasoning, _ in self._splitter.finish():
            yield from self._add_reasoning(text) if is_reasoning else self._add_answer(text)

    # --- helpers ---

    @property
    def _size(self) -> int:
        return self.answer_size + self.reasoning_size + self._argument_size + len(self.calls)

    def _is_answer(self, text: str) -> bool:
        """Report whether a text is answer text as it stands: no tag is open, and the text has no mark of a tag."""
        return self._splitter.is_plain and _MARK.search(text) is None

    def _add_chunk(self, chunk: JsonObject) -> Iterator[Delta]:
        if chunk.get("usage") or chunk.get("x_groq"):
            self._count(chunk.get_object("usage") or chunk.get_object("x_groq", "usage"))
        choice = JsonObject.of(next(iter(chunk.array("choices")), None))
        whole = choice.object_or_none("message")
        if whole is not None:
            self.done = True
        if choice.get("error"):
            raise ModelResponseError(error_text(choice["error"]) or "it reported an error", choice["error"])
        delta = JsonObject.of(choice.get("message") or choice.get("delta"))
        reason = choice.text("finish_reason")
        before = self._size if reason else 0
        yield from self._reason(delta)
        yield from self._add_text(delta)
        for fragment in delta.array("tool_calls"):
            self._call(JsonObject.of(fragment))
        if (function := delta.object_or_none("function_call")) is not None:  # the form before `tool_calls`
            self._call(JsonObject(index=0, function=function))
        self._extra.add(delta, MESSAGE_MEMBERS)
        if reason:
            self._end(reason, before)

    def _end(self, reason: str, before: int) -> None:
        if reason.lower() not in NO_REASON:
            came_early = self._size_at_finish >= 0 and self._size_at_finish != self._size
            self._is_finish_loose = self._is_finish_loose or came_early or self._size != before
            self.finish, self._size_at_finish = reason, self._size

    def _reason(self, delta: JsonObject) -> Iterator[Delta]:
        for name in () if REASONING_NAMES.isdisjoint(delta) else REASONING:
            text = content_as_text(delta[name]) if name in delta else ""
            if text:
                self._reasoning_name = self._reasoning_name or name
                yield from self._add_reasoning(text)
                return
        if not delta.array_or_none("content"):
            return
        for part in delta.objects("content"):  # Mistral sends reasoning as a part of the content
            yield from self._add_reasoning(content_as_text(part.get("thinking")))

    def _add_reasoning(self, text: str) -> Iterator[Delta]:
        text = text[: MAX_TEXT - self.reasoning_size]
        if text:
            self.reasoning_size += len(text)
            self.full = self.full or self.reasoning_size >= MAX_TEXT
            self.reasoning_pieces.append(text)
            yield ReasoningDelta(text)

    def _add_text(self, delta: JsonObject) -> Iterator[Delta]:
        content = content_as_text(delta.get("content"))
        for text, is_reasoning, retracts in self._splitter.feed(content) if content else ():
            if retracts:
                yield from self._retract()
            else:
                yield from self._add_reasoning(text) if is_reasoning else self._add_answer(text)
        if delta.get("refusal"):
            yield from self._add_answer(content_as_text(delta["refusal"]))

    def _add_answer(self, text: str) -> Iterator[Delta]:
        text = text[: MAX_TEXT - self.answer_size]
        if text:
            self.answer_size += len(text)
            self.full = self.full or self.answer_size >= MAX_TEXT
            self.answer_pieces.append(text)
            yield TextDelta(text)

    def _retract(self) -> Iterator[Delta]:
        """Turn the answer text so far, if any, into reasoning: yield its retraction, then its text as reasoning."""
        text = self.text
        self.answer_pieces.clear()
        self.answer_size = 0
        if text:
            yield TextRetracted(len(text))
            yield from self._add_reasoning(text)

    def _call(self, fragment: JsonObject) -> None:
        function = fragment.get_object("function")
        identity, name = fragment.text("id")[:MAX_NAME], function.text("name")[:MAX_NAME]
        whole = function.object_or_none("arguments")
        arguments = function.text("arguments") if whole is None else strict_json.dumps(whole)
        call = self._slot(fragment.integer("index"), identity, name, arguments)
        call.id = call.id or identity
        if name and name != call.name and not call.pieces:
            call.name = (call.name + name)[:MAX_NAME]
        call.extra.add(fragment, CALL_MEMBERS)
        call.extra.add(JsonObject(function=_without(function, "name", "arguments")), frozenset())
        if arguments and not (name and call.pieces and call.arguments == arguments):  # else a repeated fragment
            self._argument_size += len(arguments)
            if self._argument_size > MAX_TEXT:
                raise ModelResponseError(f"it wrote more than {MAX_TEXT} characters of arguments")
            call.pieces.append(arguments)

    def _slot(self, index: int | None, identity: str, name: str, arguments: str) -> PartialToolCall:
        """Return the call that a fragment belongs to, or a new call if it begins one.

        A fragment without index, id and name belongs to the latest call, if any. Too many calls raise
        `ModelResponseError`.
        """
        place = len(self.calls) - 1
        if index is not None:
            place = self._places.get(index, -1)
            if place < 0 and self.calls and not (identity or name) and not self.calls[-1].is_complete:
                place = len(self.calls) - 1  # the index counts fragments
        known = self.calls[place] if place >= 0 else None
        if identity and (known is None or identity != known.id):
            same = next((call for call in self.calls if call.id == identity and not call.is_complete), None)
            if same is not None and not name:
                return same
        if known is not None and not _begins_call(known, identity, name, arguments):
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


def _begins_call(known: PartialToolCall, identity: str, name: str, arguments: str) -> bool:
    """Report whether a fragment that has the index of a known call, or no index, begins another call.

    Another id begins one, if both have one. So does another name while the call has some but not all of its arguments,
    and any name when they are complete, unless the fragment repeats the call.
    """
    if identity and known.id and identity != known.id:
        return True
    if not name or not known.pieces:
        return False
    if not known.is_complete:
        return name != known.name
    is_repeated = bool(identity) and identity == known.id and arguments in ("", known.arguments)
    return not is_repeated


def _without(members: JsonObject, *names: str) -> dict[str, object]:
    return {name: value for name, value in members.items() if name not in names}


def _is_error(chunk: JsonObject) -> bool:
    """Report whether a chunk is an error: `error` is not empty, or members of an error are in place of `choices`."""
    if chunk.get("error"):
        return True
    if "choices" in chunk:
        return False
    is_named = chunk.get("object") == "error" or chunk.get("type") == "error"
    return bool(error_text(chunk)) and (is_named or "code" in chunk or "status" in chunk or "detail" in chunk)


class _ChunkTemplate:
    """The constant text around the words of a chunk. A chunk with the same text around needs no parsing.

    A JSON text keeps its structure when one string replaces another, so only the words are checked.
    """

    __slots__ = ("_after", "_before", "_lessons")

    def __init__(self) -> None:
        self._before = self._after = ""
        self._lessons = MAX_TEMPLATES

    def words(self, data: str) -> str:
        """Return the words of a chunk that fits the template; empty if the chunk must be parsed or may hold a tag."""
        before, after = self._before, self._after
        if not before or not data.startswith(before) or not data.endswith(after) or len(data) > MAX_CHUNK:
            return ""
        found = _PLAIN_WORDS.fullmatch(data, len(before), len(data) - len(after))
        return "" if found is None else found[0]

    def learn(self, data: str, text: str) -> None:
        """Store the text around `text` in a parsed chunk as the template.

        Nothing is stored after `MAX_TEMPLATES` tries, or if the chunk or its text is unsuitable.
        """
        if not self._lessons or len(data) > MAX_CHUNK or _WORDS.fullmatch(text) is None:
            return
        self._lessons -= 1
        for member in CONTENT:
            before, found, after = data.partition(f'{member}"{text}"')
            if found and chunk_text_fast(JsonObject.parse_or_empty(f'{before}{member}"{PROBE}"{after}')) == PROBE:
                self._before, self._after = f'{before}{member}"', f'"{after}'
