import base64
from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.basics.pcm import wav_head
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.voice.agent import agent_mode
from svc_proto.voice.provider_interface import (
    AudioChunk,
    AudioSink,
    ProviderError,
    Recording,
    RenderResult,
    SpeechRequest,
)
from svc_proto.voice.realtime.actions import Transcribe
from svc_proto.voice.realtime.rendered_conversation import HEARING_RATE, RenderedConversation
from svc_proto.voice.realtime.run_events import ApiRunStarted
from svc_proto.voice.realtime.voice_runs import VoiceRuns
from tests.loops.realtime_agent import KEY, SOUND, RealtimeAgentSetup, of, types
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.voice_client import VoiceClient, create, log_of
from tests.support.playbook import make_flow
from tests.support.servers.api_server import ScriptedApi, hello


class Engines:
    """Fake speech engines of the host, for synthesis and transcription."""

    def __init__(self, hears: str | Exception = " what time is it ", *, mute: bool = False) -> None:
        self.hears = hears
        self.mute = mute
        self.recordings: list[Recording] = []
        self.heard = b""
        self.disk: Any = None
        self.texts: list[str] = []

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[str]:
        yield from ()
        self.recordings.append(recording)
        self.heard = self.disk.get(recording.path)
        if isinstance(self.hears, Exception):
            raise self.hears
        return self.hears

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        self.texts.append(request.text)
        if self.mute:
            raise ProviderError("no voice")
        yield from sink.chunk(AudioChunk(b"\1\0" * 50, 24_000, "frames:0-50"))
        return RenderResult(provider="local", model="m", voice="v")


def local(world: SimulatedEnvironment, engines: Engines, api: ScriptedApi) -> tuple[RealtimeAgentSetup, VoiceClient]:
    """Open a session whose provider is `local`, with these fake engines."""
    agent = RealtimeAgentSetup(world, scripted=api)
    relay = world.relay_host.processes[-1].core._service  # type: ignore[attr-defined]  # of the process in the simulation
    relay.voice_side.voice.providers.transcriber = lambda provider: engines
    relay.voice_side.voice.providers.renderer = lambda provider: engines
    engines.disk = world.relay_host.disk
    return agent, agent.open(provider="local")


def speak(client: VoiceClient) -> None:
    client.send("input_audio.append", chunk_id=1, sample_rate=8_000, audio_base64=base64.b64encode(SOUND).decode())
    client.send("input_audio.commit")


def test_an_utterance_is_understood_and_answered(world: SimulatedEnvironment) -> None:
    api, engines = ScriptedApi(), Engines()
    api.turns.append(hello("It is noon."))
    _, client = local(world, engines, api)
    speak(client)
    events = client.until("voice.response.done")
    final = of(events, "voice.input_transcript.final")
    assert (final["text"], final["sample_rate"], final["input_audio_bytes"]) == ("what time is it", 8_000, 6400)
    assert api.seen[-1][2]["message"] == "what time is it"
    assert engines.texts == ["It is noon."]
    (recording,) = engines.recordings
    assert (recording.size, recording.content_type, recording.suffix) == (12_800 + 44, "audio/wav", ".wav")
    assert engines.heard == wav_head(12_800, 16_000) + SOUND * 2
    assert events[-1]["final_text"] == "It is noon."
    assert events[-1]["metrics"]["provider"] == "local"
    assert not engines.disk.exists(recording.path)  # the upload was deleted
    api.turns.append(hello("It is one."))
    client.send("response.create", text="and now?")
    events = client.until("voice.response.done")
    assert of(events, "voice.input_transcript.final")["input_audio_bytes"] == 0  # since the first turn
    assert events[-1]["final_text"] == "It is one."
    assert client.ws.close(1000).code == 1000


def test_utterance_that_comes_during_a_turn_is_kept() -> None:
    conversation = RenderedConversation(VoiceRuns(word="svc", speakable=str), lambda: 0.0, hears=True)
    conversation.add_user_text("one")
    conversation.append_audio(SOUND, HEARING_RATE)
    with pytest.raises(Refused):
        conversation.commit(None)
    conversation.cancel()
    conversation.commit(None)
    assert Transcribe(SOUND, HEARING_RATE) in conversation.out
    for text in ("two", None):  # the client's own text replaces the audio, too
        conversation.cancel()
        conversation.append_audio(SOUND, HEARING_RATE)
        conversation.commit(text)
    assert conversation.out[-1] == Transcribe(SOUND, HEARING_RATE)


@pytest.mark.parametrize("silence", [True, False])
def test_empty_transcript(world: SimulatedEnvironment, silence: bool) -> None:
    _, client = local(world, Engines("  "), ScriptedApi())
    if silence:
        client.send("input_audio.commit")
    else:
        speak(client)
    events = client.until("voice.response.done")
    assert of(events, "voice.input_transcript.final")["text"] == ""
    assert "voice.response.started" not in types(events)


@pytest.mark.parametrize(
    ("engines", "problem"),
    [(Engines(ProviderError("the engine failed")), "the engine failed"), (Engines(mute=True), "no voice")],
    ids=["deaf", "mute"],
)
def test_failing_engines(world: SimulatedEnvironment, engines: Engines, problem: str) -> None:
    _, client = local(world, engines, ScriptedApi())
    speak(client)
    assert client.until("voice.error")[-1]["message"] == problem
    assert not engines.disk.exists(engines.recordings[0].path)
    assert client.receive()["type"] == "voice.response.done"


