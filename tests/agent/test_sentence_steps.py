from types import SimpleNamespace

from svc_proto.agent.sentences import SentenceIntent
from svc_proto.service_clients.phone_control import PhoneResponse
from tests.agent.harness import AgentHarness
from tests.agent.test_sentence_actions import ScriptedParser, run_sentence, say
from tests.support.playbook import make_flow


def test_failure_of_the_phone_is_answered() -> None:
    world = AgentHarness(relay=True, sentences=ScriptedParser())
    assert say(world, "open_app | app=Mail").startswith("failed ")
    assert say(world, "toggle | setting=wifi | state=off").startswith("failed ")
    phone = SimpleNamespace(call=lambda *_: make_flow(PhoneResponse(400, {"error": "the bridge is off"})))
    answer = run_sentence(phone, lambda name, arguments: "{}", SentenceIntent.SET_LEVEL, bar="volume", percent="5")
    assert answer == "failed the bridge is off"
