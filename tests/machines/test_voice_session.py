import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines import voice_session
from svc_proto.machines.voice_session import (
    BAD_TOKEN,
    CLOSED,
    DETACHED_MAX_EVENTS,
    EXPIRED,
    INITIALIZING,
    NO_CURSOR,
    NOT_CLAIMED,
    RESUME_WINDOW,
    ClaimDenied,
    Cursor,
    EventIds,
    Replay,
    VoiceSessionLifecycle,
    VoiceState,
    VoiceTrigger,
)

TOKEN = "a token"
T = VoiceTrigger


def life(state: VoiceState = VoiceState.FRESH, *, window: float = RESUME_WINDOW) -> VoiceSessionLifecycle:
    """Return a voice session in this state."""
    made = VoiceSessionLifecycle(token_hash=sha256_hex(TOKEN), deadline=120.0, window=window)
    if state in (VoiceState.FRESH, VoiceState.CLOSED):
        if state is VoiceState.CLOSED:
            made.close()
        return made
    made.attach()
    if state is not VoiceState.STARTING:
        made.ready()
    if state is VoiceState.DETACHED:
        made.detach(0.0)
    return made


def say(made: VoiceSessionLifecycle, *, audio: bool = False, text: str = "") -> EventIds:
    """Record an event of a voice session, with audio or without; return its ids."""
    ids = made.number(audio=audio)
    made.record(ids, text or f"{ids.event}/{ids.audio}")
    return ids


def told(outcome: Replay | ClaimDenied) -> list[str]:
    """Return the texts of the replayed events; fail if the resume was denied."""
    assert isinstance(outcome, Replay)
    return [*outcome.events]


S = VoiceState
TAKEN = Replay(NO_CURSOR, ())
ROWS: list[tuple[VoiceState, Replay | ClaimDenied, ClaimDenied, float | None, tuple[VoiceState, ...]]] = [
    # a claim with the token, any other message, the deadline, and the states after release and detach
    (S.FRESH, NOT_CLAIMED, NOT_CLAIMED, 120.0, ()),
    (S.STARTING, INITIALIZING, INITIALIZING, None, (S.FRESH,)),
    (S.ATTACHED, TAKEN, NOT_CLAIMED, None, (S.FRESH, S.DETACHED)),
    (S.DETACHED, TAKEN, NOT_CLAIMED, 30.0, ()),
    (S.CLOSED, CLOSED, CLOSED, None, ()),
]


@pytest.mark.parametrize(("state", "shown", "denied", "deadline", "lets_go"), ROWS)
def test_each_state(
    state: VoiceState,
    shown: Replay | ClaimDenied,
    denied: ClaimDenied,
    deadline: float | None,
    lets_go: tuple[VoiceState, ...],
) -> None:
    made = life(state)
    claim = made.attach()
    fresh = state is S.FRESH
    assert (claim, made.state) == (fresh, S.STARTING if fresh else state)
    made = life(state)
    assert (made.denial(), made.deadline) == (denied, deadline)
    for token in (None, "", "another", 7, ["a token"]):
        assert made.resume(token, {}) == (denied if state in (S.STARTING, S.CLOSED) else BAD_TOKEN)
        assert made.state is state
    assert made.resume(TOKEN, {}) == shown
    assert made.state is (S.ATTACHED if isinstance(shown, Replay) else state)
    assert made.deadline == (None if isinstance(shown, Replay) else deadline)
    made = life(state)
    made.extend(360.0)
    assert made.deadline == (360.0 if state is S.DETACHED else deadline)
    made.close()
    made.close()
    assert (made.state, made.deadline, made.has_room) == (S.CLOSED, None, True)
    say(made)
    assert made.missed(NO_CURSOR) == ()
    for after, call in ((S.FRESH, VoiceSessionLifecycle.release), (S.DETACHED, VoiceSessionLifecycle.detach)):
        made = life(state, window=5.0)
        if after in lets_go:
            call(made, 10.0)
            assert made.state is after
            assert made.deadline == (130.0 if after is S.FRESH else 15.0)
        else:
            with pytest.raises(LocalProtocolError):
                call(made, 10.0)
    if state is not S.STARTING:
        with pytest.raises(LocalProtocolError):
            life(state).ready()


@pytest.mark.parametrize(("state", "deadline"), [(row[0], row[3]) for row in ROWS])
def test_time_passes(state: VoiceState, deadline: float | None) -> None:
    made = life(state)
    if deadline is None:
        with pytest.raises(LocalProtocolError):
            made.expire()
    else:
        made.expire()
        assert (made.state, made.deadline) == (S.CLOSED, None)
        assert (made.denial(), made.resume(TOKEN, {})) == (EXPIRED, EXPIRED)


