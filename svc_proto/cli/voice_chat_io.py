"""Ends of a voice chat at a desktop: keyboard, microphone, loudspeaker, the relay's WebSocket; and their events."""

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, frozen

from svc_proto.cli.error_text import sanitize_line
from svc_proto.engine.channel import Channel
from svc_proto.engine.child_process import ChildHandler, ChildProcess, spawn
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Accepted, Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.limits import DEFAULT_LIMITS, MAX_TEXT

__all__ = [
    "RelayEventHandler",
    "InputEnded",
    "RelayEvent",
    "KeyboardChannel",
    "TypedLine",
    "ConnectionLost",
    "RecorderProcess",
    "VoiceChatEvent",
    "RecorderEnded",
    "PlayerProcess",
    "LineTooLong",
    "PendingAnswers",
]

MAX_BYTES = 4 * MAX_TEXT  # of a line of the keyboard at most
PLAYBACK_TIMEOUT = 900.0  # s


@frozen
class TypedLine:
    """Event: the user has typed a line."""

    text: str


@frozen
class LineTooLong:
    """Event: the user has typed a line that is too long to be sent."""


@frozen
class InputEnded:
    """Event: standard input has ended."""


@frozen
class RecorderEnded:
    """Event: the recorder has ended."""


@frozen
class RelayEvent:
    """Event: a message of the voice session has arrived from the relay."""

    event: JsonObject


@frozen
class ConnectionLost:
    """Event: the WebSocket to the relay has ended."""

    why: str


VoiceChatEvent: TypeAlias = "TypedLine | LineTooLong | InputEnded | RecorderEnded | RelayEvent | ConnectionLost"
EventCallback: TypeAlias = Callable[["VoiceChatEvent"], None]


class KeyboardChannel(Channel):
    """Channel of standard input, which emits its lines and its end as events."""

    __slots__ = ("_line", "_notify")

    def __init__(self, engine: Engine, fact: Accepted, notify: EventCallback) -> None:
        super().__init__(engine, fact.ch, DEFAULT_LIMITS)
        self._notify = notify
        self._line = b""  # that has no end yet

    def received(self, data: bytes) -> None:
        """Emit the lines that are complete, and store the rest."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._buffer(end)
            self._emit_line()
        self._buffer(rest)

    def read_closed(self) -> None:
        """Emit the last line, which may lack its end, and the end of input."""
        if self._line:
            self._emit_line()
        self._notify(InputEnded())

    def stop(self) -> None:
        """Do nothing, so that the channel stays open while the process stops."""

    def _buffer(self, piece: bytes) -> None:
        if len(self._line) <= MAX_BYTES:  # the rest of a line over the limit is dropped
            self._line += piece[: MAX_BYTES + 1]

    def _emit_line(self) -> None:
        line, self._line = self._line, b""
        text = line.decode("utf-8", "replace").strip()
        self._notify(LineTooLong() if len(line) > MAX_BYTES or len(text) > MAX_TEXT else TypedLine(text))


class RelayEventHandler(WebSocketHandler):
    """Handler of the WebSocket that carries the events of the relay."""

    def __init__(self, notify: EventCallback) -> None:
        self._notify = notify

    def on_open(self, socket: WebSocketConnection) -> None:
        """Do nothing: the flow has the WebSocket."""

    def on_text(self, text: str) -> None:
        """Report a JSON object as an event; ignore any other text."""
        value = JsonObject.parse(text)
        if value is not None:
            self._notify(RelayEvent(value))

    def on_closed(self, code: int, reason: str) -> None:
        """Report the lost connection."""
        self._notify(ConnectionLost(sanitize_line(reason) or f"code {code}"))


class RecorderProcess:
    """`ChildHandler` of the recorder."""

    def __init__(self, on_chunk: Callable[[bytes], None], notify: EventCallback) -> None:
        self._on_chunk = on_chunk
        self._notify = notify

    def on_output(self, data: bytes) -> None:
        """Pass the recorded sound to the callback."""
        self._on_chunk(data)

    def on_exit(self, status: int | None) -> None:
        """Report that the recorder has ended."""
        self._notify(RecorderEnded())


class PlayerProcess(ChildHandler):
    """`ChildHandler` of the player of one answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._child: ChildProcess | None = None
        self._bell = Condition(engine)
        self._over = False
        self.is_finishing = False  # all sound of the answer is in the player's input

    def start(self, argv: tuple[str, ...]) -> Flow[bool]:
        """Start the player; return False if it cannot be started."""
        child = yield from spawn(self._engine, argv, self)
        if isinstance(child, Failure):
            self._over = True
            return False
        self._child = child
        return True

    def play(self, pcm: bytes) -> None:
        """Send more PCM to the player; drop it if the player does not run."""
        if self._child is not None and not self._over:
            self._child.write(pcm)

    def finish(self) -> Flow[None]:
        """Close the player's input, and wait for its end; kill it if it still runs after `PLAYBACK_TIMEOUT` seconds."""
        if self._child is None or self._over:
            return
        self.is_finishing = True
        self._child.close_input()
        yield from self._bell.wait(self._engine.now.mono + PLAYBACK_TIMEOUT)
        self.stop()

    def stop(self) -> None:
        """Kill the player if it runs."""
        if self._child is not None and not self._over:
            self._over = True
            self._child.kill()
            self._bell.notify_all()

    def on_exit(self, status: int | None) -> None:
        """Record the end of the player."""
        self._over = True
        self._bell.notify_all()


# --- answers that the relay owes --------------------------------------------------------------------------------------


@define
class PendingAnswers:
    """Count of pending answers of a realtime agent (wire terminal-voice 6.9); true while there is one.

    A queued or promoted task is a pending answer. It is resolved when the answer is played or fails. If the user
    cancels, all pending answers are dropped when the relay confirms the cancellation.
    """

    _count: int = 0
    _failing: bool = False  # the next error resolves one of them
    _forgiven: bool = False  # the user cancelled all of them, and the relay has not confirmed yet

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self) -> None:
        """Count one more pending answer."""
        self._count += 1

    def resolve_one(self) -> None:
        """Remove an answer that was played or has failed."""
        self._count = max(self._count - 1, 0)

    def clear(self) -> None:
        """Remove all answers: the relay has ended all of the tasks."""
        self._count = 0

    def cancel_all(self) -> None:
        """Mark all answers as cancelled by the user."""
        self._forgiven = True

    def turn_cancelled(self) -> None:
        """Handle a turn's cancellation by the relay: cancelled answers are removed."""
        if self._forgiven:
            self._forgiven = False
            self.clear()

    def completed(self, *, ok: bool) -> None:
        """Record the end of a task. Its answer follows, or an error in its place."""
        self._failing = not ok

    def has_failed(self) -> bool:
        """Report whether the error just received replaces an answer, and reset that; call it once for each error."""
        failing, self._failing = self._failing, False
        return failing
