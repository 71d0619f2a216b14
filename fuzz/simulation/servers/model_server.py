"""Simulated model server: it repeats the question, slowly, and fails on request."""

import json
from collections.abc import Callable
from enum import Enum
from typing import Any

from runtimes.sim.connection import SimEnd
from runtimes.sim.host import SimHost
from svc_proto.wire.events import Headers, ResponseData, ResponseEnd, ResponseHead
from tests.support.sim_http import ServerSideConnection, listen

MODEL_PORT = 9000
LONG = 200  # pieces of a long answer, too much for a reader's buffer
LONG_ANSWER_CHUNK = "long answer " * 125
TAKEN = (9, 1)  # tokens that one model call of an answer with notes reports: input and output
TOKENS = sum(TAKEN)
MURMURS = 9  # such pieces fill a window of the network, but not the reader's buffer
DONE = b"data: [DONE]\n\n"


class ModelBehavior(Enum):
    """Behavior of a simulated model's answer: its length, pauses, tool calls and failures."""

    PLAIN = "plain"
    LONG = "long"  # more than a reader's buffer holds
    SLOW_DELTAS = "murmur"  # more than a small window holds, and then nothing
    TOOL = "tool"  # it calls the phone's ping tool first
    LOSE = "lose"  # like `TOOL`, but the connection breaks after the call
    NOTES = "notes"  # it pings the phone, then stores two notes, which need an approval
    REFUSE = "refuse"  # 500
    BREAK = "break"  # the connection breaks in the middle
    HANG = "hang"  # no data after the middle
    NONSENSE = "nonsense"  # no JSON in its events


CALLS = (ModelBehavior.TOOL, ModelBehavior.LOSE)


class SimModelServer:
    """Listener of the simulated model; `trouble`, or else the question, selects the behavior of an answer."""

    def __init__(self, host: SimHost) -> None:
        self.host = host
        self.trouble: ModelBehavior | None = None
        self.visits: dict[_ModelConnection, None] = {}  # connections with an unfinished answer
        self.doomed: list[float] = []  # seconds from the next question to the end of its connection
        self.forsaken: dict[str, None] = {}  # questions whose connection was to end early
        self.broken: list[tuple[float, str]] = []  # when an answer was cut off, and its question
        # Called with each question and its messages.
        self.on_question: list[Callable[[str, list[dict[str, Any]]], None]] = []
        self.newest: dict[str, float] = {}  # time of the last request with this question
        listen(host, MODEL_PORT, lambda end: _ModelConnection(self, end))

    @property
    def questions(self) -> list[str]:
        """Return the questions that are being answered."""
        return [visit.question for visit in self.visits]


