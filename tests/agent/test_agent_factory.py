from svc_proto.agent.agent_factory import AgentConfig, AgentParts
from svc_proto.agent.interface import Agent
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from tests.agent.harness import AgentHarness


def test_agent_after_construction_is_idle_and_shows_no_secret() -> None:
    assert "hunter2" not in repr(AgentConfig(home="/h", relay_token="hunter2"))

    def plan(parts: AgentParts, engine: Engine) -> Flow[int]:
        yield from ()
        agent: Agent = parts.agent
        assert agent is not None
        return engine.flow_count

    assert AgentHarness().run(plan) == 1  # the flow of this plan
