"""A realtime provider that only speaks: one socket for one text (wire terminal-voice 5, the lab's way)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics import strict_json
from svc_proto.engine.client import Fetched, fetch, websocket
from svc_proto.engine.flow import Flow
from svc_proto.engine.socket import Socket
from svc_proto.engine.waits import Bell
from svc_proto.facts import Failure
from svc_proto.schema.members import Members
from svc_proto.voice.contract import (
    AudioChunk,
    AudioDelta,
    AudioSink,
    Dialect,
    Message,
    ProviderError,
    ProviderProblem,
    ProviderReady,
    RealtimeOptions,
    Rendered,
    ResponseDone,
    SpeechRequest,
    TextDelta,
)
from svc_proto.voice.providers.openai import instructions_of

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["OneShotRenderer", "named_refusal"]

CONNECT = 60.0  # s, wire 6.11
SILENCE = 60.0  # s between two messages
MAX_WAITING = 32 * 1024 * 1024  # characters of messages that the sink has no room for yet: minutes of sound
CANNED = "This is a test of the realtime voice. One, two, three."  # wire 5: missing text


class OneShotRenderer:
    """A `Renderer`: what is heard is the model's own answer to the text, as the lab wants it."""

    def __init__(self, engine: Engine, provider: str, make: Callable[[RealtimeOptions], Dialect]) -> None:
        self._engine = engine
        self._provider = provider
        self._make = make

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[Rendered]:
        """Connect, say the text, pass on what comes until the response is over."""
        dialect = self._make(
            RealtimeOptions(
                model=request.model,
                voice=request.voice,
                sample_rate=request.sample_rate,
                instructions=instructions_of(request),
                transcribe=False,
            )
        )
        listener = _Listener(self._engine)
        socket = yield from fetch(
            self._engine, "GET", dialect.url, into=websocket(listener), headers=dialect.headers, within=CONNECT
        )
        if not isinstance(socket, Socket):
            raise named_refusal(self._provider, socket)
        try:
            for message in (*dialect.setup(), *dialect.say(request.text or CANNED), *dialect.respond()):
                socket.send_text(strict_json.dumps(message))
            return (yield from self._listen(dialect, listener, request, sink))
        finally:
            listener.gone = True
            socket.close()

    def _listen(self, dialect: Dialect, listener: _Listener, request: SpeechRequest, sink: AudioSink) -> Flow[Rendered]:
        model, words, heard = request.model, [], 0
        while True:
            for event in dialect.parse((yield from listener.next())):
                match event:
                    case ProviderReady(model=resolved) if resolved:
                        model = resolved
                    case AudioDelta(data=data):
                        heard += len(data)
                        yield from sink.chunk(AudioChunk(data, request.sample_rate))
                    case TextDelta(delta=delta):
                        words.append(delta)
                    case ProviderProblem(message=message, benign=False):
                        raise ProviderError(message)
                    case ResponseDone(status=status):
                        if not heard:
                            raise ProviderError(f"{self._provider} sent no audio ({status})")
                        return Rendered(
                            provider=self._provider,
                            model=model,
                            voice=request.voice,
                            metadata={"sample_rate": request.sample_rate},
                            transcript="".join(words) or None,
                        )
                    case _:
                        pass


def named_refusal(provider: str, answer: Fetched | Failure) -> ProviderError:
    """Why a realtime socket did not open."""
    if isinstance(answer, Failure):
        return ProviderError(f"{provider} cannot be reached: {answer.detail or answer.kind.value}")
    if answer.status == 401:
        return ProviderError(f"{provider} does not accept the configured API key")
    if answer.status == 429:
        return ProviderError(f"{provider} takes no more sessions for now (429)")
    return ProviderError(f"{provider} declined the socket with {answer.status}")


class _Listener:
    """A `SocketHandler` that keeps messages for the flow; nothing is kept once that has gone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[tuple[int, Message]] = deque()
        self._size = 0
        self._end: str | None = None  # why nothing more comes
        self._bell = Bell(engine)
        self.gone = False

    def next(self) -> Flow[Message]:
        """The next message. `ProviderError` when there is none, or none for too long."""
        until = self._engine.now.mono + SILENCE
        while not self._waiting:
            if self._end is not None:
                raise ProviderError(self._end)
            if self._engine.now.mono >= until:
                raise ProviderError("the realtime provider fell silent")
            yield from self._bell.wait(until)
        size, message = self._waiting.popleft()
        self._size -= size
        return message

    def on_open(self, socket: Socket) -> None:
        """The flow has it."""

    def on_text(self, text: str) -> None:
        """Keep an object; what is none says nothing."""
        if self.gone or self._end is not None:
            return
        value = Members.parse(text)
        if value is None:
            return
        self._size += len(text)
        if self._size > MAX_WAITING:
            self._finish("the realtime provider sent more than could be passed on")
            return
        self._waiting.append((len(text), value))
        self._bell.ring()

    def on_binary(self, data: bytes) -> None:
        """No provider sends any."""

    def on_writable(self) -> None:
        """What we say is short."""

    def on_closed(self, code: int, reason: str) -> None:
        """What came before is still there to read."""
        self._finish(f"the realtime provider closed the connection ({code})")

    def _finish(self, why: str) -> None:
        if self._end is None:
            self._end = why
            self._bell.ring()
