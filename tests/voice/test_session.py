from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.voice_session import Cursor
from svc_proto.voice.connection import VoiceConnection
from svc_proto.voice.session import MAX_EARLY, VoiceMode, VoiceSession
from svc_proto.voice.settings import OutputSettings, RealtimeSettings
from tests.voice.dialogue import DialogueRun, play, read_dialogues
from tests.voice.harness import PHONE, VoiceHarness, VoiceTestClient


class SlowMode(VoiceMode):
    """Mode whose session becomes ready only when a test orders it; `happened` has the calls and messages so far."""

    def __init__(self, session: VoiceSession) -> None:
        super().__init__(session)
        self.happened: list[str] = []

    def on_attached(self) -> None:
        self.happened.append("attached")

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        self.happened.append(kind)
        if kind == "bad":
            raise Refused(400, "bad", "this is bad")
        if kind == "end":
            self.session.close("asked to")
        return True

    def on_lost(self) -> None:
        self.happened.append("lost")

    def on_detached(self) -> None:
        self.happened.append("detached")

    def on_resumed(self) -> None:
        self.happened.append("resumed")

    def on_closed(self) -> None:
        self.happened.append("closed")

    def resumes_after(self, code: int) -> bool:
        return code != 1000


class Slow(DialogueRun):
    """Dialogue run with one session in `SlowMode`, or in another mode."""

    def __init__(self, mode: Callable[[VoiceSession], VoiceMode] = SlowMode) -> None:
        super().__init__()
        self.answer = self.rig.within(lambda: self.family.admit(PHONE, OutputSettings(), mode))
        (self.session,) = self.family.sessions()

    def begin(self) -> None:
        self.rig.within(self.session.begin)

    def fails(self) -> None:
        """Let the mode fail to start: report an error and release the session's socket."""

        def fail() -> None:
            self.session.error("no client there", provider="x")
            self.session.release(1011, "no client there")

        self.rig.within(fail)

    def extend(self, seconds: str) -> None:
        self.rig.within(lambda: self.session.extend(float(seconds)))

    def ends(self, why: str, code: str = "1008") -> None:
        self.rig.within(lambda: self.session.close(why, code=int(code)))

    def emits(self, kind: str) -> None:
        self.rig.within(lambda: self.session.emit(kind))
        self.rig.within(lambda: self.session.emit_audio(kind, b"", 24_000))

    def early(self, count: str) -> None:
        """Send `count` messages of client A before the session is ready."""
        for _ in range(int(count)):
            self.clients["A"].send_event("one")

    def happened(self, *words: str) -> None:
        """Require that the mode has received exactly these events so far."""
        assert cast("SlowMode", self.session.mode).happened == list(words)

    def state(self, word: str) -> None:
        assert self.session.life.state.value == word

    def acked(self, event: str) -> None:
        assert self.session.life.acked == Cursor(event=int(event))

    def awaits(self) -> None:
        assert self.rig.engine.next_deadline() is not None


DIALOGUES = read_dialogues("voice/session", max_early=MAX_EARLY)


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Slow())


def test_socket_opened_after_the_end_of_the_session() -> None:
    slow = Slow()
    handler = VoiceConnection(slow.session)
    slow.ends("over")
    client = VoiceTestClient(slow.rig, handler)
    assert (client.events()[0]["reason"], client.closed) == ("session_closed", 4008)


def test_base_mode_behaviour() -> None:
    slow = play(["A comes", "A puts client.ack -> nothing", "A puts anything -> error"], Slow(VoiceMode))
    play(
        ["A puts session.resume resume_token=$token -> session.resumed replay.started session.ready error replay.done"],
        slow,
    )
    for hook in (slow.session.mode.on_lost, slow.session.mode.on_detached):
        slow.rig.within(hook)
    play(["A leaves", "state closed"], slow)


def test_sound_goes_to_the_client_of_its_session(rig: VoiceHarness) -> None:
    clients = [rig.attach(rig.output, rig.create(rig.output)) for _ in range(2)]
    for client in clients:
        assert client.types() == ["voice.session.ready"]
    for speaker, other in (clients, clients[::-1]):
        speaker.send_event("response.create", text="Ready when you are.")
        assert other.events() == []
        assert speaker.types().count("voice.audio.delta") == 8


def test_a_log_of_one_session_and_the_sweep_of_others(rig: VoiceHarness) -> None:
    def create(days: int) -> None:
        rig.lab.admit(PHONE, RealtimeSettings(run_retention_days=days), VoiceMode)

    for days in (0, 14, 14):
        rig.within(partial(create, days))
    (sweep,) = rig.sweeps
    assert (sweep.name, sweep.prefix) == ("/home/realtime-voice-runs", "realtime-")
    assert sweep.before == rig.now.wall - 14 * 86_400
    rig.after(3600.0)
    for days in (0, 1):
        rig.within(partial(create, days))
    assert [round(rig.now.wall - each.before) for each in rig.sweeps[1:]] == [86_400]