@pytest.mark.parametrize("state", [VoiceState.ATTACHED, VoiceState.DETACHED])  # the owner may claim again
@pytest.mark.parametrize(
    ("seen", "missed"),
    [((), "1/0 2/1 3/0 4/2"), ((1, 1), "3/0 4/2"), ((4, 0, 1), "4/2"), ((4, 2), ""), ((9, 9, 9, 9), "")],
)
def test_ids_and_missed_events(state: VoiceState, seen: tuple[int, ...], missed: str) -> None:
    made = life(state)
    assert [say(made), say(made, audio=True), say(made), say(made, audio=True)] == [(1, 0), (2, 1), (3, 0), (4, 2)]
    assert made.number() == EventIds(5)  # an event that is not stored
    names = ("last_event_id", "last_audio_event_id", "last_played_audio_event_id", "last_input_chunk_id")
    outcome = made.resume(TOKEN, dict(zip(names, seen, strict=False)))
    assert told(outcome) == missed.split()
    assert isinstance(outcome, Replay)
    assert outcome.cursor == Cursor(*map(min, seen, (5, 2, 2, 9)))  # the cursor is clamped to the last ids


def test_resume_without_cursors_begins_at_the_acknowledgement() -> None:
    made = life(VoiceState.ATTACHED)
    for _ in range(3):
        say(made)
        say(made, audio=True)
    made.ack(Cursor.from_ack({"event_id": 3, "audio_event_id": 1, "input_chunk_id": 2}))
    made.ack(Cursor.from_ack({"event_id": 1, "played_audio_event_id": 2}))
    made.ack(Cursor.from_ack({}))
    assert made.acked == Cursor(event=3, audio=1, played=2, chunk=2)
    assert told(made.resume(TOKEN, {})) == ["5/0", "6/3"]
    assert told(made.resume(TOKEN, {"last_event_id": 0}))[0] == "1/0"
    made.ack(Cursor.from_ack({"event_id": 99, "audio_event_id": 99, "played_audio_event_id": 99}))
    say(made)
    say(made, audio=True)
    assert told(made.resume(TOKEN, {})) == ["7/0", "8/4"]  # later events are not acknowledged in advance


@pytest.mark.parametrize("value", ["1", 1.5, True, -1, [], {}, 1 << 63, float("1e300")])
@pytest.mark.parametrize("name", ["last_event_id", "last_audio_event_id", "last_played_audio_event_id"])
def test_invalid_cursor_is_refused(name: str, value: object) -> None:
    made = life(VoiceState.DETACHED)
    with pytest.raises(Refused, match=name):
        made.resume(TOKEN, {name: value})
    assert made.state is VoiceState.DETACHED
    with pytest.raises(Refused, match="event_id"):
        Cursor.from_ack({name.removeprefix("last_"): value})


def test_the_ring_is_bounded_and_half_of_it_is_available_while_detached(monkeypatch: pytest.MonkeyPatch) -> None:
    made = life(VoiceState.ATTACHED)
    for _ in range(DETACHED_MAX_EVENTS):
        say(made)
    assert roomy(made)
    made.detach(0.0)
    for _ in range(DETACHED_MAX_EVENTS - 1):
        say(made)
    assert roomy(made)
    say(made)
    assert not roomy(made)
    assert len(told(made.resume(TOKEN, {}))) == 2 * DETACHED_MAX_EVENTS
    assert roomy(made)
    made.detach(0.0)
    assert roomy(made)
    say(made, text="x" * (1 << 20))
    assert roomy(made)
    say(made, text="x" * (1 << 20))
    assert not roomy(made)
    monkeypatch.setattr(voice_session, "RING_EVENTS", 3)
    monkeypatch.setattr(voice_session, "RING_BYTES", 10)
    made = life()
    for number in range(1, 6):
        say(made, text=f"{number}.")
    assert made.missed(NO_CURSOR) == ("3.", "4.", "5.")
    for text, left in (
        ("abcdefgh", ("5.", "abcdefgh")),
        ("longer than the ring", ("longer than the ring",)),
        ("a", ("a",)),
        ("\u00fc\u00fc\u00fc\u00fc\u00fc", ("\u00fc\u00fc\u00fc\u00fc\u00fc",)),
        ("\u00fc\u00fc", ("\u00fc\u00fc",)),
        ("\u00fc", ("\u00fc\u00fc", "\u00fc")),
    ):
        say(made, text=text)
        assert made.missed(NO_CURSOR) == left


def roomy(made: VoiceSessionLifecycle) -> bool:
    return made.has_room
