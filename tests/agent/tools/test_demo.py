from svc_proto.agent.agent_factory import AgentParts
from svc_proto.engine.flow import Flow
from tests.agent.harness import AgentHarness


def test_demo_tools_are_not_offered_to_models() -> None:
    def plan(parts: AgentParts, engine: object) -> Flow[tuple[set[str], bool]]:
        offered = yield from parts.toolbox.visible_tools()
        return set(parts.toolbox.tools), "demo" in offered

    tools, offered = AgentHarness().run(plan)
    assert {"demo_wait", "demo_fail", "demo_ask"} <= tools
    assert not offered
