from tests.agent.harness import AgentHarness


def test_demo_tools_are_not_offered_to_models() -> None:
    assert "demo" not in AgentHarness().run(lambda parts, engine: parts.toolbox.visible_tools())
