import base64
import re
from functools import partial
from typing import cast

from svc_proto.basics.moment import Moment
from svc_proto.machines.voice_session import Cursor
from svc_proto.voice.agent.agent_mode import AgentSetup, RenderedMode, interface_of
from svc_proto.voice.realtime.actions import Render
from svc_proto.voice.session import MAX_DELTA
from svc_proto.voice.settings import RealtimeSettings
from tests.loops.realtime_agent import RealtimeAgentSetup, ends, of, play
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.servers.realtime_server import SpokenTurn
from tests.voice.harness import PHONE, VoiceHarness


def test_members_of_each_kind_of_event() -> None:
    agent = RealtimeAgentSetup(SimulatedEnvironment(), SpokenTurn("Hello.", sound=bytes(3 * MAX_DELTA), pieces=1))
    client = agent.start_turn("hello")
    events = play(client, ends)
    started, done = of(events, "voice.response.started"), events[-1]
    session = agent.answer["session_id"]
    assert (started["session_id"], started["chat_session_id"], started["voice"]) == (session, None, "alloy")
    assert done["event_log_path"] == agent.answer["event_log_path"]
    pieces = [event for event in events if event["type"] == "voice.output_audio.delta"]
    assert [len(base64.b64decode(piece["audio_base64"])) for piece in pieces] == [MAX_DELTA] * 3
    assert {piece["response_id"] for piece in pieces} == {started["response_id"]}
    assert "label" not in pieces[0]
    client.send("input_audio.append")
    error = client.until("voice.error")[-1]
    assert "audio_base64" in error["message"]


def test_played_audio_is_recorded_and_rendering_ends_with_the_session(rig: VoiceHarness) -> None:
    chosen, mode = RealtimeSettings(provider="openai_tts"), partial(RenderedMode, setup=AgentSetup())
    client = rig.attach(rig.output, rig.within(lambda: rig.output.admit(PHONE, chosen, mode)))
    (session,) = rig.output.sessions()
    client.send_event("playback.drained", event_id=1)
    assert session.life.acked == Cursor(event=1)
    agent = cast("RenderedMode", session.mode)
    agent.talk.out.append(Render("", "Hello."))
    rig.within(agent.carry_out)
    assert not rig.scripted.stopped
    client.send_event("session.close")
    assert rig.scripted.stopped


def test_members_of_the_ready_event_and_the_interface() -> None:
    agent = RealtimeAgentSetup(SimulatedEnvironment())
    client = agent.open()
    client.send("session.resume", resume_token=agent.answer["resume_token"], last_event_id=0)
    ready = of(client.until("voice.replay.done"), "voice.session.ready")
    assert (ready["mode"], ready["experimental"], ready["last_input_chunk_id"]) == ("realtime_agent", True, 0)
    assert ready["tool_surface"] == agent.answer["tool_surface"]
    assert ready["interface"]["engine"] == "realtime_agent"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", ready["interface"]["current_date"])
    assert "output_mode" not in ready
    interface = interface_of(RealtimeSettings(), "hermes", None, Moment(1.0, 1_790_000_000.9))
    assert interface.pop("chat_session_id") is None
    assert all(isinstance(value, str) and value for value in interface.values())
    assert interface["stable_engine"] == "hermes_voice_output"
    assert interface["profile"] == "default"
    assert interface["path_summary"] == f"voice client > relay > {interface['provider']} and the agent on the host"
    assert interface["current_datetime"] == "2026-09-21T14:13:20+00:00"
    assert (interface["current_date"], interface["current_time"]) == ("2026-09-21", "14:13")
