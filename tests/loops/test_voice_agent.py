"""Tests of the realtime agent: a relay, an API server, and a vendor's protocol or the speech engines of the host."""

import base64
import json
from pathlib import Path

import pytest

from svc_proto.basics.brand import HERMES, SVC, Brand
from tests.loops.clients import Declined
from tests.loops.environment import Environment
from tests.loops.realtime_agent import ANSWER, KEY, RealtimeAgentSetup, ends, of, play, talk, types
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.voice_client import VoiceClient, log_of
from tests.support.servers.realtime_server import FunctionCallTurn, SpokenTurn
from tests.voice.recordings import CLEAR_VOICE, needs_engines, spoken, understood

GOLDEN = """
input_audio.received input_transcript.delta input_transcript.final
response.started response.delta output_audio.delta response.delta output_audio.delta output_audio.done
playback_drain.requested brand.run.progress brand.session.bound brand.run.started brand.message.started
brand.run.progress brand.run.completed playback_drain.requested
response.started response.delta output_audio.delta response.delta output_audio.delta output_audio.done response.done
"""


def test_speech_becomes_a_run_and_its_answer_is_spoken(world: Environment) -> None:
    speech_becomes_a_run(world, SVC)


def test_the_same_for_a_stock_phone() -> None:
    world = SimulatedEnvironment()
    speech_becomes_a_run(world, HERMES)
    world.close()


def speech_becomes_a_run(world: Environment, brand: Brand) -> None:
    called = FunctionCallTurn(f"{brand.name}_run_task", {"text": f"/echo {ANSWER}"}, before="Let me look.")
    agent = RealtimeAgentSetup(world, called, SpokenTurn(ANSWER), brand=brand)
    client = agent.open()
    talk(client)
    events = play(client, ends)
    word = brand.name
    assert [kind.removeprefix("voice.") for kind in types(events)] == GOLDEN.replace("brand.", f"{word}.").split()
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
    logged = log_of(world, agent.answer)
    assert [line["event_id"] for line in logged if "event_id" in line] == list(range(1, len(events) + 2))
    assert "voice.response.intermediate_done" in [line["type"] for line in logged]
    assert logged[0]["type"] == "voice.realtime_agent.session.created"
    assert KEY not in json.dumps(logged)
    with pytest.raises(Declined) as over:
        VoiceClient(world, agent.token, agent.answer)
    assert over.value.answer.status == 410


@needs_engines
def test_a_conversation_without_any_key(host: Environment, tmp_path: Path) -> None:
    agent = RealtimeAgentSetup(host)
    client = agent.open(provider="local", voice=CLEAR_VOICE)
    speech = spoken()[44:]
    for chunk, start in enumerate(range(0, len(speech), 8_820), 1):  # 200 ms each
        piece = base64.b64encode(speech[start : start + 8_820]).decode()
        client.send("input_audio.append", chunk_id=chunk, sample_rate=22_050, audio_base64=piece)
    client.send("input_audio.commit")
    events = [client.ws.receive_message(60.0)]
    while events[-1]["type"] != "voice.response.done":
        events.append(client.ws.receive_message(60.0))  # transcription takes some seconds on a busy machine
    heard = of(events, "voice.input_transcript.final")["text"]
    assert understood(heard), heard
    answer = events[-1]["final_text"]  # of the built-in agent: how to connect a model
    assert "model" in answer
    sound = sum(event["byte_count"] for event in events if event["type"] == "voice.output_audio.delta")
    assert sound > 24_000 * 2 * 3  # more than three seconds
    assert not list((tmp_path / "spool").iterdir())  # no recording is left
