import json

import yaml

from svc_proto.voice.agent.native_mode import background_rules
from svc_proto.voice.settings import PromotionSettings
from svc_proto.voice_config import VoiceConfig
from tests.loops.environment import bearer
from tests.loops.realtime_agent import RealtimeAgentSetup, ends, of, play, run, talk, types
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.voice_client import VoiceClient, log_of
from tests.support.servers.realtime_server import SpokenTurn

HAND_OFF = SpokenTurn("I go on with that, and tell you.")
WAITED = SpokenTurn("It is done: demo_wait waited 9 s.")

PROMOTED = """
type: svc.run.promoted, source: svc, session_id: $chat, chat_session_id: $chat, tier: promoted, promote_after_ms: 6000,
spoken_handoff: true, provider_acknowledged: false, result_delivery: speak_verbatim, call_id: call_1, queued_count: 0,
origin: provider_tool_call
"""


def promoted(agent: RealtimeAgentSetup, **body: object) -> VoiceClient:
    """Start the turn `wait`, receive its events up to an end that delivers no result, and return its client."""
    client = agent.start_turn("wait", **body)
    assert play(client, ends)[-1].get("delivery") is None
    return client


def test_user_speaks_during_a_background_run(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world, run("/wait 9"), HAND_OFF, SpokenTurn("It is noon."), WAITED)
    client = agent.start_turn("wait")
    events = play(client, ends)
    told = of(events, "svc.run.promoted")
    chat = of(events, "svc.session.bound")["session_id"]
    wanted = yaml.safe_load(f"{{{PROMOTED.replace('$chat', chat)}}}")
    assert told == wanted | {name: told[name] for name in ("event_id", "at_ms", "run_id")}
    assert told["run_id"] == of(events, "svc.run.started")["run_id"]
    (interim,) = agent.outputs()
    assert (interim["status"], interim["interface"]["engine"]) == ("running_in_background", "realtime_agent")
    assert told["run_id"] not in json.dumps(interim)  # a model would read the id aloud
    talk(client)
    assert "delivery" not in play(client, ends)[-1]
    events = play(client, ends)
    place = types(events).index("svc.run.background_completed")
    after = "playback_drain.requested response.started response.delta output_audio.delta"
    assert types(events)[place + 1 : place + 5] == [f"voice.{kind}" for kind in after.split()]
    completed = of(events, "svc.run.background_completed")
    assert (completed["ok"], completed["tool_count"], completed["chat_session_id"]) == (True, 1, chat)
    assert events[-1]["delivery"] == "forced_summary"
    assert len(agent.outputs()) == 1  # the function call was answered already


def test_client_does_not_return(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world, run("/wait 9"), HAND_OFF)
    client = promoted(agent)
    client.ws.close(1000)  # a live run keeps the session
    world.pass_time(60.0)
    logged = log_of(world, agent.answer)
    assert logged[-1]["reason"] == "expired"
    deferred = [line for line in logged if line["type"] == "voice.realtime_agent.result_deferred"]
    assert [line.get("reason") for line in deferred] == [None, "session_closed"]


def test_background_policy_from_settings() -> None:
    promotion = PromotionSettings(promote_after_ms=1500, progress_spoken_after_ms=2000, max_background_runs=3)
    config = VoiceConfig(background_max=9.0, slow_tools=("x",))
    rules = background_rules(promotion, config)
    assert (rules.promote_after, rules.progress_after, rules.progress_repeat) == (1.5, 2.0, 30.0)
    assert (rules.spoken_handoff, rules.longest, rules.slow_tools, rules.max_runs) == (True, 9.0, ("x",), 3)
    forced = background_rules(promotion, config, final_answer_only=True)
    assert (forced.spoken_handoff, forced.progress_after) == (False, 0.0)


def test_only_the_final_answer_is_spoken(world: SimulatedEnvironment) -> None:
    agent = RealtimeAgentSetup(world, run("/wait 9"), WAITED)
    change = json.dumps({"result_delivery": "visual_only", "progress_spoken_after_ms": 1}).encode()
    assert world.http("PATCH", "/voice/realtime-agent/config", headers=bearer(agent.token), body=change).status == 200
    client = agent.start_turn("wait", final_answer_only=True)
    events = play(client, lambda event: event["type"] == "svc.run.promoted")
    assert (events[-1]["spoken_handoff"], events[-1]["result_delivery"]) == (False, "speak_verbatim")
    events += play(client, ends)
    assert events[-1]["delivery"] == "forced_summary"
    assert not any(event.get("should_speak") for event in events)
