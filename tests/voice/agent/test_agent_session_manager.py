import pytest

from svc_proto.basics.brand import HERMES
from tests.loops.environment import bearer
from tests.loops.realtime_agent import RealtimeAgentSetup, run
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.voice_client import ask_for
from tests.support.servers.api_server import ScriptedApi, hello
from tests.support.servers.realtime_server import FunctionCallTurn


def test_answer_to_the_creation() -> None:
    agent = RealtimeAgentSetup(SimulatedEnvironment(), brand=HERMES)
    agent.open(provider="stub", profile="work", context_messages=[])
    answer = agent.answer
    assert answer["protocol"] == "hermes.voice.realtime_agent.v0"
    assert answer["tool_surface"] == ["hermes_run_task", "hermes_get_status", "hermes_cancel", "hermes_confirm"]
    assert answer["websocket_path"] == f"/voice/realtime-agent/{answer['session_id']}"
    assert answer["event_log_path"].endswith(".jsonl")
    assert (answer["chat_session_id"], answer["context_message_count"], answer["experimental"]) == (None, 0, True)
    assert (answer["profile"], answer["fallback_to_global"]) == ("work", True)


@pytest.mark.parametrize("chosen", [{}, {"provider": "stub"}], ids=["native", "rendered"])
def test_revoked_token_stops_its_runs(chosen: dict[str, str]) -> None:
    world, api = SimulatedEnvironment(), ScriptedApi()
    api.held, api.held_for = True, 2.0
    api.turns.append([(kind, {**data, "run_id": "n1"}) for kind, data in hello()])
    agent = RealtimeAgentSetup(world, run("x"), scripted=api)
    client = agent.start_turn("x", **chosen)
    world.wait_until(lambda: len(api.seen) == 2)
    assert world.http("DELETE", f"/sessions/{agent.token[:8]}", headers=bearer(agent.token)).status == 200
    assert client.ws.wait_closed().code == 1008
    world.wait_until(lambda: api.seen[-1][1] == "/v1/runs/n1/stop")


def test_a_voice_only_device_gets_an_agent_without_the_phone_and_no_chat_of_others() -> None:
    world, api = SimulatedEnvironment(), ScriptedApi()
    api.sessions["c1"] = [{"role": "user", "content": "of the owner"}]
    asked = FunctionCallTurn("svc_run_task", {"text": "x", "session_id": "c1"})
    agent = RealtimeAgentSetup(world, asked, scripted=api)
    withheld = {"grants": {"chat": False, "bridge": False, "manage": False}}
    assert world.http("PATCH", f"/sessions/{agent.token[:8]}", withheld).status == 200
    agent.start_turn("x", chat_session_id="c1")
    world.wait_until(lambda: len(api.seen) == 2)
    assert (agent.answer["chat_session_id"], agent.answer["context_message_count"]) == (None, 0)
    assert api.seen[0][1] == "/api/sessions"
    assert "/c1/" not in api.seen[1][1]
    assert set(api.withheld) == {b"chat, bridge, manage"}


@pytest.mark.parametrize(("said", "meant"), [(" ", None), ("x" * 256, "x" * 256)])
def test_a_chat_session(said: str, meant: str | None) -> None:
    agent = RealtimeAgentSetup(SimulatedEnvironment())
    agent.open(provider="stub", chat_session_id=said)
    assert agent.answer["chat_session_id"] == meant


@pytest.mark.parametrize(
    "body",
    [
        {"provider": "openai_tts"},
        {"provider": "no such"},
        {"provider": "stub", "chat_session_id": 7},
        {"provider": "stub", "chat_session_id": "x" * 257},
        {"provider": "stub", "context_messages": {}},
    ],
)
def test_invalid_creation_is_refused(body: dict[str, object]) -> None:
    agent = RealtimeAgentSetup(SimulatedEnvironment())
    refused = ask_for(agent.world, agent.token, "realtime-agent", **body)
    assert refused.status == 400
    assert (refused.headers.get(b"content-type") or b"").startswith(b"text/plain")
