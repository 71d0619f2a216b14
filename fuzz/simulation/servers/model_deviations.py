"""Deviations of model servers: the refusals of the table of servers, odd streams and calls, and failures."""

import gzip
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from attrs import field, frozen

from fuzz.simulation.servers.model_script import calling, chunk
from tests.support.model_servers import SERVERS

WORDS = "Tea is ready"
DONE = b"data: [DONE]\n\n"
LONGEST = 30_000  # characters of messages; a longer request overflows
PAUSE = 3  # s of a rate limit
EVENTS = b"text/event-stream"
JSON = b"application/json"
SIGNATURE = {"google": {"thought_signature": "s"}}
Members: TypeAlias = Mapping[str, Any]
Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]


@frozen(kw_only=True)
class DeviatingReply:
    """Reply of a deviating server. After one that is `cut` the connection is reset."""

    status: int = 200
    fields: Fields = ((b"content-type", EVENTS),)
    pieces: tuple[bytes, ...]
    cut: bool = False


@frozen(kw_only=True)
class ModelDeviation:
    """Deviation of a server: its reply to a request, by the number of earlier requests.

    `more` are members of the client's request. With `fails` the client gets an error, else `text`, and for its own
    tools as many `calls`. `pause` is the delay that the server requests, in seconds.
    """

    reply: Callable[[Members, int], DeviatingReply]
    fails: bool = False
    text: str = WORDS
    calls: int = 0
    pause: float = 0.0
    more: Members = field(factory=dict)


# --- replies ------------------------------------------------------------------------------------------------------


def _words(finish: str | None = None) -> list[bytes]:
    return [chunk({"content": word}, finish) for word in ("Tea ", "is ", "ready")]


PLAIN = (*_words(), chunk({}, "stop"), DONE)


def _stream(*pieces: bytes, label: bytes = EVENTS, cut: bool = False) -> DeviatingReply:
    return DeviatingReply(fields=((b"content-type", label),) if label else (), pieces=pieces, cut=cut)


def _error(status: int, text: str, fields: Fields = ()) -> DeviatingReply:
    return DeviatingReply(status=status, fields=((b"content-type", JSON), *fields), pieces=(text.encode(),))


def _always(reply: DeviatingReply) -> Callable[[Members, int], DeviatingReply]:
    return lambda request, number: reply


def _unless(applies: Callable[[Members], bool], refusal: DeviatingReply) -> Callable[[Members, int], DeviatingReply]:
    return lambda request, number: refusal if applies(request) else _stream(*PLAIN)


def _first(refusal: DeviatingReply) -> Callable[[Members, int], DeviatingReply]:
    return lambda request, number: _stream(*PLAIN) if number else refusal


def _has_lone_call(request: Members, member: str) -> bool:
    row = next(row for row in request["messages"] if row.get("tool_calls"))
    return member not in row and member not in row["tool_calls"][0]


def _is_long_id(request: Members) -> bool:
    row = next(row for row in request["messages"] if row.get("tool_calls"))
    return len(row["tool_calls"][0]["id"]) != 9


def _after_a_call(wrong: Callable[[Members], bool], refusal: DeviatingReply, before: bytes = b"") -> ModelDeviation:
    told = {"index": 0, "id": "call_0", "function": {"name": "skills_list", "arguments": "{}"}}
    call = chunk({"tool_calls": [{**told, "extra_content": SIGNATURE}]})
    pieces = (*filter(None, (before,)), call, chunk({}, "tool_calls"), DONE)

    def reply(request: Members, number: int) -> DeviatingReply:
        if request["messages"][-1]["role"] != "tool":
            return _stream(*pieces)
        return refusal if wrong(request) else _stream(*PLAIN)

    return ModelDeviation(reply=reply)


# --- the table of servers -----------------------------------------------------------------------------------------

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
QUESTION = {"type": "text", "text": "What is it?"}
WITH_PICTURE = {"messages": [{"role": "user", "content": [QUESTION, PICTURE]}]}
LONG_CHAT = {
    "messages": [
        *({"role": ("user", "assistant")[row % 2], "content": f"{row} " + "some words " * 90} for row in range(40)),
        {"role": "user", "content": "And now?"},
    ]
}
REFUSALS: Mapping[str, tuple[Callable[[Members], bool], Members]] = {
    "tools": (lambda request: "tools" in request, {}),
    "stream_options": (lambda request: "stream_options" in request, {}),
    "system": (lambda request: any(row["role"] == "system" for row in request["messages"]), {}),
    "images": (lambda request: "image_url" in json.dumps(request["messages"]), WITH_PICTURE),
    "overflow": (lambda request: len(json.dumps(request["messages"])) > LONGEST, LONG_CHAT),
}


def _of_table() -> dict[str, ModelDeviation]:
    found: dict[str, ModelDeviation] = {}
    for server in SERVERS:
        name = server["name"]
        for member, (applies, more) in REFUSALS.items():
            if member in server:
                status, text = server[member][:2]
                refusal = _error(status, text) if status != 200 else _stream(text.encode())
                found[f"{name} {member}"] = ModelDeviation(reply=_unless(applies, refusal), more=more)
        found[f"{name} rate"] = ModelDeviation(reply=_first(_error(*server["rate"][:2])), pause=60.0)
        status, text = server["error"][:2]
        found[f"{name} error"] = ModelDeviation(reply=_always(_error(status, text)), fails=True)
    return found