def test_failing_disk(world: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = local(world, Engines(), ScriptedApi())
    monkeypatch.setattr(agent_mode, "spool_file", lambda *_: make_flow(Failure(FailureKind.NO_SPACE)))
    speak(client)
    assert "could not be stored" in client.until("voice.error")[-1]["message"]


def test_a_long_utterance(world: SimulatedEnvironment) -> None:
    _, client = local(world, Engines(), ScriptedApi())
    chunk = base64.b64encode(bytes(1024 * 1024)).decode()
    for number in range(1, 10):
        client.send("input_audio.append", chunk_id=number, sample_rate=16_000, audio_base64=chunk)
    assert "at most" in client.until("voice.error")[-1]["message"]
    client.send("input_audio.clear")
    client.send("input_audio.append", sample_rate=16_000, audio_base64=chunk)
    assert client.until("voice.input_audio.received")


def test_cancel_during_transcription(world: SimulatedEnvironment) -> None:
    engines = Engines()

    def never(recording: Recording, **more: str) -> Flow[str]:
        yield from wait(OperationId(10**9), 1e9)
        raise AssertionError

    engines.transcribe = never  # type: ignore[method-assign]  # an engine that hangs
    _, client = local(world, engines, ScriptedApi())
    speak(client)
    client.until("voice.input_audio.received")
    client.send("response.create", text="hello?")
    assert "already running" in client.until("voice.error")[-1]["message"]
    client.send("response.cancel")
    assert types(client.until("voice.response.done")) == ["svc.run.cancelled", "voice.response.done"]


def test_the_stub_with_a_text_beside_the_utterance(world: SimulatedEnvironment) -> None:
    api = ScriptedApi()
    thinks = ("tool.progress", {"tool_name": "_thinking", "delta": "Hm"})
    api.turns.append([("run.started", {"run_id": "n1"}), thinks, *hello("Yes.")[1:]])
    agent = RealtimeAgentSetup(world, scripted=api)
    client = agent.open(provider="stub")
    client.send("input_audio.append", audio_base64=base64.b64encode(SOUND).decode())
    client.send("input_audio.commit", text="are you there")
    events = client.until("voice.response.done")
    assert of(events, "voice.input_transcript.final")["input_audio_bytes"] == 6400
    assert "source" not in of(events, "voice.response.delta")
    assert of(events, "voice.response.turn_completed")["content"] == "Yes."
    assert "source" not in of(events, "svc.run.started")
    assert of(events, "svc.tool.delta")["tool_name"] == "_thinking"


def test_failed_run(world: SimulatedEnvironment) -> None:
    api = ScriptedApi(key="another")
    client = RealtimeAgentSetup(world, scripted=api).open(provider="stub")
    client.send("response.create", text="x")
    error = client.until("voice.error")[-1]
    assert error["error_code"] == "svc_broker_auth_failed"
    assert KEY not in str(error)
    assert client.receive()["type"] == "voice.response.done"
    api.key, api.turns = "", [[("error", {"message": "quota"})]]
    for said in ("quota", "status 500"):
        client.send("response.create", text="x")
        error = client.until("voice.error")[-1]
        assert (said in error["message"], "error_code" in error) == (True, False)
        api.problem = (500, b"{}")


def test_run_stopped_by_another_client(world: SimulatedEnvironment) -> None:
    api = ScriptedApi()
    api.turns.append([("run.started", {"run_id": "n1"}), ("run.completed", {"interrupted": True})])
    client = RealtimeAgentSetup(world, scripted=api).start_turn("x", provider="stub")
    events = client.until("voice.response.done")
    assert types(events)[-2:] == ["svc.run.cancelled", "voice.response.done"]
    assert events[-1]["cancelled"] is True


def test_a_cancel_reaches_the_run(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    client = agent.start_turn("/wait 9", provider="stub")
    run_id = client.until("svc.tool.started")[-1]["run_id"]
    client.send("response.cancel")
    events = client.until("voice.response.done")
    assert (types(events)[-2:], events[-1]["cancelled"]) == (["svc.run.cancelled", "voice.response.done"], True)
    world.wait_until(lambda: agent.api.request("GET", f"/v1/runs/{run_id}").json["status"] == "cancelled")


def test_late_results_are_ignored(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world, scripted=ScriptedApi())
    client = agent.start_turn("x", provider="stub")
    client.until("voice.response.done")
    relay = world.relay_host.processes[-1].core._service  # type: ignore[attr-defined]  # of the process in the simulation
    (session,) = relay.voice_side.sessions["agent"].sessions()
    session.mode.talk.run_event("turn-1", ApiRunStarted("n1"))
    session.mode.talk.approved("turn-1", "q1", None)
    session.mode.carry_out()
    client.send("svc.result.respeak")
    assert client.until("svc.result.respeak_unavailable")


def test_progress_heartbeats_and_confirmations(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    client = agent.open(provider="stub")
    client.send("svc.confirm", confirmation_id="q", answer="allow")
    assert client.until("svc.confirmation.forwarded")[-1]["answer"] is None
    client.send("response.create", text="/approve")
    asked = client.until("svc.confirmation.requested")[-1]
    assert client.until("svc.run.progress")[-1]["status"] == "waiting_for_confirmation"
    client.send("svc.confirm", confirmation_id=asked["confirmation_id"], answer="allow")
    events = client.until("voice.response.done")
    assert of(events, "svc.confirmation.forwarded")["answer"] == "allow"
    assert of(events, "svc.tool.completed")["result_preview"] == "you allowed it"


def test_any_close_ends_the_session(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    client = agent.start_turn("/wait 9", provider="stub")
    client.until("svc.tool.started")
    client.break_off()
    assert log_of(world, agent.answer)[-1]["reason"] == "client closed"
    assert create(world, agent.token, "realtime-agent", provider="stub")["success"]
