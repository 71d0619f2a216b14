"""Realtime server for tests, as OpenAI and xAI document theirs: scripted turns, faults, and recorded requests.

    peer = OpenAiRealtimeServer(turns=[FunctionCallTurn("svc_run_task", {"text": "df"}), SpokenTurn("62 percent.")])

A `response.create` takes the next turn, unless a response is active. Committed audio is transcribed as `HEARD`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

from attrs import frozen

from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.message import Request
from svc_proto.engine.router import RouteKind
from svc_proto.engine.websocket import WebSocketConnection
from tests.support.servers.scripted_service import row
from tests.support.servers.speech_server import Reply, SpeechServer, SpeechServerRequest

Event: TypeAlias = "dict[str, Any]"
HEARD = "how full"


@frozen
class SpokenTurn:
    """Scripted turn in which the model speaks a text."""

    text: str
    sound: bytes = b"\x10\x00" * 2_400  # a tenth of a second
    pieces: int = 2
    pause: float = 0.0  # s before each piece
    forgets_done: bool = False  # no `response.done` follows


@frozen
class FunctionCallTurn:
    """Scripted turn in which the model calls a function."""

    name: str
    arguments: dict[str, Any]
    before: str = ""  # text before the call
    call_id: str = "call_1"


@frozen
class FailedTurn:
    """Scripted turn whose response fails with a message."""

    message: str = "Rate limit reached"


@frozen
class DroppedTurn:
    """Scripted turn in which the server drops the socket: with a close frame of this code, or None without one."""

    code: int | None = None


@frozen
class RawMessageTurn:
    """Scripted turn that sends the given messages: text unchanged, any other value as JSON."""

    events: tuple[Any, ...]  # text is sent unchanged


Turn: TypeAlias = "SpokenTurn | FunctionCallTurn | FailedTurn | DroppedTurn | RawMessageTurn"


class OpenAiRealtimeServer(SpeechServer):
    """Scripted realtime server of OpenAI. `sessions` are its WebSockets, the newest last; they share the `turns`."""

    paths: ClassVar[tuple[str, ...]] = ("POST /v1/audio/speech", "POST /v1/audio/transcriptions")
    greeting = "session.created"

    def __init__(self, replies: Iterable[Reply] = (), turns: Iterable[Turn] = ()) -> None:
        super().__init__(replies, [row("GET", "/v1/realtime", self._opened, kind=RouteKind.WEBSOCKET)])
        self.turns = list(turns)
        self.sessions: list[RealtimeSession] = []

    def _opened(self, request: Request) -> RealtimeSession:
        self.sessions.append(RealtimeSession(self, SpeechServerRequest.of(request)))
        return self.sessions[-1]

    def understanding(self) -> Iterable[tuple[str, Event]]:
        """Return the last word of the type, and the members, of each transcription event before the final one."""
        return [("delta", {"content_index": 0, "delta": HEARD})]


class XaiRealtimeServer(OpenAiRealtimeServer):
    """Scripted realtime server of xAI: another dialect of the protocol, with other HTTP routes."""

    paths = ("POST /v1/tts", "POST /v1/stt", "GET /v1/tts/voices", "GET /v1/custom-voices")
    greeting = "conversation.created"

    def understanding(self) -> Iterable[tuple[str, Event]]:
        """Return the last word of the type, and the members, of two events with the whole transcript so far."""
        return [("updated", {"transcript": words}) for words in (HEARD[:4], HEARD)]


class RealtimeSession:
    """Handler of a realtime WebSocket. `said` are all messages of the client."""

    def __init__(self, peer: OpenAiRealtimeServer, asked: SpeechServerRequest) -> None:
        self._peer = peer
        self._engine = peer.engine
        self.asked = asked
        self.said: list[Event] = []
        self.sound = bytearray()  # that was appended since the last commit
        self.heard: list[bytes] = []  # committed sound
        self.closed: int | None = None
        self.socket: WebSocketConnection
        self._numbers = 0
        self._playing: Task | None = None  # the task of the response under way

    # --- for tests ---

    @property
    def kinds(self) -> list[str]:
        """Return the types of the client's messages; adjacent appends count as one."""
        kinds: list[str] = []
        for message in self.said:
            kind = str(message["type"])
            if not kinds or kind != kinds[-1] or kind != "input_audio_buffer.append":
                kinds.append(kind)
        return kinds

    def send_event(self, kind: str, **fields: Any) -> None:
        """Send an event of this type and members, with a new event id."""
        self.socket.send_text(json.dumps({"type": kind, "event_id": self._number("event"), **fields}))

    # --- SocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        self.socket = socket
        self.send_event(self._peer.greeting, session={"id": "sess_1", "model": "resolved-model"})

    def on_text(self, text: str) -> None:
        message = json.loads(text)
        self.said.append(message)
        handler = self._handlers.get(str(message["type"]))
        if handler is None:
            self._refuse(f"Invalid value: {message['type']!r}", "invalid_value")
        else:
            handler(self, message)

    def on_binary(self, data: bytes) -> None:
        raise AssertionError("a realtime client sends text")

    def on_writable(self) -> None:
        pass

    def on_closed(self, code: int, reason: str) -> None:
        self.closed = code
        if self._playing is not None:
            self._playing.cancel()

    # --- messages of the client ---

    def _update(self, message: Event) -> None:
        self.send_event("session.updated", session={**message["session"], "model": "resolved-model"})

    def _append(self, message: Event) -> None:
        self.sound += b64decode(message["audio"], validate=True)

    def _commit(self, message: Event) -> None:
        if not self.sound:
            self._refuse("Error committing input audio buffer: buffer too small.", "input_audio_buffer_commit_empty")
            return
        self.heard.append(bytes(self.sound))
        self.sound.clear()
        item = self._number("item")
        self.send_event("input_audio_buffer.committed", item_id=item)
        prefix = "conversation.item.input_audio_transcription"
        for kind, told in self._peer.understanding():
            self.send_event(f"{prefix}.{kind}", item_id=item, **told)
        self.send_event(f"{prefix}.completed", item_id=item, content_index=0, transcript=HEARD)

    def _clear(self, message: Event) -> None:
        self.sound.clear()
        self.send_event("input_audio_buffer.cleared")

    def _create_item(self, message: Event) -> None:
        item = message["item"]
        self.send_event("conversation.item.added", item={"id": self._number("item"), **item})
        if item["type"] == "force_message":
            self._play(SpokenTurn(item["content"][0]["text"]))

    def _create_response(self, message: Event) -> None:
        if self._playing is not None and not self._playing.done:
            self._refuse("Conversation already has an active response", "conversation_already_has_active_response")
            return
        self._play(self._peer.turns.pop(0) if self._peer.turns else SpokenTurn("The script is over."))

    def _cancel(self, message: Event) -> None:
        if self._playing is None or self._playing.done:
            self._refuse("Cancellation failed: no active response found", "response_cancel_not_active")
            return
        self._playing.cancel()
        self._done("resp_cancelled", "cancelled", [])

    _handlers: ClassVar[dict[str, Callable[[RealtimeSession, Event], None]]] = {
        "session.update": _update, "input_audio_buffer.append": _append, "input_audio_buffer.commit": _commit,
        "input_audio_buffer.clear": _clear, "conversation.item.create": _create_item,
        "response.create": _create_response, "response.cancel": _cancel
    }  # fmt: skip

    # --- turns of the model ---

    def _play(self, turn: Turn) -> None:
        self._playing = self._engine.spawn(self._respond(turn))

    def _respond(self, turn: Turn) -> Flow[None]:
        if isinstance(turn, RawMessageTurn):
            for event in turn.events:
                self.socket.send_text(event if isinstance(event, str) else json.dumps(event))
            return
        response = self._number("resp")
        self.send_event("response.created", response={"id": response, "status": "in_progress", "output": []})
        match turn:
            case FailedTurn(message=message):
                error = {"type": "requests", "code": "rate_limit_exceeded", "message": message}
                details = {"type": "failed", "error": error}
                self._done(response, "failed", [], status_details=details)
            case FunctionCallTurn():
                if turn.before:
                    yield from self._speak(response, SpokenTurn(turn.before))
                self._call(response, turn)
            case DroppedTurn(code=code):
                self.send_event("response.output_audio_transcript.delta", response_id=response, delta="Hel")
                yield from sleep(self._engine, 0.05)
                if code is None:
                    self.socket._carrier.abort()
                else:
                    self.socket.close(code, "over")
            case SpokenTurn():
                item = yield from self._speak(response, turn)
                if not turn.forgets_done:
                    self._done(response, "completed", [item])

    def _speak(self, response: str, said: SpokenTurn) -> Flow[Event]:
        item = {"id": self._number("item"), "type": "message", "role": "assistant", "content": []}
        here = {"response_id": response, "item_id": item["id"], "output_index": 0, "content_index": 0}
        self.send_event("response.output_item.added", response_id=response, output_index=0, item=item)
        for number in range(said.pieces):
            yield from sleep(self._engine, said.pause)
            words = said.text[_share(len(said.text), number, said.pieces)]
            self.send_event("response.output_audio_transcript.delta", **here, delta=words)
            samples = len(said.sound) // 2
            part = _share(samples, number, said.pieces)
            sound = said.sound[2 * part.start : 2 * part.stop]
            self.send_event("response.output_audio.delta", **here, delta=b64encode(sound).decode())
        self.send_event("response.output_audio.done", **here)
        self.send_event("response.output_audio_transcript.done", **here, transcript=said.text)
        self.send_event("response.output_item.done", response_id=response, output_index=0, item=item)
        return item

    def _call(self, response: str, called: FunctionCallTurn) -> None:
        arguments = json.dumps(called.arguments)
        item = {"id": self._number("item"), "type": "function_call", "call_id": called.call_id, "name": called.name}
        here = {"response_id": response, "item_id": item["id"], "output_index": 0, "call_id": called.call_id}
        empty = {**item, "status": "in_progress", "arguments": ""}
        full = {**item, "status": "completed", "arguments": arguments}
        self.send_event("response.output_item.added", response_id=response, output_index=0, item=empty)
        self.send_event("response.function_call_arguments.delta", **here, delta=arguments)
        self.send_event("response.function_call_arguments.done", **here, arguments=arguments)
        self.send_event("response.output_item.done", response_id=response, output_index=0, item=full)
        self._done(response, "completed", [full])

    def _done(self, response: str, status: str, output: list[Event], **more: Any) -> None:
        self.send_event("response.done", response={"id": response, "status": status, "output": output, **more})

    def _refuse(self, message: str, code: str) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": message, "param": None}
        self.send_event("error", error=error)

    def _number(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}_{len(self._peer.sessions)}_{self._numbers}"


def _share(size: int, number: int, pieces: int) -> slice:
    return slice(size * number // pieces, size * (number + 1) // pieces)
