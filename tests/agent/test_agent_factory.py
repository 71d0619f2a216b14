from svc_proto.agent.agent_factory import AgentConfig
from tests.agent.harness import AgentHarness
from tests.support.playbook import make_flow


def test_agent_after_construction_is_idle_and_shows_no_secret() -> None:
    assert "hunter2" not in repr(AgentConfig(home="/h", relay_token="hunter2"))
    assert AgentHarness().run(lambda parts, engine: make_flow(engine.flow_count)) == 1  # the flow of this plan
