import base64
import json
from random import Random
from typing import Any

import pytest

from svc_proto.engine.flow import Flow, sleep
from svc_proto.voice.agent.api_runs import ApiRuns
from svc_proto.voice.realtime.actions import AppendInput, StartRun
from tests.loops.realtime_agent import ANSWER, SOUND, RealtimeAgentSetup, ends, of, play, run, types
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.voice_client import VoiceClient, create, log_of
from tests.support.servers.api_server import ScriptedApi, hello
from tests.support.servers.realtime_server import (
    FailedTurn,
    OpenAiRealtimeServer,
    RawMessageTurn,
    RealtimeSession,
    SpokenTurn,
    Turn,
)

QUESTION: list[tuple[str, dict[str, object]]] = [
    ("run.started", {"run_id": "n1"}),
    ("confirmation.requested", {"confirmation_id": "q1", "message": "May I?"}),
]


def audio(data: bytes = SOUND) -> str:
    return base64.b64encode(data).decode()


def logged(agent: RealtimeAgentSetup, kind: str) -> list[dict[str, Any]]:
    """Let two seconds pass, and return the events of this kind in the event log."""
    assert isinstance(agent.world, SimulatedEnvironment)
    agent.world.pass_time(2.0)
    lines = agent.world.contents(agent.answer["event_log_path"]).splitlines()
    return [line for line in map(json.loads, lines) if line["type"] == kind]


def test_the_microphone(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world, SpokenTurn("Hello there."))
    client = agent.open()
    client.send("input_audio.append", chunk_id=1, sample_rate=16_000, audio_base64=audio())
    client.send("input_audio.append", chunk_id=1, sample_rate=16_000, audio_base64=audio())
    client.send("input_audio.append", audio_base64=audio(b"\1\0\2"), chunk_id=3.0)
    client.send("input_audio.append", audio_base64=audio(b"\1\0"))
    heard = [client.receive() for _ in range(4)]
    assert [event.get("duplicate", False) for event in heard] == [False, True, False, False]
    assert [event["total_bytes"] for event in heard] == [6400, 6400, 6402, 6404]
    assert [event["input_chunk_id"] for event in heard] == [1, 1, 3, None]
    client.send("input_audio.commit")
    play(client, ends)
    assert len(agent.provider.heard[0]) == 6400 * 3 // 2 + 4  # at the provider's sample rate
    client.send("input_audio.append", audio_base64=audio(b"\1\0"))
    client.send("input_audio.commit")  # too short to be committed
    events = play(client, ends)
    assert of(events, "voice.input_transcript.final")["text"] == ""
    for forgets in ("input_audio.clear", "response.cancel"):
        client.send("input_audio.append", audio_base64=audio())
        client.send(forgets)
        if forgets == "response.cancel":
            play(client, ends)
        client.send("input_audio.commit")
        assert of(play(client, ends), "voice.input_transcript.final")["text"] == ""
    assert agent.provider.kinds.count("input_audio_buffer.commit") == 1
    client.send("input_audio.append", audio_base64=audio(bytes(4800)), sample_rate=24_000)
    client.send("input_audio.commit")  # a tenth of a second is enough
    play(client, ends)
    assert agent.provider.kinds.count("input_audio_buffer.commit") == 2


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"type": "input_audio.append"}, "audio_base64"),
        ({"type": "input_audio.append", "audio_base64": "AAA"}, "base64"),
        ({"type": "input_audio.append", "audio_base64": "", "sample_rate": 7_999}, "sample_rate"),
        ({"type": "input_audio.append", "audio_base64": "", "sample_rate": 96_001}, "sample_rate"),
        ({"type": "input_audio.append", "audio_base64": "", "chunk_id": "1"}, "chunk_id"),
        ({"type": "response.create"}, "text is required"),
        ({"type": "svc.confirm", "answer": 7}, "answer"),
        ({"type": "playback.drained", "call_id": 7}, "call_id"),
        ({"type": "no.such.message"}, "unknown message"),
    ],
)
def test_invalid_messages_are_refused(world: SimulatedEnvironment, message: dict[str, object], problem: str) -> None:
    client = RealtimeAgentSetup(world).open()
    client.ws.send_text(json.dumps(message))
    assert problem in client.until("voice.error")[-1]["message"]


