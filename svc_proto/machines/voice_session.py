"""The life of a voice session: who speaks for it, what was said, and what a socket that comes back has missed.

Times are monotonic seconds. Ids begin with 1 and never repeat (wire terminal-voice 4.7). What was said is kept in a
ring of so many events and so many bytes; a ring that is full forgets its oldest (4.8).
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
ACKNOWLEDGED = (
    "event_id",
    "audio_event_id",
    "played_audio_event_id",
    "input_chunk_id",
)  # a cursor's, in order
DETACHED_MAX_EVENTS = RING_EVENTS // 2  # recorded while nobody listens, before whoever speaks has to wait: the other
DETACHED_MAX_BYTES = RING_BYTES // 2  # half of the ring is for what was said right before, and may not have arrived


class VoiceState(Enum):
    """Where a voice session is in its life."""

    FRESH = "fresh"
    STARTING = "starting"
    ATTACHED = "attached"
    DETACHED = "detached"
    CLOSED = "closed"


class VoiceTrigger(Enum):
    """What moves it."""

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
    (_S.FRESH, _T.EXPIRE): _S.CLOSED,  # nobody came within 120 s
    (_S.STARTING, _T.READY): _S.ATTACHED,  # whatever the session needs is there
    (_S.STARTING, _T.RELEASE): _S.FRESH,  # it could not be had, or the socket has gone: somebody may try again
    (_S.ATTACHED, _T.RESUME): _S.ATTACHED,  # another socket showed the token: the session is its own now
    (_S.ATTACHED, _T.DETACH): _S.DETACHED,  # the socket was lost, and there is something to come back for
    (_S.ATTACHED, _T.RELEASE): _S.FRESH,  # the socket has gone, and there is nothing to come back for but the session
    (_S.DETACHED, _T.RESUME): _S.ATTACHED,  # a socket showed the token within the window
    (_S.DETACHED, _T.EXPIRE): _S.CLOSED,  # none did
    **{(state, _T.CLOSE): _S.CLOSED for state in _S},
}


@frozen
class ClaimDenied:
    """A socket is not to have the session: a word for the client and the code to close with (wire 4.8, 6.3)."""

    reason: str
    close_code: int


NOT_CLAIMED = ClaimDenied("session_not_claimed", 4009)
INITIALIZING = ClaimDenied("session_initializing", 1013)
BAD_TOKEN = ClaimDenied("invalid_resume_token", 4003)
EXPIRED = ClaimDenied("resume_expired", 4008)
CLOSED = ClaimDenied("session_closed", 4008)


class EventIds(NamedTuple):
    """The numbers of one event; `audio` is 0 for one without audio."""

    event: int
    audio: int = 0


class Cursor(NamedTuple):
    """How far a client has come, by ids; 0 for nothing."""

    event: int = 0
    audio: int = 0
    played: int = 0  # audio events heard to the end
    chunk: int = 0  # of its own microphone, that the server has taken

    def up_to(self, other: Cursor) -> Cursor:
        """The greater one of each."""
        return Cursor(*map(max, self, other))

    @classmethod
    def from_ack(cls, message: Mapping[str, object]) -> Cursor:
        """The fields of `client.ack`; `Refused` 400 for what is no whole number (wire 4.7)."""
        return cls(*(_cursor(message, name) or 0 for name in ACKNOWLEDGED))

    @classmethod
    def from_resume(cls, message: Mapping[str, object], acked: Cursor) -> Cursor:
        """The fields of `session.resume`; those that are missing are as acknowledged. `Refused` 400 as above."""
        given = [_cursor(message, f"last_{name}") for name in ACKNOWLEDGED]
        return cls(*(known if value is None else value for value, known in zip(given, acked, strict=True)))


NO_CURSOR = Cursor()


@frozen
class Replay:
    """A socket has the session now: where it begins, and what it has missed."""

    cursor: Cursor
    events: tuple[str, ...]  # JSON texts, as they were sent


@define(kw_only=True)
class VoiceSessionLifecycle:
    """One session's state. Whoever asks acts on the answer."""

    token_hash: str  # SHA-256 of the resume token
    window: float = RESUME_WINDOW  # s
    deadline: float | None  # when `expire` is due
    state: VoiceState = field(default=_S.FRESH, init=False)
    acked: Cursor = field(default=NO_CURSOR, init=False)
    last: EventIds = field(default=EventIds(0, 0), init=False)  # the numbers given last
    expired: bool = field(default=False, init=False)
    _ring: deque[tuple[EventIds, str]] = field(factory=deque, init=False, repr=False)
    _size: int = field(default=0, init=False)  # bytes of that
    _away: list[int] = field(factory=lambda: [0, 0], init=False)  # events and bytes recorded while detached

    # --- who speaks for it ---

    def attach(self) -> bool:
        """A socket has come. The first one owns the session; `ready` or `release` follows. Others have to `resume`."""
        if self.state is not _S.FRESH:
            return False
        self._step(_T.ATTACH)
        self.deadline = None
        return True

    def ready(self) -> None:
        """Whatever the session needs is there."""
        self._step(_T.READY)

    def release(self, now: float) -> None:
        """The owner has gone, or gets nothing: as before it came."""
        self._step(_T.RELEASE)
        self.deadline = now + UNCLAIMED_TIMEOUT

    def detach(self, now: float) -> float:
        """The owner was lost: keep everything for a while; until when."""
        self._step(_T.DETACH)
        self._away = [0, 0]
        self.deadline = now + self.window
        return self.deadline

    def extend(self, until: float) -> None:
        """Wait longer, or less long, for somebody to come back; nothing when nobody is missing."""
        if self.state is _S.DETACHED:
            self.deadline = until

    def resume(self, token: object, message: Mapping[str, object]) -> Replay | ClaimDenied:
        """A socket asks for the session. `Refused` 400 for a cursor that is no whole number changes nothing."""
        if self.state in (_S.CLOSED, _S.STARTING):
            return self.denial()
        if not secrets_equal(sha256_hex(as_text(token) or ""), self.token_hash):
            return BAD_TOKEN
        if self.state is _S.FRESH:
            return NOT_CLAIMED  # it comes from a socket that the session was released from
        cursor = self._clamped(Cursor.from_resume(message, self.acked))
        self._step(_T.RESUME)
        self.deadline = None
        return Replay(cursor, self.missed(cursor))

    def denial(self) -> ClaimDenied:
        """What a candidate gets that says anything else, or says nothing for too long."""
        if self.state is _S.STARTING:
            return INITIALIZING
        if self.state is _S.CLOSED:
            return EXPIRED if self.expired else CLOSED
        return NOT_CLAIMED

    # --- how it ends ---

    def expire(self) -> None:
        """`deadline` has come: the end."""
        self._step(_T.EXPIRE)
        self.expired = True
        self._end()

    def close(self) -> None:
        """The end, for whatever other reason. Harmless the second time."""
        self._step(_T.CLOSE)
        self._end()

    # --- what is said ---

    def number(self, *, audio: bool = False) -> EventIds:
        """The numbers of the next event."""
        self.last = EventIds(self.last.event + 1, self.last.audio + audio)
        return self.last if audio else EventIds(self.last.event)

    def record(self, ids: EventIds, text: str) -> None:
        """Keep an event for whoever comes back; the oldest go until there is room."""
        if self.state is _S.CLOSED:
            return
        self._ring.append((ids, text))
        self._size += len(text)
        while len(self._ring) > 1 and (len(self._ring) > RING_EVENTS or self._size > RING_BYTES):
            self._size -= len(self._ring.popleft()[1])
        if self.state is _S.DETACHED:
            self._away[0] += 1
            self._away[1] += len(text)

    def missed(self, cursor: Cursor) -> tuple[str, ...]:
        """What a client that has come so far has missed, in order (wire 4.8)."""
        heard = max(cursor.audio, cursor.played)
        return tuple(text for ids, text in self._ring if (ids.audio > heard if ids.audio else ids.event > cursor.event))

    def ack(self, cursor: Cursor) -> None:
        """The client has come so far."""
        self.acked = self.acked.up_to(self._clamped(cursor))

    @property
    def has_room(self) -> bool:
        """False while nobody listens and so much was said that more would push out what somebody may have missed."""
        if self.state is not _S.DETACHED:
            return True
        return self._away[0] < DETACHED_MAX_EVENTS and self._away[1] < DETACHED_MAX_BYTES

    # --- below ---

    def _clamped(self, cursor: Cursor) -> Cursor:
        """Nobody has come further than we have."""
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