# --- streams ------------------------------------------------------------------------------------------------------


def _raw(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":%s}}]}\n\n' % text.encode()


STREAMS: Mapping[str, DeviatingReply] = {
    **{f"label {label.decode()}": _stream(*PLAIN, label=label) for label in (b"", b"text/plain", JSON)},
    "CRLF": _stream(*(piece.replace(b"\n", b"\r\n") for piece in PLAIN)),
    "byte order mark": _stream(b"\xef\xbb\xbf", *PLAIN),
    "comments": _stream(*(each for piece in PLAIN for each in (b": wait\n\n", b"data:\n\n", piece))),
    "single bytes": _stream(*(bytes([byte]) for byte in b"".join(PLAIN))),
    "gzip": DeviatingReply(
        fields=((b"content-type", EVENTS), (b"content-encoding", b"gzip")), pieces=(gzip.compress(b"".join(PLAIN)),)
    ),
    "finish in each chunk": _stream(*_words("stop"), DONE),
    "no end mark": _stream(*PLAIN[:-1]),
    "NaN": _stream(PLAIN[0].replace(b'"index": 0', b'"index": 0, "logprobs": NaN'), *PLAIN[1:]),
    "repeated member": _stream(PLAIN[0].replace(b'"index": 0', b'"index": 7, "index": 0'), *PLAIN[1:]),
    "thoughts in the content": _stream(chunk({"content": "<thi"}), chunk({"content": "nk>Hm.</think>"}), *PLAIN),
    "array of parts": _stream(chunk({"content": [{"type": "text", "text": WORDS}]}), *PLAIN[-2:]),
    "whole answer": DeviatingReply(
        fields=((b"content-type", JSON),),
        pieces=(json.dumps({"choices": [{"message": {"content": WORDS}, "finish_reason": "stop"}]}).encode(),),
    ),
}
FAILURES: Mapping[str, DeviatingReply] = {
    "unreadable chunk": _stream(PLAIN[0], b"data: {nonsense\n\n", *PLAIN[1:]),
    "cut": _stream(PLAIN[0], cut=True),
    "end in the middle": _stream(PLAIN[0]),
    "empty answer": _stream(chunk({}, "stop"), DONE),
    "thoughts alone": _stream(chunk({"reasoning_content": "Hm."}), chunk({}, "stop"), DONE),
    "error event": _stream(PLAIN[0], b'event: error\ndata: {"message": "out of memory"}\n\n'),
    "bare error": _stream(b'data: {"object": "error", "message": "out of memory"}\n\n'),
    "array around an error": _error(400, '[{"error": {"message": "out of memory"}}]'),
    "page": _error(404, "<html>nothing here</html>"),
}
RATES: Mapping[str, tuple[bytes, bytes]] = {
    "seconds": (b"retry-after", b"%d" % PAUSE),
    "fraction": (b"retry-after", b"%d.5" % (PAUSE - 1)),
    "milliseconds": (b"retry-after-ms", b"%d" % (PAUSE * 1000)),
}
CLIENT_TOOLS = {"tools": [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("a", "b")]}


def _calls(*fragments: Members) -> ModelDeviation:
    pieces = (*(chunk({"tool_calls": [each]}) for each in fragments), chunk({}, "tool_calls"), DONE)
    return ModelDeviation(reply=_always(_stream(*pieces)), text="", calls=2, more=CLIENT_TOOLS)


def _function(name: str, arguments: str = "{}") -> Members:
    return {"function": {"name": name, "arguments": arguments}}


DEVIATIONS: Mapping[str, ModelDeviation] = {
    **_of_table(),
    **{name: ModelDeviation(reply=_always(reply)) for name, reply in STREAMS.items()},
    **{name: ModelDeviation(reply=_always(reply), fails=True) for name, reply in FAILURES.items()},
    **{
        f"delay in {name}": ModelDeviation(reply=_first(_error(429, "{}", (header,))), pause=PAUSE)
        for name, header in RATES.items()
    },
    "half a surrogate pair": ModelDeviation(
        reply=_always(_stream(_raw('"Tea \\ud83d"'), *PLAIN[-2:])), text="Tea \ufffd"
    ),
    "calls at one index": _calls({"index": 0, **_function("a")}, {"index": 0, **_function("b")}),
    "calls without index": _calls({"id": "x", **_function("a")}, {"id": "y", **_function("b")}),
    "arguments of two indexes in turn": _calls(
        *({"index": place, "id": f"c{place}", **_function("ab"[place], "")} for place in (0, 1)),
        *({"index": place, "function": {"arguments": each}} for each in "{}" for place in (1, 0)),
    ),
    "calls in one chunk": ModelDeviation(
        reply=_always(_stream(*calling(("x", "a", {}), ("y", "b", {})), DONE)), text="", calls=2, more=CLIENT_TOOLS
    ),
    "reasoning has to return": _after_a_call(
        partial(_has_lone_call, member="reasoning_content"),
        _error(400, '{"error": {"message": "The reasoning_content in the thinking mode must be passed back"}}'),
        chunk({"reasoning_content": "Hm."}),
    ),
    "signature has to return": _after_a_call(
        partial(_has_lone_call, member="extra_content"), _error(400, "Function call is missing a thought_signature")
    ),
    "short ids": _after_a_call(
        _is_long_id,
        _error(400, '{"detail": [{"msg": "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9."}]}'),
    ),
}
