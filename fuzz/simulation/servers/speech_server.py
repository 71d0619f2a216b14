"""Speech vendor of the simulation: OpenAI's realtime and HTTP protocols, with faults.

The user's text selects the behavior: `talk: …` is answered, any other text becomes a task for the agent, and `later: …`
one in the background. A session without functions reads its text aloud. All samples of a sound have the number of their
text as value. A recording is transcribed as `talk: voice` and the number.
The vendor is none of our servers: a listener of the network with the server's role of HTTP and WebSocket.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from fuzz.simulation.servers.model_server import ModelBehavior, SimModelServer
from runtimes.sim.connection import SimEnd
from runtimes.sim.host import SimHost
from svc_proto.wire.events import (
    AcceptWebSocket,
    CloseWebSocket,
    Event,
    Headers,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    TextMessage,
    WebSocketClosed,
)
from tests.support.sim_http import ServerSideConnection, listen

PROVIDER_PORT, SPEECH_PORT = 9001, 9002
NUMBER = re.compile(r"voice (\d+)")
SAMPLES = 1_200  # of one piece of sound, a twentieth of a second
PIECES = 6  # of a text that is read over HTTP
HEAD = 44  # bytes of a WAV file before its sound
PAUSE = 0.3  # s at most between two pieces
ABRUPT = 0.5  # share of ends while no response is under way
ASTRAY = 0.1  # share of answers to be read aloud that are replaced by another text


def sample_value(text: str) -> int:
    """Return the value of all samples for a spoken text."""
    found = NUMBER.search(text)
    return int(found[1]) % 30_000 if found else 0


def build_recording(number: int, samples: int = SAMPLES) -> bytes:
    """Build a recording whose samples all have the value `number`."""
    return number.to_bytes(2, "little") * samples


class SimSpeechServer:
    """Listener of the simulated speech vendor, with the faults of the simulated model."""

    def __init__(self, host: SimHost, upstream: SimModelServer) -> None:
        self.host = host
        self._upstream = upstream
        self.doomed: list[float] = []  # seconds from the next message to the end of its socket
        self.lost: list[tuple[float, tuple[int, ...]]] = []  # when a conversation ended, and the numbers in it
        self.failed_at = -1.0  # when a request over HTTP last failed
        listen(host, PROVIDER_PORT, lambda end: _RealtimeConnection(self, end))
        listen(host, SPEECH_PORT, lambda end: _SpeechRequestConnection(self, end))

    @property
    def fault_mode(self) -> ModelBehavior | None:
        """Return the model's present fault, which applies to all answers; None without a fault."""
        return self._upstream.trouble


class _SpeechRequestConnection(ServerSideConnection):
    """Connection for `/audio/speech` and `/audio/transcriptions`."""

    def __init__(self, provider: SimSpeechServer, end: SimEnd) -> None:
        super().__init__(end)
        self._provider = provider
        self._world = provider.host.world

    def on_request(self, body: bytes) -> None:
        """Answer a request for speech or for a transcription."""
        trouble = self._provider.fault_mode
        if trouble is ModelBehavior.REFUSE:
            self._provider.failed_at = self._world.now
            self.answer(503, b"no")
        elif self.head.target.endswith("/audio/speech"):
            pcm = build_recording(sample_value(json.loads(body)["input"]))
            self.put(ResponseHead(self.stream, 200, Headers([(b"content-type", b"audio/pcm")])))
            self._speak([pcm] * PIECES)
        else:
            sound = body[body.index(b"RIFF") + HEAD :]
            self.answer(200, b'{"text": "voice %d"}' % int.from_bytes(sound[:2], "little"))

    def _speak(self, pieces: list[bytes]) -> None:
        trouble = self._provider.fault_mode
        if self.end.gone:
            return
        if trouble in (ModelBehavior.BREAK, ModelBehavior.HANG):
            self._provider.failed_at = self._world.now
            if trouble is ModelBehavior.BREAK:
                self.end.abort()
            return
        if not pieces:
            self.put(ResponseEnd(self.stream))
            return
        self.put(ResponseData(self.stream, pieces[0]))
        self._world.after(self._world.rng.random() * PAUSE, lambda: self._speak(pieces[1:]))


