"""Voice sessions under random speech, reads, lost sockets and resumes: no audio is lost, no counted event comes twice.

The model is the client's record of its events, and the number of rendered chunks. Events on their way may be lost with
a socket. A client that resumes reports its true cursor and must then have all audio. Session events and replay marks do
not count: they may be repeated.
"""

import base64
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.provider_interface import AudioChunk
from tests.voice.harness import VoiceHarness, queue_samples, spoken

PIECE = AudioChunk(b"\x00\x10" * 12, 24_000)


here = precondition(lambda self: not self.lost)


class Resuming(RuleBasedStateMachine):
    """Session with a phone that disconnects and resumes."""

    @initialize()
    def begin(self) -> None:
        self.rig = VoiceHarness()
        self.answer, self.client = spoken(self.rig)
        self.lost = False  # events that the phone has, by id
        self.known: dict[int, dict[str, Any]] = {}
        self.last_live = 0
        self.sounds = 0  # audio chunks that the provider has made

    # --- rules ---

    @rule(pieces=st.integers(1, 5))
    def the_provider_makes_some_sound(self, pieces: int) -> None:
        self.sounds += pieces
        queue_samples(self.rig, *[PIECE] * pieces)

    @here
    @rule(share=st.floats(0, 1))
    def some_of_what_was_sent_arrives(self, share: float) -> None:
        count = round(len(self.client.texts) * share)
        later, self.client.texts = self.client.texts[count:], self.client.texts[:count]
        self.take(self.client.events())
        self.client.texts = later

    @here
    @rule(slowly=st.booleans())
    def the_phone_reads(self, slowly: bool) -> None:
        if slowly:
            self.client.writable = False
        else:
            self.client.read()

    @here
    @rule()
    def the_phone_says_how_far_it_is(self) -> None:
        event, audio = self.cursor()
        self.client.send_event("client.ack", event_id=event, audio_event_id=audio)

    @here
    @rule()
    def the_socket_breaks(self) -> None:
        """Disconnect; the events on their way are lost."""
        self.client.disconnect(1006)
        self.lost = True

    @rule(seconds=st.sampled_from([0.01, 1.0, 5.0]), told=st.booleans())
    def come_back(self, seconds: float, told: bool) -> None:
        """Resume on another socket, whether or not the relay has noticed the end of the old one."""
        if not self.lost and not told:
            self.client.disconnect(1006)
        self.rig.after(seconds)
        event, audio = self.cursor()
        self.client, self.lost = self.rig.attach(self.rig.output, self.answer), False
        seen = {"last_event_id": event, "last_audio_event_id": audio, "last_played_audio_event_id": 0}
        self.client.send_event("session.resume", resume_token=self.answer["resume_token"], **seen)
        events = self.client.events()
        assert events[0]["type"] == "voice.session.resumed"
        assert events[1]["replay_event_count"] == sum(event.get("replayed", False) for event in events)
        self.take(events)
        self.everything_arrived()

    @rule()
    def somebody_else_tries(self) -> None:
        """Try to resume with a wrong token; the relay closes that socket with code 4003."""
        other = self.rig.attach(self.rig.output, self.answer)
        other.send_event("session.resume", resume_token="guess")
        assert other.closed == 4003

    # --- invariants ---

    @invariant()
    def the_session_lives(self) -> None:
        (session,) = self.rig.output.sessions()
        assert session.life.state is (VoiceState.DETACHED if self.lost else VoiceState.ATTACHED)

    def take(self, events: list[dict[str, Any]]) -> None:
        """Record events; require replays in order, live events with rising ids, and no counted event twice."""
        replayed = 0
        for event in events:
            number = event["event_id"]
            assert number not in self.known or not counts(event), "twice"
            if event.get("replayed"):
                assert number > replayed, "a replay out of order"
                replayed = number
            else:
                assert number > self.last_live, "ids must rise"
                self.last_live = number
            self.known[number] = event

    def cursor(self) -> tuple[int, int]:
        """Return the phone's cursor; session events and replay marks do not count."""
        plain = [number for number, event in self.known.items() if counts(event)]
        audio = [event["audio_event_id"] for event in self.known.values() if "audio_event_id" in event]
        return max(plain, default=0), max(audio, default=0)

    def everything_arrived(self) -> None:
        """Require that the phone has each rendered audio chunk exactly once."""
        heard = sorted(
            (event["audio_event_id"], event["audio_base64"])
            for event in self.known.values()
            if event["type"] == "voice.audio.delta"
        )
        assert [number for number, _ in heard] == list(range(1, self.sounds + 1))
        assert all(base64.b64decode(sound) == PIECE.data for _, sound in heard)

    def teardown(self) -> None:
        """Disconnect the phone, wait 31 s, and require that the renderer has stopped and no session is left."""
        if hasattr(self, "rig"):
            if not self.lost:
                self.client.disconnect(1000)
            self.rig.after(31.0)
            assert self.rig.scripted.stopped
            assert len(self.rig.output.sessions()) == 0


def counts(event: dict[str, Any]) -> bool:
    """Report whether an event counts in a phone's cursor; other events may be repeated (wire terminal-voice 4.8)."""
    return not event["type"].startswith(("voice.session.", "voice.replay."))


TestResuming = Resuming.TestCase
TestResuming.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
