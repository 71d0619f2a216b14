"""Lifecycle of a voice session: ownership by a socket, event recording, resume and replay.

Times are monotonic seconds. Ids begin with 1 and never repeat (wire terminal-voice 4.7). Events are kept in a ring with
limits of events and of characters; a full ring drops its oldest events (4.8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from attrs import define, field, frozen

from svc_proto.basics.entropy import secrets_equal, sha256_hex
from svc_proto.basics.validate import integer, invalid
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import as_text

__all__ = [
    "VOICE_TABLE",
    "NO_CURSOR",
    "RESUME_WINDOW",
    "UNCLAIMED_TIMEOUT",
    "Cursor",
    "ClaimDenied",
    "EventIds",
    "Replay",
]
__all__ += ["VoiceSessionLifecycle", "VoiceState", "VoiceTrigger"]

UNCLAIMED_TIMEOUT = 120.0  # s that a session waits for a socket, wire terminal-voice 4.6
RESUME_WINDOW = 30.0  # s, default of RELAY_VOICE_RESUME_TTL_MS, wire terminal-voice 4.8
RING_EVENTS = 2000  # wire terminal-voice 4.8
RING_BYTES = 4 * 1024 * 1024  # about a minute of 24 kHz audio in base64
# Acknowledged ids, in the order of the cursor's fields.
ACKNOWLEDGED = ("event_id", "audio_event_id", "played_audio_event_id", "input_chunk_id")
# Limits of events recorded without a client, before the producer must pause. The other half of the ring is for events
# sent just before, which may not have arrived.
DETACHED_MAX_EVENTS = RING_EVENTS // 2
DETACHED_MAX_BYTES = RING_BYTES // 2


class VoiceState(Enum):
    """State of a voice session."""

    FRESH = "fresh"
    STARTING = "starting"
    ATTACHED = "attached"
    DETACHED = "detached"
    CLOSED = "closed"


class VoiceTrigger(Enum):
    """Event that can change the state of a voice session."""

    ATTACH = "attach"
    READY = "ready"
    RELEASE = "release"
    RESUME = "resume"
    DETACH = "detach"
    EXPIRE = "expire"
    CLOSE = "close"


_S, _T = VoiceState, VoiceTrigger
VOICE_TABLE: Table[VoiceState, VoiceTrigger] = {
    (_S.FRESH, _T.ATTACH): _S.STARTING,  # the first socket owns the session
    (_S.FRESH, _T.EXPIRE): _S.CLOSED,  # no socket attached within 120 s
    (_S.STARTING, _T.READY): _S.ATTACHED,  # the session's resources are ready
    (_S.STARTING, _T.RELEASE): _S.FRESH,  # no resources, or the socket closed: another socket may attach
    (_S.ATTACHED, _T.RESUME): _S.ATTACHED,  # another socket showed the token and owns the session now
    (_S.ATTACHED, _T.DETACH): _S.DETACHED,  # the socket was lost, and there is something to resume
    (_S.ATTACHED, _T.RELEASE): _S.FRESH,  # the socket was lost, and there is nothing to resume
    (_S.DETACHED, _T.RESUME): _S.ATTACHED,  # a socket showed the token within the window
    (_S.DETACHED, _T.EXPIRE): _S.CLOSED,  # no socket showed the token in time
    **{(state, _T.CLOSE): _S.CLOSED for state in _S},
}


@frozen
class ClaimDenied:
    """Refusal of a socket: a reason for the client, and the close code (wire 4.8, 6.3)."""

    reason: str
    close_code: int


NOT_CLAIMED = ClaimDenied("session_not_claimed", 4009)
INITIALIZING = ClaimDenied("session_initializing", 1013)
BAD_TOKEN = ClaimDenied("invalid_resume_token", 4003)
EXPIRED = ClaimDenied("resume_expired", 4008)
CLOSED = ClaimDenied("session_closed", 4008)


class EventIds(NamedTuple):
    """Ids of one event; `audio` is 0 for an event without audio."""

    event: int
    audio: int = 0


class Cursor(NamedTuple):
    """Progress of a client, by ids; 0 for none."""

    event: int = 0
    audio: int = 0
    played: int = 0  # audio events played to the end
    chunk: int = 0  # of the client's microphone, received by the server

    def up_to(self, other: Cursor) -> Cursor:
        """Return a cursor with the greater value of each field."""
        return Cursor(*map(max, self, other))

    @classmethod
    def from_ack(cls, message: Mapping[str, object]) -> Cursor:
        """Parse the fields of `client.ack`; a missing one is 0 (wire 4.7).

        Raise `Refused` 400 for a value that is not a whole number from 0 to 2**63 - 1.
        """
        return cls(*(_cursor(message, name) or 0 for name in ACKNOWLEDGED))

    @classmethod
    def from_resume(cls, message: Mapping[str, object], acked: Cursor) -> Cursor:
        """Parse the fields of `session.resume`; missing ones are taken from `acked`.

        Raise `Refused` 400 for a value that is not a whole number from 0 to 2**63 - 1.
        """
        given = [_cursor(message, f"last_{name}") for name in ACKNOWLEDGED]
        return cls(*(known if value is None else value for value, known in zip(given, acked, strict=True)))


NO_CURSOR = Cursor()


@frozen
class Replay:
    """Result of a resume: the cursor, and the events that the socket has missed."""

    cursor: Cursor
    events: tuple[str, ...]  # JSON texts, as they were sent


@define(kw_only=True)
class VoiceSessionLifecycle:
    """State of one voice session: owner, deadline, ids, and the events for replay. It sends nothing itself."""

    token_hash: str  # SHA-256 of the resume token
    window: float = RESUME_WINDOW  # s
    deadline: float | None  # monotonic s at which `expire` is due
    state: VoiceState = field(default=_S.FRESH, init=False)
    acked: Cursor = field(default=NO_CURSOR, init=False)
    last: EventIds = field(default=EventIds(0, 0), init=False)  # the last ids
    expired: bool = field(default=False, init=False)
    _ring: deque[tuple[EventIds, str]] = field(factory=deque, init=False, repr=False)
    _size: int = field(default=0, init=False)  # bytes of the ring
    _away: list[int] = field(factory=lambda: [0, 0], init=False)  # events and bytes recorded while detached

    # --- ownership ---

    def attach(self) -> bool:
        """Attach a socket, which then owns the session; return False if the session is claimed or has ended.

        Later sockets have to `resume`. `ready` or `release` follows.
        """
        if self.state is not _S.FRESH:
            return False
        self._step(_T.ATTACH)
        self.deadline = None
        return True

    def ready(self) -> None:
        """Change from STARTING to ATTACHED: everything that the session needs is ready."""
        self._step(_T.READY)

    def release(self, now: float) -> None:
        """Release the session from its socket, so that any socket may attach again."""
        self._step(_T.RELEASE)
        self.deadline = now + UNCLAIMED_TIMEOUT

    def detach(self, now: float) -> float:
        """Detach the session after the loss of its socket, and return the deadline for a resume."""
        self._step(_T.DETACH)
        self._away = [0, 0]
        self.deadline = now + self.window
        return self.deadline

    def extend(self, until: float) -> None:
        """Set another deadline for a resume; do nothing unless detached."""
        if self.state is _S.DETACHED:
            self.deadline = until

    def resume(self, token: object, message: Mapping[str, object]) -> Replay | ClaimDenied:
        """Make a socket the owner if `token` is the session's, and return the events to replay; else return the denial.

        The denial is also returned for a session that is not attached or detached. Raise `Refused` 400, without a
        change, for a cursor that `Cursor.from_resume` refuses.
        """
        if self.state in (_S.CLOSED, _S.STARTING):
            return self.denial()
        if not secrets_equal(sha256_hex(as_text(token) or ""), self.token_hash):
            return BAD_TOKEN
        if self.state is _S.FRESH:
            return NOT_CLAIMED  # the token is from a socket that the session was released from
        cursor = self._clamped(Cursor.from_resume(message, self.acked))
        self._step(_T.RESUME)
        self.deadline = None
        return Replay(cursor, self.missed(cursor))

    def denial(self) -> ClaimDenied:
        """Return the denial, by the session's state, for a socket that may neither attach nor resume."""
        if self.state is _S.STARTING:
            return INITIALIZING
        if self.state is _S.CLOSED:
            return EXPIRED if self.expired else CLOSED
        return NOT_CLAIMED

    # --- end ---

    def expire(self) -> None:
        """End the session, because `deadline` has passed."""
        self._step(_T.EXPIRE)
        self.expired = True
        self._end()

    def close(self) -> None:
        """End the session for any other reason. A second call has no effect."""
        self._step(_T.CLOSE)
        self._end()

    # --- events ---

    def number(self, *, audio: bool = False) -> EventIds:
        """Assign and return the ids of the next event."""
        self.last = EventIds(self.last.event + 1, self.last.audio + audio)
        return self.last if audio else EventIds(self.last.event)

    def record(self, ids: EventIds, text: str) -> None:
        """Store an event for replay, and drop the oldest ones over the limits; do nothing if the session is closed."""
        if self.state is _S.CLOSED:
            return
        self._ring.append((ids, text))
        size = _size_of(text)
        self._size += size
        while len(self._ring) > 1 and (len(self._ring) > RING_EVENTS or self._size > RING_BYTES):
            self._size -= _size_of(self._ring.popleft()[1])
        if self.state is _S.DETACHED:
            self._away[0] += 1
            self._away[1] += size

    def missed(self, cursor: Cursor) -> tuple[str, ...]:
        """Return the recorded events after the cursor, in order; those with audio by their audio id (wire 4.8)."""
        heard = max(cursor.audio, cursor.played)
        return tuple(text for ids, text in self._ring if (ids.audio > heard if ids.audio else ids.event > cursor.event))

    def ack(self, cursor: Cursor) -> None:
        """Record the progress of the client, its event and audio ids limited to assigned ones; no field goes back."""
        self.acked = self.acked.up_to(self._clamped(cursor))

    @property
    def has_room(self) -> bool:
        """Report whether more events may be recorded: only a detached session has a limit."""
        if self.state is not _S.DETACHED:
            return True
        return self._away[0] < DETACHED_MAX_EVENTS and self._away[1] < DETACHED_MAX_BYTES

    # --- helpers ---

    def _clamped(self, cursor: Cursor) -> Cursor:
        """Limit the event and audio ids of a cursor to the last assigned ones; leave the chunk id unchanged."""
        event, audio = self.last
        return Cursor(min(cursor.event, event), min(cursor.audio, audio), min(cursor.played, audio), cursor.chunk)

    def _end(self) -> None:
        self.deadline = None
        self._ring.clear()

    def _step(self, trigger: VoiceTrigger) -> None:
        self.state = step(VOICE_TABLE, self.state, trigger)


def _cursor(message: Mapping[str, object], name: str) -> int | None:
    value = message.get(name)
    if value is None:
        return None
    found = integer(value, name)
    if not 0 <= found < 1 << 63:
        raise invalid(name, "a whole number from 0 on")
    return found


def _size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