class _RealtimeConnection(ServerSideConnection):
    """Realtime WebSocket of the vendor."""

    def __init__(self, provider: SimSpeechServer, end: SimEnd) -> None:
        super().__init__(end)
        self._provider = provider
        self._world = provider.host.world
        self._numbers = 0
        self._said = ""  # by the user, until it is answered
        self._heard = b""  # recorded sound, until it is committed
        self._functions = False
        self._playing = ""  # the response under way
        self._left = False
        self._numbered: list[int] = []  # numbers of the user's texts

    def on_closed(self, why: str) -> None:
        """Record the end of a conversation."""
        provider, self._playing = self._provider, ""
        # A session without functions only reads a text aloud.
        if self._functions:
            provider.lost.append((self._world.now, tuple(self._numbered)))

    def _close(self) -> None:
        """Disconnect, with a close frame or without."""
        if self.end.gone:
            return
        if self._playing or self._world.rng.random() < ABRUPT:
            self.end.abort()
            return
        self._send_websocket_event(CloseWebSocket(self.stream, 1001))
        self._flush()
        self._left = True

    def on_readable(self) -> None:
        """Read and handle the messages of the client."""
        while (data := self.end.read()) is not None:
            if not data:
                self._playing = ""
                self.end.close_write()
                return
            self._codec.receive_data(data)
        while (event := self._codec.next_event()) is not None:
            match event:
                case RequestHead():
                    self.head = event
                    self._begin()
                case TextMessage(text=text):
                    self._on_message(json.loads(text))
                case WebSocketClosed():
                    self._playing = ""
                    self._flush()
                    self.end.close_write()
                    return
                case _:
                    pass
        self._flush()

    def _begin(self) -> None:
        if self._provider.fault_mode is ModelBehavior.REFUSE:
            self.answer(503, b"no")
        else:
            self._send_websocket_event(AcceptWebSocket(self.stream))
            self._send_event("session.created", session={"id": "sess", "model": "m"})

    # --- messages of the client ---

    def _on_message(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "session.update":
                self._functions = bool(message["session"].get("tools"))
                self._send_event("session.updated", session={"model": "m"})
            case "conversation.item.create":
                item = message["item"]
                if item["type"] == "message":
                    self._said = item["content"][0]["text"]
                    self._numbered += map(int, NUMBER.findall(self._said))
                    if self._provider.doomed:
                        self._world.after(self._provider.doomed.pop(0), self._close)
            case "input_audio_buffer.append":
                self._heard += base64.b64decode(message["audio"])
            case "input_audio_buffer.clear":
                self._heard = b""
            case "input_audio_buffer.commit":
                self._transcribe()
            case "response.create":
                self._respond(str(message.get("response", {}).get("instructions", "")))
            case "response.cancel":
                if self._playing:
                    self._done("cancelled", [])
                else:
                    self._refuse("Cancellation failed: no active response found", "response_cancel_not_active")
            case _:
                pass

    def _transcribe(self) -> None:
        """Transcribe the recording: its number is in the last sample."""
        number, self._heard = int.from_bytes(self._heard[-2:], "little"), b""
        self._said = f"talk: voice {number}"
        self._numbered.append(number)
        self._send_event("conversation.item.input_audio_transcription.completed", item_id="item", transcript=self._said)

    def _respond(self, instructions: str) -> None:
        if self._playing:
            self._refuse("Conversation already has an active response", "conversation_already_has_active_response")
            return
        self._playing = response = self._next_id("resp")
        said, self._said = self._said, ""
        self._send_event("response.created", response={"id": response, "status": "in_progress", "output": []})
        if instructions and self._functions:
            astray = self._world.rng.random() < ASTRAY
            self._speak("I would rather not." if astray else instructions.partition("\n\n")[2] or instructions)
        elif not said:
            self._speak("I go on with that.")
        elif said.startswith("talk:") or not self._functions:
            self._speak(said)
        else:
            self._call(said)

    def _call(self, said: str) -> None:
        later = said.startswith("later: ")
        arguments = {"text": said.removeprefix("later: "), **({"mode": "background"} if later else {})}
        item = {"id": self._next_id("item"), "type": "function_call", "call_id": self._next_id("call")}
        item |= {"name": "svc_run_task", "status": "completed", "arguments": json.dumps(arguments)}
        self._send_event("response.output_item.done", response_id=self._playing, output_index=0, item=item)
        self._done("completed", [item])

    # --- responses ---

    def _speak(self, text: str) -> None:
        words = text.split(" ")
        half = len(words) // 2
        pieces = [" ".join(words[:half]) + " ", " ".join(words[half:])] if half else [text]
        sound = sample_value(text).to_bytes(2, "little") * SAMPLES
        self._go_on(self._playing, self._pieces(self._playing, pieces, base64.b64encode(sound).decode()))

    def _pieces(self, response: str, pieces: list[str], sound: str) -> Iterator[None]:
        here = {"response_id": response, "item_id": "item", "output_index": 0, "content_index": 0}
        for words in pieces:
            self._send_event("response.output_audio_transcript.delta", **here, delta=words)
            self._send_event("response.output_audio.delta", **here, delta=sound)
            yield
        self._send_event("response.output_audio.done", **here)
        self._done("completed", [])

    def _go_on(self, response: str, pieces: Iterator[None]) -> None:
        """Send one piece after another, with a pause before each."""
        if self._playing != response or self.end.gone:
            return
        trouble = self._provider.fault_mode
        if trouble is ModelBehavior.BREAK:
            self.end.abort()
            return
        if trouble is ModelBehavior.HANG:
            return
        more = next(pieces, self) is None
        self._flush()
        if more:
            self._world.after(self._world.rng.random() * PAUSE, lambda: self._go_on(response, pieces))

    def _done(self, status: str, output: list[dict[str, Any]]) -> None:
        response, self._playing = self._playing, ""
        self._send_event("response.done", response={"id": response, "status": status, "output": output})

    def _refuse(self, message: str, code: str) -> None:
        self._send_event("error", error={"type": "invalid_request_error", "code": code, "message": message})

    def _send_event(self, kind: str, **fields: Any) -> None:
        self._send_websocket_event(
            TextMessage(self.stream, json.dumps({"type": kind, "event_id": self._next_id("event"), **fields}))
        )

    def _send_websocket_event(self, event: Event) -> None:
        if not self.end.gone and not self._left:
            self._codec.send(event)

    def _flush(self) -> None:
        if not self.end.gone and (data := self._codec.data_to_send()):
            self.end.send(data)

    def _next_id(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}_{self._numbers}"
