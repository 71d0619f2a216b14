"""Stream of speech for the phone's app: pieces of a growing text in, PCM out (`/api/audio/speak-stream`).

| direction | message                                                                                   |
|-----------|-------------------------------------------------------------------------------------------|
| client    | `{"text": …}` for the next piece of the text, `{"done": true}` after the last one           |
| client    | `{"stop": true}` to end the stream at once                                                  |
| server    | `{"type": "start", "sample_rate", "channels"}`, then 16-bit PCM as binary messages          |
| server    | `{"type": "end"}` after the last sound or `stop`; `{"type": "fallback"}`: it failed before   |

The relay renders each passage, mostly one or more whole sentences, in a voice output session of its own (wire
terminal-voice 4.6 and 4.7). A failure before the first sound is a `fallback`, after which the client can use
`/api/audio/speak`. A later one closes the WebSocket with 1011.
"""

import re

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient

__all__ = ["SpeechStream"]

SESSION, SOCKETS = "/voice/output/session", "/voice/output/"  # of the relay
CALL_TIMEOUT = 10.0  # s for a session and for its WebSocket
PASSAGE_TIMEOUT = 90.0  # s for the sound of a passage, as clients of the relay wait
TEXT_TIMEOUT = 300.0  # s without a message of the client, while nothing is rendered
MAX_PASSAGE = 2_000  # characters; the relay cuts a text at 5,000
MAX_TEXT = 100_000  # characters that wait for rendering
NORMAL, UNSUPPORTED_DATA, POLICY_VIOLATION, TOO_LARGE, FAILED = 1000, 1003, 1008, 1009, 1011  # RFC 6455 section 7.4.1
_SENTENCE_END = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*\s|[\u3002\uff01\uff1f]|\n")


class SpeechStream:
    """WebSocket of a client that sends a growing text and receives its speech."""

    def __init__(self, engine: Engine, relay: ServiceClient, credential_id: str) -> None:
        self._engine = engine
        self._relay = relay
        self._credential_id = credential_id
        self._news = Condition(engine)
        self._text = ""  # that is not rendered yet
        self._is_complete = False  # no more text follows
        self._rate = 0  # samples per second of the stream; 0 before the first sound
        self._passage: _Passage | None = None
        self._speaking: Task
        self.client: WebSocketConnection

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Start the task that renders the text of the client."""
        self.client = socket
        if self._credential_id:
            self._engine.revocables[self] = self._credential_id
        self._speaking = self._engine.spawn(self._speak())

    def on_text(self, text: str) -> None:
        """Handle a message of the client: add text, or stop; close the WebSocket if too much text waits."""
        message = JsonObject.parse_or_empty(text)
        if message.get("stop") is True:
            self._speaking.cancel()
            self._end("end")
            return
        if not self._is_complete:
            self._text += message.text("text")
            self._is_complete = message.get("done") is True
        if len(self._text) > MAX_TEXT:
            self.client.close(TOO_LARGE, f"more than {MAX_TEXT} characters wait for rendering")
        self._news.notify_all()

    def on_binary(self, data: bytes) -> None:
        """Close the connection: the client's messages are text."""
        self.client.close(UNSUPPORTED_DATA, "messages are text")

    def on_writable(self) -> None:
        """Resume reading from the relay: the client can receive again."""
        if self._passage is not None:
            self._passage.resume()

    def on_closed(self, code: int, reason: str) -> None:
        """Stop rendering."""
        self._engine.revocables.pop(self, None)
        self._speaking.cancel()

    # --- Revocable ---

    def revoke(self, refused: Refused) -> None:
        """Close the WebSocket: the sign-in of the client is over."""
        self.client.close(POLICY_VIOLATION, refused.message)

    # --- of a passage ---

    def add_sound(self, pcm: bytes, rate: int) -> bool:
        """Send PCM to the client, after a `start` message for the first with a positive sample rate.

        Send nothing and return False if the rate is not positive, or another than that of the `start` message.
        """
        if rate <= 0:
            return False
        if not self._rate:
            self._rate = rate
            self.client.send_text(strict_json.dumps({"type": "start", "sample_rate": rate, "channels": 1}))
        if rate == self._rate:
            self.client.send_text(pcm, binary=True)
        return rate == self._rate

    # --- helpers ---

    def _speak(self) -> Flow[None]:
        """Render passage after passage, until the complete text is rendered, a passage fails, or no text arrives."""
        while True:
            passage = self._next_passage()
            if passage:
                if not (yield from self._speak_passage(passage)):
                    if self._rate:
                        self.client.close(FAILED, "the speech broke off")
                    else:
                        self._end("fallback")
                    return
            elif self._is_complete:
                self._end("end")
                return
            elif isinstance((yield from self._news.wait(self._engine.now.mono + TEXT_TIMEOUT)), Failure):
                self.client.close(NORMAL, "no text arrived")
                return

    def _next_passage(self) -> str:
        """Remove and return the next passage of the text that has arrived; empty if there is none yet.

        It has at most `MAX_PASSAGE` characters, and ends with a sentence. If none ends within them, it is cut there, or
        at the end of a complete text.
        """
        while self._text:
            ends = [found.end() for found in _SENTENCE_END.finditer(self._text, 0, MAX_PASSAGE)]
            size = ends[-1] if ends else MAX_PASSAGE
            if not ends and len(self._text) < MAX_PASSAGE and not self._is_complete:
                break
            passage, self._text = self._text[:size], self._text[size:]
            if passage.strip():
                return passage
        return ""

    def _speak_passage(self, text: str) -> Flow[bool]:
        """Have the relay render a text, and wait for the end of its sound.

        Return False if the relay fails, or has not finished within `PASSAGE_TIMEOUT`.
        """
        self._passage = passage = _Passage(self, self._engine)
        try:
            session = yield from self._relay.json(self._engine, "POST", SESSION, within=CALL_TIMEOUT)
            path = session.text("websocket_path")
            if not path.startswith(SOCKETS):
                return False
            socket = yield from self._relay.socket(self._engine, path, passage, within=CALL_TIMEOUT)
            socket.send_text(strict_json.dumps({"type": "response.create", "text": text}))
            until = self._engine.now.mono + PASSAGE_TIMEOUT
            while passage.is_complete is None and self._engine.now.mono < until:
                yield from passage.news.wait(until)
            return passage.is_complete is True
        except ServiceCallError:
            return False
        finally:
            self._passage = None
            passage.close()

    def _end(self, kind: str) -> None:
        self.client.send_text(strict_json.dumps({"type": kind}))
        self.client.close(NORMAL, "")