class _ModelConnection(ServerSideConnection):
    def __init__(self, upstream: SimModelServer, end: SimEnd) -> None:
        super().__init__(end)
        self._upstream = upstream
        self.question = ""  # until it is answered

    def on_closed(self, why: str) -> None:
        upstream = self._upstream
        if upstream.visits.pop(self, self) is None:
            upstream.broken.append((upstream.host.world.now, self.question))

    def on_request(self, body: bytes) -> None:
        """Answer a request: with the list of models, or as `trouble` or the question selects.

        Requests to other paths get 404.
        """
        upstream = self._upstream
        page = self.head.method, self.head.target
        if page == ("GET", "/v1/models"):
            self._send_response(200, b'{"data":[{"id":"sim"}]}')
            return
        if page != ("POST", "/v1/chat/completions"):
            self._refuse(404)
            return
        asked = json.loads(body)
        rows = asked["messages"]
        question = next(_text(row["content"]) for row in reversed(rows) if row["role"] == "user")
        manner = upstream.trouble or _manner(question)
        self.question = question
        upstream.visits[self] = None
        upstream.newest[question] = upstream.host.world.now
        if upstream.doomed:
            upstream.forsaken[question] = None
            upstream.host.world.after(upstream.doomed.pop(0), self.end.abort)
        for listener in upstream.on_question:
            listener(question, rows)
        if manner is ModelBehavior.REFUSE:
            self._refuse(500)
            return
        fields = Headers([(b"content-type", b"text/event-stream")])
        self.put(ResponseHead(self.stream, 200, fields))
        self._answer(manner, rows, question)

    def _answer(self, manner: ModelBehavior, rows: list[dict[str, Any]], question: str) -> None:
        after_tool = rows[-1]["role"] == "tool"
        if manner in CALLS and not after_tool:
            call = calling(("call_0", "phone_ping", {}))
            self._send_chunks([chunk({"content": "Let me see."}), *call, DONE])
            return
        if manner is ModelBehavior.NOTES and (notes := _notes(rows, question)):
            self._send_chunks([*notes, DONE])
            return
        if manner is ModelBehavior.LOSE:
            self._send_chunks([], ModelBehavior.BREAK)
            return
        if manner is ModelBehavior.SLOW_DELTAS:
            self._send_chunks([chunk({"content": LONG_ANSWER_CHUNK + " "})] * MURMURS, ModelBehavior.HANG)
            return
        if manner is ModelBehavior.LONG:
            pieces = [chunk({"content": LONG_ANSWER_CHUNK + " "})] * LONG
        else:
            pieces = [chunk({"content": word + " "}) for word in f"You said {question}".split(" ")]
        if manner is ModelBehavior.NONSENSE:
            pieces[len(pieces) // 2] = b"data: {nonsense\n\n"
        if manner in (ModelBehavior.BREAK, ModelBehavior.HANG):
            self._send_chunks(pieces[: len(pieces) // 2], manner)
            return
        taken = [usage(*TAKEN)] if manner is ModelBehavior.NOTES else []
        self._send_chunks([*pieces, chunk({}, "stop"), *taken, DONE])

    def _refuse(self, status: int) -> None:
        self._upstream.visits.pop(self, None)
        self._send_response(status, b'{"error":{"message":"no"}}')

    def _send_response(self, status: int, body: bytes) -> None:
        fields = Headers([(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))])
        self.put(ResponseHead(self.stream, status, fields), ResponseData(self.stream, body))
        self.put(ResponseEnd(self.stream))

    def _send_chunks(self, pieces: list[bytes], manner: ModelBehavior = ModelBehavior.PLAIN) -> None:
        if self.end.gone:
            return
        if pieces and self.end.unsent == 0:
            if pieces[0] is DONE:  # the client may disconnect from now on
                self._upstream.visits.pop(self, None)
            self.put(ResponseData(self.stream, pieces[0]))
            pieces = pieces[1:]
        if pieces:
            world = self._upstream.host.world
            pause = 1.0 if self.end.unsent else 0.002 if len(pieces) > LONG // 5 else 0.2
            world.after(world.rng.random() * pause, lambda: self._send_chunks(pieces, manner))
        elif manner is ModelBehavior.BREAK:
            self.end.abort()
        elif manner is not ModelBehavior.HANG:
            self.put(ResponseEnd(self.stream))


def _notes(rows: list[dict[str, Any]], question: str) -> list[bytes]:
    """Return the model's next call of tools in an answer with notes; an empty list after the last one."""
    last = max(place for place, row in enumerate(rows) if row["role"] == "user")
    made = sum(bool(row.get("tool_calls")) for row in rows[last:])
    calls: list[list[Any]] = [["phone_ping", {}]]
    if made:
        words = question.partition("#")[2].split()
        calls = [["memory", {"action": "add", "content": word}] for word in words]
    if not calls or made > 1:
        return []
    return [*calling(*((f"call_{made}_{n}", *call) for n, call in enumerate(calls))), usage(*TAKEN)]


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    """Return a chunk of an answer as an event of the stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def calling(*calls: tuple[str, str, Any]) -> list[bytes]:
    """Return the end of an answer with tool calls: for each the id, the tool, and its arguments."""
    told = [
        {"index": n, "id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (identity, name, arguments) in enumerate(calls)
    ]
    return [chunk({"tool_calls": told}), chunk({}, "tool_calls")]


def usage(asked: int, said: int) -> bytes:
    """Return the stream event with the token counts."""
    told = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    return _event({"id": "c", "choices": [], "usage": told})


def _event(told: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def _manner(question: str) -> ModelBehavior:
    return next((manner for manner in ModelBehavior if question.startswith(f"{manner.value}:")), ModelBehavior.PLAIN)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return " ".join(str(part.get("text", "")) for part in content)
