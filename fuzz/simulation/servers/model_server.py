"""Simulated model server: it repeats the question, slowly, and fails on request."""

import json
from collections.abc import Callable
from enum import Enum
from typing import Any

from fuzz.simulation.servers.model_deviations import ModelDeviation
from fuzz.simulation.servers.model_script import ModelRound, calling, chunk, round_of, usage
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
    # JSON behind the question's number sign: see `fuzz.simulation.servers.model_script.ModelRound`
    SCRIPT = "script"


CALLS = (ModelBehavior.TOOL, ModelBehavior.LOSE)


class SimModelServer:
    """Listener of the simulated model; `trouble`, or else the question, selects the behavior of an answer.

    A model named in `deviations` gets the replies defined there instead.
    """

    def __init__(self, host: SimHost) -> None:
        self.host = host
        self.trouble: ModelBehavior | None = None
        self.asked = 0
        self.visits: dict[_ModelConnection, None] = {}  # connections with an unfinished answer
        self.doomed: list[float] = []  # seconds from the next question to the end of its connection
        self.forsaken: dict[str, None] = {}  # questions whose connection was to end early
        self.broken: list[tuple[float, str]] = []  # when an answer was cut off, and its question
        # Called with each question and its messages.
        self.on_question: list[Callable[[str, list[dict[str, Any]]], None]] = []
        self.newest: dict[str, float] = {}  # time of the last request with this question
        self.deviations: dict[str, ModelDeviation] = {}  # by name of the model
        self.deviating: dict[str, list[float]] = {}  # by name of the model, when each reply to it ended
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
        """Answer a request: with the list of models, or as the model's deviation, `trouble` or the question selects.

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
        if asked["model"] in upstream.deviations:
            self._deviate(asked)
            return
        upstream.asked += 1
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
        part = round_of(rows, question) if manner is ModelBehavior.SCRIPT else None
        status = 500 if manner is ModelBehavior.REFUSE else 200 if part is None else part.status
        if status != 200:
            self._refuse(status)
            return
        fields = Headers([(b"content-type", b"text/event-stream")])
        self.put(ResponseHead(self.stream, 200, fields))
        if part is None:
            self._answer(manner, rows, question)
        else:
            self._execute(part)

    def _deviate(self, asked: dict[str, Any]) -> None:
        upstream, model = self._upstream, asked["model"]
        times = upstream.deviating.setdefault(model, [])
        reply = upstream.deviations[model].reply(asked, len(times))
        times.append(upstream.host.world.now)
        self.put(ResponseHead(self.stream, reply.status, Headers(reply.fields)))
        self.put(*(ResponseData(self.stream, piece) for piece in reply.pieces))
        if reply.cut:
            upstream.host.world.after(0.1, self.end.abort)
            times[-1] += 0.1
        else:
            self.put(ResponseEnd(self.stream))

    def _execute(self, part: ModelRound) -> None:
        words = [chunk(delta) for delta in part.deltas]
        if part.hang:
            self._send_chunks(words, ModelBehavior.HANG)
            return
        ending = [*part.ending(), DONE]
        self._send_chunks([*words, *ending], rest=(len(ending) if part.wait else -1, part.wait))

    def _answer(self, manner: ModelBehavior, rows: list[dict[str, Any]], question: str) -> None:
        after_tool = rows[-1]["role"] == "tool"
        if manner in CALLS and not after_tool:
            call = calling(("call_0", "phone_ping", {}))
            self._send_chunks([chunk({"content": "Let me see."}), *call, DONE])
            return
        if manner is ModelBehavior.NOTES and (notes := _notes(rows, question)):
            self._send_chunks([*notes.ending(), DONE])
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

    def _send_chunks(
        self, pieces: list[bytes], manner: ModelBehavior = ModelBehavior.PLAIN, rest: tuple[int, float] = (-1, 0.0)
    ) -> None:
        if self.end.gone:
            return
        if len(pieces) == rest[0]:
            self._upstream.host.world.after(rest[1], lambda: self._send_chunks(pieces, manner))
            return
        if pieces and self.end.unsent == 0:
            if pieces[0] is DONE:  # the client may disconnect from now on
                self._upstream.visits.pop(self, None)
            self.put(ResponseData(self.stream, pieces[0]))
            pieces = pieces[1:]
        if pieces:
            world = self._upstream.host.world
            pause = 1.0 if self.end.unsent else 0.002 if len(pieces) > LONG // 5 else 0.2
            world.after(world.rng.random() * pause, lambda: self._send_chunks(pieces, manner, rest))
        elif manner is ModelBehavior.BREAK:
            self.end.abort()
        elif manner is not ModelBehavior.HANG:
            self.put(ResponseEnd(self.stream))


def _notes(rows: list[dict[str, Any]], question: str) -> ModelRound | None:
    last = max(place for place, row in enumerate(rows) if row["role"] == "user")
    made = sum(bool(row.get("tool_calls")) for row in rows[last:])
    calls: list[list[Any]] = [["phone_ping", {}]]
    if made:
        words = question.partition("#")[2].split()
        calls = [["memory", {"action": "add", "content": word}] for word in words]
    return ModelRound(calls=calls, usage=[*TAKEN], number=made) if calls and made <= 1 else None


def _manner(question: str) -> ModelBehavior:
    return next((manner for manner in ModelBehavior if question.startswith(f"{manner.value}:")), ModelBehavior.PLAIN)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return " ".join(str(part.get("text", "")) for part in content)
