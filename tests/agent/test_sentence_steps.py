from tests.agent.harness import AgentHarness
from tests.agent.test_sentence_actions import ScriptedParser, say


def test_failure_of_the_phone_is_answered() -> None:
    world = AgentHarness(relay=True, sentences=ScriptedParser())
    assert say(world, "open_app | app=Mail").startswith("failed ")
    assert say(world, "toggle | setting=wifi | state=off").startswith("failed ")