def test_messages_without_a_turn(world: SimulatedEnvironment) -> None:
    client = RealtimeAgentSetup(world).open()
    client.send("session.start")
    for word in ("svc", "hermes"):
        client.send(f"{word}.result.respeak")
        assert client.receive()["type"] == "svc.result.respeak_unavailable"


def test_provider_session_setup(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    home = world.relay_host.state
    personalities = {"pirate": {"system_prompt": "Arr."}}
    config = {"agent": {"personalities": personalities}, "display": {"personality": "pirate"}}
    disk = world.relay_host.disk
    disk.put(f"{home}/profiles/work/config.yaml", json.dumps(config).encode())
    disk.put(f"{home}/profiles/work/memories/USER.md", b"Has a cat.")
    disk.put(f"{home}/memories/MEMORY.md", b"Likes tea." + b" x" * 2000)
    client = agent.open(profile="work", context_messages=[{"role": "user", "content": "earlier"}])
    assert agent.answer["context_message_count"] == 1
    world.wait_until(lambda: bool(agent.provider.said))
    session = agent.provider.said[0]["session"]
    instructions = session["instructions"]
    assert all(text in instructions for text in ("Arr.", "Likes tea.", "Has a cat.", "user: earlier", "svc_run_task"))
    assert [tool["name"] for tool in session["tools"]] == agent.answer["tool_surface"]
    assert agent.provider.asked.headers.get(b"authorization") == b"Bearer sk-voice"
    client.send("session.close")
    assert client.ws.wait_closed().code == 1000


def test_chat_session_is_continued(world: SimulatedEnvironment) -> None:
    api = ScriptedApi()
    api.sessions["c1"] = [{"role": "user", "content": "what I said"}, {"role": "assistant", "content": "yes"}]
    api.turns.append([*QUESTION, *hello(ANSWER)[3:]])
    agent = RealtimeAgentSetup(world, run("call mum"), SpokenTurn(ANSWER), scripted=api)
    events = play(agent.start_turn("call mum", chat_session_id="c1"), ends)
    assert (agent.answer["context_message_count"], agent.answer["chat_session_id"]) == (2, "c1")
    assert "what I said" in agent.provider.said[0]["session"]["instructions"]
    assert of(events, "svc.confirmation.requested")["message"] == "May I?"
    assert "svc.session.bound" not in types(events)
    assert api.seen[-1][2]["message"] == "call mum"
    assert "voice" in api.seen[-1][2]["system_message"]


@pytest.mark.parametrize(("status", "answer"), [(200, "allow"), (409, None), (500, None)])
def test_an_answer_to_a_question(world: SimulatedEnvironment, status: int, answer: str | None) -> None:
    api = ScriptedApi()
    api.fixed["/approval"] = (status, {"resolved": 1})
    api.turns.append(
        [("run.started", {"run_id": "n1"}), ("tool.pending", {"tool_name": "phone_call", "call_id": "t1"})]
    )
    api.run_status, api.ends_after = "waiting_for_approval", 60.0
    agent = RealtimeAgentSetup(world, run("call mum"), SpokenTurn(ANSWER), scripted=api)
    client = agent.start_turn("call mum")
    play(client, lambda event: event["type"] == "svc.confirmation.requested")
    client.send("svc.confirm", confirmation_id="t1", answer="allow")
    forwarded = client.until("svc.confirmation.forwarded")[-1]
    assert forwarded["answer"] == answer
    assert ("/v1/runs/n1/approval", {"choice": "once", "call_id": "t1"}) in [(path, body) for _, path, body in api.seen]
    assert len(logged(agent, "voice.realtime_agent.approval_failed")) == (status == 500)


@pytest.mark.parametrize("status", [200, 500])
def test_pending_tool_without_approval_requests_no_confirmation(world: SimulatedEnvironment, status: int) -> None:
    api = ScriptedApi()
    if status != 200:
        api.run_status, api.fixed["/v1/runs/n1"] = "waiting_for_approval", (status, {})
    pending: dict[str, object] = {"tool_name": "phone_call", "call_id": "t1"}
    api.turns.append([("run.started", {"run_id": "n1"}), ("tool.pending", pending)])
    agent = RealtimeAgentSetup(world, run("call mum"), scripted=api)
    api.ends_after = 60.0
    client = agent.start_turn("call mum")
    assert "svc.confirmation.requested" not in types(play(client, lambda event: event.get("floor") == "idle"))


def test_bug_in_a_run_is_reported(world: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = RealtimeAgentSetup(world, run("x"), scripted=ScriptedApi())
    client = agent.open()
    monkeypatch.setattr("svc_proto.voice.agent.api_runs.ApiRun.perform", None)
    client.send("response.create", text="x")
    assert "internal error, reference" in client.until("voice.error")[-1]["message"]


@pytest.mark.parametrize(("turn", "delivery"), [(SpokenTurn("One shot."), "fallback"), (FailedTurn(), "visual_only")])
def test_answer_not_spoken_by_the_provider(world: SimulatedEnvironment, turn: Turn, delivery: str) -> None:
    agent = RealtimeAgentSetup(world, run(f"/echo {ANSWER}"), SpokenTurn("What did you say?"), turn)
    events = play(agent.start_turn("x"), ends)
    done = events[-1]
    assert (done["delivery"], done["source"], done["final_text"]) == (delivery, "svc", ANSWER)
    assert len(agent.peer.sessions) == 2  # the answer was requested outside of the conversation
    assert ("metrics" in done) is (delivery == "fallback")
    assert bool(logged(agent, "voice.response.forced_summary_failed")) is (delivery == "visual_only")


def test_notices_and_errors_of_the_provider(world: SimulatedEnvironment) -> None:
    notice = {"type": "error", "error": {"message": "Cancellation failed: no active response found"}}
    error = {"type": "error", "error": {"message": "quota exceeded", "code": "insufficient_quota"}}
    agent = RealtimeAgentSetup(world, RawMessageTurn((notice, error)))
    client = agent.start_turn("x")
    events = client.until("voice.error")
    assert "quota" in events[-1]["message"]
    assert client.receive()["type"] == "voice.response.done"
    (line,) = logged(agent, "voice.realtime_agent.provider_notice")
    assert "no active response" in line["message"]
    assert logged(agent, "voice.realtime_agent.provider_model_resolved")[0]["model"] == "resolved-model"


def test_provider_disconnects_between_turns(world: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(session: RealtimeSession, message: dict[str, Any]) -> None:
        session.socket.close(1001, "maintenance")

    monkeypatch.setitem(RealtimeSession._handlers, "input_audio_buffer.clear", leave)
    agent = RealtimeAgentSetup(world, SpokenTurn("Hi."))
    client = agent.start_turn("x")
    play(client, ends)
    client.send("input_audio.clear")
    assert client.ws.wait_closed().code == 1000


def test_client_disconnects_before_the_session_is_ready(
    world: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def think(peer: OpenAiRealtimeServer, *_: object) -> Flow[None]:
        yield from sleep(peer.engine, 5.0)

    agent = RealtimeAgentSetup(world, SpokenTurn("Hi."))
    monkeypatch.setattr(OpenAiRealtimeServer, "authorize", think)
    answer = create(world, agent.token, "realtime-agent", provider="openai_realtime")
    VoiceClient(world, agent.token, answer).break_off()
    world.pass_time(1.0)
    monkeypatch.undo()
    client = VoiceClient(world, agent.token, answer)
    client.until("voice.session.ready")


def test_a_missing_key(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    answer = create(world, agent.token, "realtime-agent", provider="xai_realtime")
    client = VoiceClient(world, agent.token, answer)
    assert "XAI_API_KEY" in client.until("voice.error")[-1]["message"]
    assert client.ws.wait_closed().code == 1011


def test_client_close_between_turns_ends_the_session(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    client = agent.open()
    client.break_off()
    again = VoiceClient(world, agent.token, agent.answer)
    again.send("session.resume", resume_token=agent.answer["resume_token"])
    again.until("voice.replay.done")
    again.ws.close(1000)
    assert log_of(world, agent.answer)[-1]["reason"] == "client closed"
    world.wait_until(lambda: agent.provider.closed is not None)


@pytest.mark.parametrize("provider", ["openai_realtime", "stub"])
def test_any_messages(world: SimulatedEnvironment, provider: str) -> None:
    """Send random messages in random order; the session still answers, and ends when the client closes it."""
    chance = Random(provider)
    kinds = "input_audio.append input_audio.commit input_audio.clear response.create response.cancel playback.drained"
    kinds += " svc.confirm hermes.confirm svc.result.respeak client.ack session.start nothing"
    names = "text prompt chunk_id sample_rate audio_base64 call_id confirmation_id answer event_id "
    names += "played_audio_event_id"
    values: list[object] = [None, True, -1, 3, 2.5, 10**30, [], {}, 16_000]
    values += ["", "x", "AAAA", "/echo hi", "\u0000", "allow"]
    agent = RealtimeAgentSetup(world, *[SpokenTurn("Fine.")] * 50)
    client = agent.open(provider=provider)
    for _ in range(300):
        fields = {name: chance.choice(values) for name in chance.sample(names.split(), 3)}
        client.send(chance.choice(kinds.split()), **fields)
    client.send("response.cancel")
    client.send("svc.result.respeak")
    while client.receive()["type"] != "svc.result.respeak_unavailable":
        pass
    world.pass_time(30.0)
    client.send("session.close")
    while client.ws.receive(10.0).__class__.__name__ != "WebSocketClosed":
        pass


def test_run_failing_at_once(world: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(holder: ApiRuns, order: StartRun, system: str) -> None:
        holder._talk.run_failed(order.call_id, "at once")
        holder._carry_out()

    monkeypatch.setattr(ApiRuns, "start", start)
    client = RealtimeAgentSetup(world, run("x"), scripted=ScriptedApi()).start_turn("x")
    assert client.until("voice.error")[-1]["message"] == "at once"
    assert client.receive()["type"] == "voice.response.done"


def test_stopped_run_without_an_id(world: SimulatedEnvironment) -> None:
    api = ScriptedApi()
    api.held = True
    agent = RealtimeAgentSetup(world, run("x"), scripted=api)
    client = agent.start_turn("x")
    play(client, lambda event: event["type"] == "svc.session.bound")
    world.wait_until(lambda: len(api.seen) == 2)
    client.send("response.cancel")
    client.until("voice.response.done")
    relay = world.relay_host.processes[-1]
    channels = relay.channel_count
    world.pass_time(15.0)
    assert len(api.seen) == 2
    assert relay.channel_count == channels - 1  # no flow waits for the run id any more


def test_detached_client_pauses_the_provider(world: SimulatedEnvironment) -> None:
    long = SpokenTurn("A long story. " * 50, sound=bytes(24_000 * 2 * 120), pieces=400)
    agent = RealtimeAgentSetup(world, long)
    client = agent.start_turn("tell me a story")
    client.until("voice.output_audio.delta")
    client.break_off()
    world.pass_time(100.0)  # the ring buffer is half full: the provider is not read any further, and stays connected
    again = VoiceClient(world, agent.token, agent.answer)
    again.send("session.resume", resume_token=agent.answer["resume_token"], last_event_id=3)
    assert play(again, ends)[-1].get("cancelled") is None


def test_messages_to_a_lost_provider_are_dropped(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world)
    agent.open()
    relay = world.relay_host.processes[-1].core._service  # type: ignore[attr-defined]  # of the process in the simulation
    (session,) = relay.voice_side.sessions["agent"].sessions()
    session.mode._link = None
    session.mode.ask_provider(AppendInput(SOUND))
    world.pass_time(1.0)
    assert agent.provider.kinds == ["session.update"]
