"""A voice session: event ids, event replay, resume and event log, with a mode for the messages.

    class Echo(VoiceMode):
        def on_message(self, kind, message): ...     # messages of this mode
        def resumes_after(self, code): ...           # whether a lost socket may resume

    session = VoiceSession(family, principal, chosen, Echo)
    session.emit("voice.response.started", provider="stub")
    session.emit_audio("voice.audio.delta", pcm, 24_000)
    yield from session.wait_writable()               # a sender waits here for a slow or absent client

The modes: speech output and the lab (`svc_proto.voice.speech_sessions`), the agent with a provider that listens
(`svc_proto.voice.agent.native_mode`), the agent with a provider that renders (`svc_proto.voice.agent.agent_mode`).

An event goes to the socket that owns the session and to the event log; in a session with resume it is also stored for
replay.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import secrets_equal, sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.pcm import SAMPLE_WIDTH, levels
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.machines.voice_session import (
    UNCLAIMED_TIMEOUT,
    ClaimDenied,
    Cursor,
    EventIds,
    VoiceSessionLifecycle,
    VoiceState,
)
from svc_proto.schema.envelope import parse_message
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.event_log import KEEP_DAYS, EventLog, in_order, log_name
from svc_proto.voice.provider_interface import AudioChunk, ProviderError, RenderResult
from svc_proto.voice.settings import OutputSettings, RealtimeSettings

if TYPE_CHECKING:
    from svc_proto.voice.connection import VoiceConnection
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.session_manager import VoiceSessionManager

__all__ = ["MAX_DELTA", "POLICY", "VoiceMode", "VoiceSession", "error_message_of"]

MAX_DELTA = 32 * 1024  # bytes of PCM in one event
MAX_CANDIDATES = 4  # of one session: the oldest is refused
MAX_EARLY = 64  # messages from before `voice.session.ready`: a further one ends the socket
WRITABLE_TIMEOUT = 60.0  # s after which a sender checks again whether there is room
NO_SOUND = '"audio_base64":""'  # the placeholder of the sound in an event's text
POLICY = 1008
SUPERSEDED = 4000  # wire terminal-voice 6.3
TAKEN_OVER = "another socket has taken over"


class VoiceMode:
    """Behaviour of a kind of voice session: callbacks for its messages and its life cycle."""

    def __init__(self, session: VoiceSession) -> None:
        self.session = session
        self.engine = session.engine
        self.chosen = session.chosen

    def ready_fields(self) -> dict[str, object]:
        """Return the members of `voice.session.ready` beside those of every session."""
        return {}

    def resumed_fields(self) -> dict[str, object]:
        """Return the members of `voice.session.resumed` beside those of every session."""
        return {}

    def on_attached(self) -> None:
        """Handle a socket that becomes the owner of a new or released session; by default, call the session's `begin`.

        A mode may call `begin` later, or `release` if it cannot start.
        """
        self.session.begin()

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """Handle a message of this mode; return False for an unknown one. May raise `Refused`."""
        return False

    def on_lost(self) -> None:
        """React to a socket lost before the session was ready or without resume; by default, do nothing."""

    def resumes_after(self, code: int) -> bool:
        """Report whether a session whose socket closed with `code` waits for a reconnect; by default, never."""
        return False

    def on_detached(self) -> None:
        """React to the loss of the client, which may reconnect in the resume window; by default, do nothing."""

    def wait_writable(self) -> Flow[None]:
        """Wait until the session has room; a mode may add to this."""
        return self.session.wait_writable()

    def on_resumed(self) -> None:
        """React to a reconnect, after the event replay; by default, do nothing."""

    def on_revoked(self) -> None:
        """Stop work elsewhere, because the session's token was revoked; by default, do nothing.

        `on_closed` follows.
        """

    def on_closed(self) -> None:
        """React to the end of the session, such as by cancelling flows; by default, do nothing."""

    # --- of a `Rendering` ---

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """Handle a piece of rendered audio; by default, drop it."""

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """Handle the end of rendering, or its error; by default, do nothing.

        `fields` are `metrics` and `metadata` of the response's end; empty for an error.
        """


class VoiceSession:
    """Voice session, made by `create` of its session manager."""

    def __init__(
        self,
        family: VoiceSessionManager,
        principal: Principal,
        chosen: OutputSettings | RealtimeSettings,
        mode: Callable[[VoiceSession], VoiceMode],
    ) -> None:
        self.voice = voice = family.voice
        self.engine = engine = voice.engine
        self.principal = principal
        self.brand = principal.brand or voice.config.brand  # of the client, else the server's
        self.chosen = chosen
        self.family = family
        self.id = _secret(engine.entropy(18))  # 24 characters
        self.resume_token = _secret(engine.entropy(32))  # 43 characters; cleared by `take_token`
        deadline, window = engine.now.mono + UNCLAIMED_TIMEOUT, voice.config.resume_ttl
        self.life = VoiceSessionLifecycle(token_hash=sha256_hex(self.resume_token), window=window, deadline=deadline)
        self.socket: VoiceConnection | None = None  # the owner
        self.candidates: dict[int, VoiceConnection] = {}
        name = log_name(family.files, engine.now.wall, self.id)
        self.run_path = f"{family.runs}/{name}"  # of each file of the session, without suffix
        self.log = EventLog(engine, f"{self.run_path}.jsonl")
        self._created = engine.now.mono
        self._early: deque[dict[str, object]] = deque()
        self._speakers = Condition(engine)  # flows that wait for room
        self._timer = engine.timers.timer(self._on_timer)
        self._set_timer()
        self.mode = mode(self)

    def take_token(self) -> str:
        """Return the resume token and delete it from the session, which stores its hash. A second call returns ""."""
        token, self.resume_token = self.resume_token, ""
        return token

    def created(self, fields: Mapping[str, object]) -> None:
        """Log the creation of the session, and call `sweep` of its manager for the files of older sessions."""
        family, chosen = self.family, self.chosen
        self.log_event(f"{family.name}.session.created", session_id=self.id, **self.settings_choice(), **fields)
        family.sweep(chosen.run_retention_days if isinstance(chosen, RealtimeSettings) else KEEP_DAYS)
        self.engine.log(Level.INFO, "voice session made", kind=family.name, session=self.id[:8])

    # --- for the mode ---

    def settings_choice(self) -> dict[str, object]:
        """Return provider, model and voice, as events name them."""
        return {"provider": self.chosen.provider, "model": self.chosen.model, "voice": self.chosen.voice}

    @property
    def at_ms(self) -> float:
        """Milliseconds since the session was made."""
        return round((self.engine.now.mono - self._created) * 1000, 3)

    @property
    def closed(self) -> bool:
        """Report whether the session has ended."""
        return self.life.state is VoiceState.CLOSED

    @property
    def attached(self) -> bool:
        """Report whether a client is connected and the session has begun."""
        return self.life.state is VoiceState.ATTACHED

    @property
    def resume_ttl_ms(self) -> int:
        """The resume window in milliseconds."""
        return int(self.life.window * 1000)

    def emit(self, kind: str, /, **fields: object) -> None:
        """Send an event to the client, if there is one, and log it; do nothing in a closed session.

        A session with resume also stores the event for replay.
        """
        if self.closed:
            return
        ids = self.life.number()
        event = self._event(kind, ids) | fields
        self._send(ids, strict_json.dumps(event))
        self.log.record(event)

    def emit_audio(self, kind: str, pcm: bytes, rate: int, /, **fields: object) -> None:
        """Send audio of whole samples as `emit` sends an event; `rate` in Hz (wire 4.7).

        The log has the number of bytes instead of the audio.
        """
        if self.closed:
            return
        ids, (peak, rms) = self.life.number(audio=True), levels(pcm)
        fields |= self._event(kind, ids)
        fields["audio_base64"] = ""
        fields["byte_count"] = len(pcm)
        fields["sample_rate"] = rate
        fields["channels"] = 1
        fields["sample_width"] = SAMPLE_WIDTH
        fields["peak_level"] = peak
        fields["rms_level"] = rms
        # The text is encoded once for client and log; base64 needs no escapes and replaces the placeholder.
        text = in_order(fields)
        sound = binascii.b2a_base64(pcm, newline=False).decode("ascii")
        self._send(ids, text.replace(NO_SOUND, f'"audio_base64":"{sound}"', 1))
        self.log.add(text.replace(NO_SOUND, f'"audio_base64":"<{len(pcm)} bytes>"', 1))

    def error(self, message: str, /, **fields: object) -> None:
        """Send `voice.error`; the socket stays open."""
        self.emit("voice.error", message=message, **fields)

    def log_event(self, kind: str, /, **fields: object) -> None:
        """Write an entry to the event log alone."""
        self.log.record({"type": kind, "at_ms": self.at_ms, **fields})

    @property
    def has_room(self) -> bool:
        """Report whether more may be sent: the socket is writable or, without a client, the replay buffer has room."""
        return self.life.has_room if self.socket is None else self.socket.writable

    def wait_writable(self) -> Flow[None]:
        """Wait for `has_room`: the client has read enough or, without a client, the replay buffer has room."""
        while not self.has_room:
            yield from self._speakers.wait(self.engine.now.mono + WRITABLE_TIMEOUT)

    def begin(self) -> None:
        """Send `voice.session.ready` and handle the messages that came before it, while a client is connected."""
        self.life.ready()
        self.ready()
        early, self._early = self._early, deque()
        for message in early:
            if self.attached:
                self._handle_message(message)

    def ready(self) -> None:
        """Send `voice.session.ready`."""
        scope = self.chosen.scope
        fields: dict[str, object] = {
            "session_id": self.id,
            **self.settings_choice(),
            "sample_rate": self.chosen.sample_rate,
            "event_log_path": self.log.path,
            "profile": scope.profile,
            "config_scope": scope.config_scope,
            "config_path": scope.config_path,
            **self.mode.ready_fields(),
        }
        if self.family.resumes:
            fields |= {
                "resume_supported": True,
                "resume_ttl_ms": self.resume_ttl_ms,
                "last_event_id": self.life.last.event,
                "last_audio_event_id": self.life.last.audio,
            }
        self.emit("voice.session.ready", **fields)

    def release(self, code: int = 1011, reason: str = "") -> None:
        """Close the owner's socket and return to the state before it connected, so that another may try."""
        socket, self.socket = self.socket, None
        self._early.clear()
        self.life.release(self.engine.now.mono)
        self._set_timer()
        if socket is not None:
            socket.end(code, reason)

    def close(self, why: str, *, code: int = 1000) -> None:
        """End the session: stop its work, close its socket and refuse candidates. A second call does nothing."""
        if self.closed:
            return
        self.life.close()
        self._finish(why, code)

    def revoke(self, why: str) -> None:
        """End the session and its work on the API server, because its token was revoked."""
        self.mode.on_revoked()
        self.close(why, code=POLICY)

    # --- for its sockets ---

    def on_socket_open(self, socket: VoiceConnection) -> None:
        """Handle a new socket: make it the owner or a candidate, or refuse it.

        In a session without resume, it replaces the owner.
        """
        if self.closed:
            self.refuse(socket, self.life.denial())
            return
        if self.socket is not None and not self.family.resumes:
            was = self.socket
            self.on_socket_closed(was, SUPERSEDED)
            was.end(SUPERSEDED, TAKEN_OVER)
        if not self.life.attach():
            if len(self.candidates) >= MAX_CANDIDATES:
                self.refuse(next(iter(self.candidates.values())), self.life.denial())
            self.candidates[socket.number] = socket
            return
        self.socket = socket
        self._set_timer()
        self.mode.on_attached()

    def on_text(self, socket: VoiceConnection, text: str) -> None:
        """Handle a text message of the owner; a candidate's may only be a resume token."""
        if socket is self.socket:
            try:
                message = _parse(text)
            except Refused as refused:
                self.error(refused.message)
            else:
                self._handle_message(message)
        else:
            self._claim(socket, text)

    def heard_binary(self, socket: VoiceConnection) -> None:
        """Report an error for a binary frame of the owner; refuse a candidate that sent one."""
        if socket is self.socket:
            self.error("only text frames are understood here")
        else:
            self.refuse(socket, self.life.denial())

    def on_writable(self, socket: VoiceConnection) -> None:
        """Wake flows that wait for room, because the client has read enough."""
        if socket is self.socket:
            self._speakers.notify_all()

    def on_socket_closed(self, socket: VoiceConnection, code: int) -> None:
        """Handle the end of a socket: remove a candidate; after the owner, release, detach or end the session."""
        self.candidates.pop(socket.number, None)
        if socket is not self.socket:
            return
        self.socket = None
        if not self.family.resumes or self.life.state is VoiceState.STARTING:
            self.release()
            self.mode.on_lost()
        else:
            self._lost(code, "client closed")

    def opened_with(self, bearer_hash: str) -> list[VoiceConnection]:
        """Return the sockets that were opened with that token: candidates and the owner."""
        here = [*self.candidates.values(), *([self.socket] if self.socket is not None else [])]
        return [socket for socket in here if secrets_equal(socket.bearer_hash, bearer_hash)]

    def refuse(self, socket: VoiceConnection, denied: ClaimDenied) -> None:
        """Report to a socket that it does not get the session, and close it; remove it from the candidates."""
        self.candidates.pop(socket.number, None)
        self._send_unrecorded(socket, "voice.session.resume_failed", reason=denied.reason)
        socket.end(denied.close_code, denied.reason)

    # --- ownership of the session ---

    def _claim(self, socket: VoiceConnection, text: str) -> None:
        """Handle a candidate's message: only a resume token is accepted."""
        try:
            message = _parse(text)
            if not self._asks_to_resume(message):
                self.refuse(socket, self.life.denial())
                return
            self._resume(socket, message)
        except Refused as refused:  # the candidate may try again
            self._send_unrecorded(socket, "voice.error", message=refused.message)

    def _asks_to_resume(self, message: Mapping[str, object]) -> bool:
        if not self.family.resumes:
            return False
        if message["type"] == "session.start":
            return message.get("resume_token") is not None or self.life.state is VoiceState.DETACHED
        return message["type"] == "session.resume"

    def _resume(self, socket: VoiceConnection, message: Mapping[str, object]) -> None:
        outcome = self.life.resume(message.get("resume_token"), message)
        if isinstance(outcome, ClaimDenied):
            self.refuse(socket, outcome)
            if socket is self.socket:  # the owner itself sent a bad token: the session is as after any loss
                self.socket = None
                self._lost(outcome.close_code, "resume failed")
            return
        self.candidates.pop(socket.number, None)
        was, self.socket = self.socket, socket
        self._set_timer()
        if was is not None and was is not socket:
            self.log_event(f"{self.family.name}.websocket.superseded_closed")
            was.end(SUPERSEDED, TAKEN_OVER)
        cursor, events = outcome.cursor, outcome.events
        come = {"last_event_id": cursor.event, "last_audio_event_id": cursor.audio}
        come["last_played_audio_event_id"] = cursor.played
        self._send_unrecorded(socket, "voice.session.resumed", **come, **self.mode.resumed_fields())
        begin = {"from_event_id": cursor.event, "from_audio_event_id": max(cursor.audio, cursor.played)}
        self._send_unrecorded(socket, "voice.replay.started", **begin, replay_event_count=len(events))
        for text in events:
            socket.send(f'{text[:-1]},"replayed":true}}')
        self._send_unrecorded(socket, "voice.replay.done", replay_event_count=len(events))
        self._speakers.notify_all()
        self.mode.on_resumed()

    def _lost(self, code: int, why: str) -> None:
        if not self.mode.resumes_after(code):
            self.close(why)
            return
        deadline = self.life.detach(self.engine.now.mono)
        self._set_timer()
        reason = "websocket_disconnected"
        self.emit("voice.session.detached", session_id=self.id, reason=reason, resume_ttl_ms=self.resume_ttl_ms)
        wall = round(self.engine.now.at(deadline).wall, 3)
        self.log_event(f"{self.family.name}.session.detached", reason=reason, resume_deadline=wall)
        self.mode.on_detached()
        self._speakers.notify_all()

    def extend(self, seconds: float) -> None:
        """Extend the wait for a reconnect of a detached session, to so many seconds from now."""
        self.life.extend(self.engine.now.mono + seconds)
        self._set_timer()

    def _on_timer(self) -> None:
        self.life.expire()
        self._finish("expired", 4008)

    def _set_timer(self) -> None:
        """Set the timer to the deadline of the life cycle."""
        self._timer.schedule(self.life.deadline)

    def _finish(self, why: str, code: int) -> None:
        self._timer.retire()
        self.family.forget(self)
        socket, self.socket = self.socket, None
        if socket is not None:
            socket.end(code, why)
        for candidate in list(self.candidates.values()):
            self.refuse(candidate, self.life.denial())
        self.mode.on_closed()
        self.log_event(f"{self.family.name}.session.closed", reason=why)
        self.log.close()
        self.engine.log(Level.INFO, "voice session over", kind=self.family.name, session=self.id[:8], reason=why)

    # --- messages ---

    def _handle_message(self, message: dict[str, object]) -> None:
        try:
            self._dispatch(message)
        except Refused as refused:
            self.error(refused.message)

    def _dispatch(self, message: dict[str, object]) -> None:
        kind = cast("str", message["type"])
        if kind == "session.close":
            self.close("client closed")
        elif self.life.state is VoiceState.STARTING:
            self._queue_early(message)
        elif kind == "client.ack" and self.family.resumes:
            self.acknowledge(message)
        elif self._asks_to_resume(message) and self.socket is not None:
            self._resume(self.socket, message)
        elif self.mode.on_message(kind, message):
            return
        elif kind == "session.start":
            self.ready()
        else:
            raise Refused(400, "unknown_message", f"unknown message {kind[:40]!r}")

    def acknowledge(self, message: Mapping[str, object]) -> None:
        """Record the ids that the client reports as received or played; raise `Refused` for an invalid one."""
        self.life.ack(Cursor.from_ack(message))

    def _queue_early(self, message: dict[str, object]) -> None:
        self._early.append(message)
        if len(self._early) > MAX_EARLY:
            socket = cast("VoiceConnection", self.socket)  # the sender of this message
            self.on_socket_closed(socket, POLICY)
            socket.end(POLICY, "too many messages before the session was ready")

    # --- events ---

    def _send(self, ids: EventIds, text: str) -> None:
        if self.socket is not None:
            self.socket.send(text)
        if self.family.resumes:
            self.life.record(ids, text)

    def _send_unrecorded(self, socket: VoiceConnection, kind: str, /, **fields: object) -> None:
        """Send an event to one socket alone and log it; it is not stored for replay."""
        event = self._event(kind, self.life.number()) | {"session_id": self.id, **fields}
        socket.send(strict_json.dumps(event))
        self.log.record(event)

    def _event(self, kind: str, ids: EventIds) -> dict[str, object]:
        event: dict[str, object] = {"type": kind}
        if self.family.resumes:
            event["event_id"] = ids.event
            if ids.audio:
                event["audio_event_id"] = ids.audio
        event["at_ms"] = self.at_ms
        return event


def error_message_of(engine: Engine, error: Exception) -> str:
    """Return the client's text for an error: a provider's message, else a reference under which the bug is logged."""
    if isinstance(error, ProviderError):
        return str(error)
    return f"internal error, reference {engine.log_bug(error)}"


def _parse(text: str) -> dict[str, object]:
    """Parse a JSON object with a `type`.

    Raise `Refused` 400 for any other text, and `RemoteProtocolError` (1009) if parsing would take too long.
    """
    try:
        message = JsonObject.of_or_none(parse_message(text))
    except strict_json.JsonError as error:
        raise Refused(400, "invalid_json", f"the message is not valid JSON: {error}") from None
    if message is None:
        raise Refused(400, "invalid_message", "a message must be a JSON object")
    if message.string("type") is None:
        raise Refused(400, "invalid_message", "type must be a string")
    return message


def _secret(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