class _Passage(WebSocketHandler):
    """Handler of the WebSocket to the relay that renders one passage."""

    def __init__(self, stream: SpeechStream, engine: Engine) -> None:
        self.news = Condition(engine)
        self.is_complete: bool | None = None  # None while it is rendered; False: it failed
        self._stream = stream
        self._has_begun = False  # an error before that means that the text has no words
        self._socket: WebSocketConnection | None = None

    def on_open(self, socket: WebSocketConnection) -> None:
        """Store the WebSocket, to pause and close it."""
        self._socket = socket

    def on_text(self, text: str) -> None:
        """Handle an event of the session: sound, the end of the sound, or a failure.

        An error before the response has started counts as the end: nothing in the passage can be rendered.
        """
        event = JsonObject.parse_or_empty(text)
        match event.text("type"):
            case "voice.audio.delta":
                if not self._stream.add_sound(event.binary("audio_base64"), event.integer("sample_rate") or 0):
                    self._finish(complete=False)
                elif not self._stream.client.writable and self._socket is not None:
                    self._socket.set_read_paused(True)
            case "voice.audio.done":
                self._finish(complete=True)
            case "voice.response.started":
                self._has_begun = True
            case "voice.error":
                self._finish(complete=not self._has_begun)

    def on_closed(self, code: int, reason: str) -> None:
        """Handle the end of the session, which is a failure unless the end of the passage was received before."""
        self._socket = None
        self._finish(complete=False)

    def resume(self) -> None:
        """Read from the relay again."""
        if self._socket is not None:
            self._socket.set_read_paused(False)

    def close(self) -> None:
        """Close the WebSocket to the relay, unless it has ended."""
        if self._socket is not None:
            self._socket.close(NORMAL, "")

    def _finish(self, *, complete: bool) -> None:
        if self.is_complete is None:
            self.is_complete = complete
            self.news.notify_all()
