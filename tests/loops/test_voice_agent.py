"""The realtime agent on every loop: a real relay, a real API server, and a provider that speaks a vendor's protocol."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from svc_proto.basics.brand import HERMES, SVC, Brand
from svc_proto.wire.urls import encode_segment
from tests.loops.agents import ANSWER, KEY, Agent, ends, of, play, run, talk, types
from tests.loops.conftest import open_world
from tests.loops.virtual import VirtualWorld
from tests.loops.voices import VoiceClient
from tests.loops.wires import Declined
from tests.loops.world import World
from tests.peers.realtime import Called, Dropped, Said
from tests.voice.sounds import CLEAR_VOICE, SENTENCE, needs_engines, spoken, words


def test_speech_becomes_a_run_and_its_answer_is_spoken(world: World, tmp_path: Path) -> None:
    speech_becomes_a_run(world, tmp_path, SVC)


def test_the_same_for_a_stock_phone(tmp_path: Path) -> None:
    world = VirtualWorld()
    speech_becomes_a_run(world, tmp_path, HERMES)
    world.close()


def speech_becomes_a_run(world: World, tmp_path: Path, brand: Brand) -> None:
    called = Called(f"{brand.name}_run_task", {"text": f"/echo {ANSWER}"}, before="Let me look.")
    agent = Agent(world, tmp_path, called, Said(ANSWER), brand=brand)
    client = agent.open()
    talk(client)
    events = play(client, ends)
    word = brand.name
    assert types(events) == [
        "voice.input_audio.received",
        "voice.input_transcript.delta",
        "voice.input_transcript.final",
        "voice.response.started",
        "voice.response.delta",
        "voice.output_audio.delta",
        "voice.response.delta",
        "voice.output_audio.delta",
        "voice.output_audio.done",
        "voice.playback_drain.requested",
        f"{word}.run.progress",
        f"{word}.session.bound",
        f"{word}.run.started",
        f"{word}.message.started",
        f"{word}.run.progress",
        f"{word}.run.completed",
        "voice.playback_drain.requested",
        "voice.response.started",
        "voice.response.delta",
        "voice.output_audio.delta",
        "voice.response.delta",
        "voice.output_audio.delta",
        "voice.output_audio.done",
        "voice.response.done",
    ]
    assert [event["event_id"] for event in events] == list(range(2, 2 + len(events)))
    audio = [event["audio_event_id"] for event in events if event["type"] == "voice.output_audio.delta"]
    assert audio == [1, 2, 3, 4]
    done = events[-1]
    assert (done["delivery"], done["provider"]) == ("forced_summary", "openai_realtime")
    said = [event for event in events if event["type"] == "voice.response.delta" and "delivery" in event]
    assert "".join(event["delta"] for event in said) == ANSWER
    started = of(events, f"{word}.run.started")
    chat = started["chat_session_id"]
    assert started["source"] == word
    assert done["chat_session_id"] == chat == of(events, f"{word}.session.bound")["session_id"]
    assert agent.outputs()[0]["text"] == ANSWER
    assert [row["content"] for row in agent.api.messages(chat)] == [f"/echo {ANSWER}", ANSWER]
    assert agent.provider.kinds.count("response.create") == 2
    assert client.ws.close(1000).code == 1000
    logged = agent.log()
    assert [line["event_id"] for line in logged if "event_id" in line] == list(range(1, len(events) + 2))
    assert "voice.response.intermediate_done" in [line["type"] for line in logged]
    assert logged[0]["type"] == "voice.realtime_agent.session.created"
    assert KEY not in json.dumps(logged)
    with pytest.raises(Declined) as over:
        VoiceClient(world, agent.token, agent.answer)
    assert over.value.answer.status == 410


@pytest.mark.parametrize(("answer", "result"), [("allow", "you allowed it"), ("deny", "did not allow")])
def test_a_confirmation_reaches_the_run(world: World, tmp_path: Path, answer: str, result: str) -> None:
    agent = Agent(world, tmp_path, run("/approve"), Said("Something else altogether."), Said("And again."))
    client = agent.ask("do it")
    events = play(client, lambda event: event["type"] == "svc.confirmation.requested")
    asked = events[-1]
    assert "demo_ask" in asked["message"]
    other = {"confirmation_id": "another", "answer": "allow"}
    client.say("svc.confirm", **other)
    assert client.until("svc.confirmation.forwarded")[-1]["answer"] is None
    client.say("hermes.confirm", confirmation_id=asked["confirmation_id"], answer=f" {answer.upper()} ")
    came: set[str] = set()  # on two connections to the API server: either may be first

    def both(event: dict[str, Any]) -> bool:
        came.add(event["type"])
        return "svc.confirmation.forwarded" in came and not came.isdisjoint(("svc.tool.completed", "svc.tool.failed"))

    events = play(client, both)
    forwarded = of(events, "svc.confirmation.forwarded")
    assert forwarded["confirmation_id"] == asked["confirmation_id"]
    assert forwarded["answer"] == answer
    if answer == "allow":
        assert of(events, "svc.tool.completed")["result_preview"] == result
    else:
        assert result in of(events, "svc.tool.failed")["error"]
    assert sum(event["type"] == "svc.tool.started" for event in events) == 0  # it was told when it began to wait
    done = play(client, ends)[-1]
    assert done["delivery"] == "fallback"  # the provider said something else, and the relay spoke for it
    assert done["final_text"]


def test_a_cancel_stops_the_run_on_the_api_server(world: World, tmp_path: Path) -> None:
    agent = Agent(world, tmp_path, run("/wait 9"))
    client = agent.ask("take your time")
    started = play(client, lambda event: event["type"] == "svc.tool.started")[-1]
    client.say("response.cancel")
    events = client.until("voice.response.done")
    assert of(events, "svc.run.cancelled")["run_id"] == started["run_id"]
    assert events[-1]["cancelled"] is True
    run_path = f"/v1/runs/{encode_segment(started['run_id'])}"

    def status() -> str:
        return str(json.loads(agent.api.ask("GET", run_path).body)["status"])

    world.eventually(lambda: status() == "cancelled", 5.0)
    world.eventually(lambda: agent.outputs()[0]["cancelled"] is True)
    agent.script.turns.append(Said("Ready again."))
    client.say("response.create", text="and now?")
    assert "cancelled" not in play(client, ends)[-1]


def test_the_stub_renders_after_the_chat(world: World, tmp_path: Path) -> None:
    agent = Agent(world, tmp_path)
    client = agent.open(provider="stub")
    client.say("input_audio.commit")
    assert "text is required" in client.until("voice.error")[-1]["message"]
    client.say("response.create", text="/echo one two")
    events = client.until("voice.response.done")
    assert [kind for kind in types(events) if kind.startswith("voice.")] == [
        "voice.input_transcript.final",
        "voice.response.started",
        "voice.response.delta",
        "voice.response.turn_completed",
        "voice.output_audio.delta",
        "voice.output_audio.done",
        "voice.response.done",
    ]
    assert events[-1]["final_text"] == "one two"
    assert events[-1]["response_id"] is None
    client.say("response.create", text="/wait 9")
    client.until("svc.tool.started")
    client.say("response.create", text="another")
    assert "already running" in client.until("voice.error")[-1]["message"]
    client.say("response.cancel")
    assert types(client.until("voice.response.done"))[-2:] == ["svc.run.cancelled", "voice.response.done"]


def test_a_provider_that_drops_its_socket(world: World, tmp_path: Path) -> None:
    client = Agent(world, tmp_path, Dropped(code=None)).ask("hello")
    assert "closed the connection" in client.until("voice.error")[-1]["message"]
    assert client.hear()["type"] == "voice.response.done"
    assert client.ws.wait_closed().code == 1011


@needs_engines
def test_a_person_talks_without_any_key(runtime: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The host's own engines hear and speak: what was said reaches the agent, and its answer is heard."""
    with open_world(runtime, tmp_path, request) as world:
        agent = Agent(world, tmp_path)
        client = agent.open(provider="local", voice=CLEAR_VOICE)
        speech = spoken()[44:]
        for chunk, start in enumerate(range(0, len(speech), 8_820), 1):  # 200 ms each
            piece = base64.b64encode(speech[start : start + 8_820]).decode()
            client.say("input_audio.append", chunk_id=chunk, sample_rate=22_050, audio_base64=piece)
        client.say("input_audio.commit")
        events = [client.ws.hear(60.0)]
        while events[-1]["type"] != "voice.response.done":
            events.append(client.ws.hear(60.0))  # listening takes some seconds of a busy machine
        heard = words(of(events, "voice.input_transcript.final")["text"])
        assert len(heard & words(SENTENCE)) >= 0.6 * len(words(SENTENCE)), heard
        answer = events[-1]["final_text"]  # of the built-in agent, which says how to connect a model
        assert "model" in answer
        sound = sum(event["byte_count"] for event in events if event["type"] == "voice.output_audio.delta")
        assert sound > 24_000 * 2 * 3  # more than three seconds
        assert not list((tmp_path / "spool").iterdir())  # no recording is left behind
