from typing import Any, cast

import pytest
from attrs import evolve

from svc_proto.agent import toolbox
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.approval_memory import ApprovalMemory
from svc_proto.agent.interface import ApprovalRequested, ToolCall, Turn
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.basics.brand import HERMES
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.service_clients.authority import Authority
from tests.agent.harness import AgentHarness
from tests.support.playbook import make_flow

TURN = Turn(session_id="s", run_id="r", prompt="x")


def box_of(engine: Engine, *tools: Tool, **members: Any) -> toolbox.Toolbox:
    """Return a toolbox with one toolset of these tools."""
    toolset = Toolset(**{"name": "t", "label": "T", "description": "", "tools": tools, **members})
    return toolbox.Toolbox(engine, (toolset,), ApprovalMemory(engine))


def requested(*names: str) -> tuple[toolbox.RequestedToolCall, ...]:
    calls = [ToolCall(id=f"c{place}", name=name, args={}) for place, name in enumerate(names)]
    return tuple(map(toolbox.RequestedToolCall, calls))


def run(world: AgentHarness, tools: dict[str, bool], *calls: str, text: str = "fine", turn: Turn = TURN) -> list[str]:
    """Run calls of tools that take a second each, and return the texts of their results.

    The calls of tools with True in `tools` run one after the other, the others at once.
    """

    def plan(parts: AgentParts, engine: Engine) -> Flow[list[str]]:
        world.host.engine = engine

        def work(arguments: Arguments) -> Flow[str]:
            yield from sleep(engine, 1.0)
            return text

        tool = Tool(name="", description="", parameters=schema(), run=work)
        box = box_of(engine, *(evolve(tool, name=name, sequential=in_order) for name, in_order in tools.items()))
        return [result.text for result in (yield from box.run_calls(turn, world.host, requested(*calls)))]

    return world.run(plan)


def test_result_is_cut_and_has_the_markers_of_the_client() -> None:
    text = "Taken.\nMEDIA:svc-relay://t0k\nMEDIA:/a/b.png"
    assert run(AgentHarness(), {"a": False}, "a", text=text) == [text]
    (spelled,) = run(AgentHarness(), {"a": False}, "a", text=text, turn=evolve(TURN, brand=HERMES))
    assert spelled == "Taken.\nMEDIA:hermes-relay://t0k\nMEDIA:/a/b.png"
    world = AgentHarness()
    (result,) = run(world, {"a": False}, "a", text="x" * (toolbox.MAX_OUTPUT + 1))
    assert len(result) == toolbox.MAX_OUTPUT


def test_calls_run_side_by_side_or_in_order(world: AgentHarness) -> None:
    assert run(world, {"a": False, "b": False}, "a", "b", "a") == ["fine"] * 3
    assert [finished.seconds for finished in world.host.finished] == pytest.approx([1.0] * 3, abs=0.1)
    assert world.host.at[-1] - world.host.at[0] < 1.1
    world = AgentHarness()
    run(world, {"tap": True, "look": False}, "tap", "tap", "look", "tap")
    assert [word for word in world.host.event_names if "tap" in word] == ["started tap", "finished tap"] * 3
    assert world.host.event_names.index("finished look") < 5
    assert world.host.at[-1] - world.host.at[0] > 3.0


def test_tool_with_a_bug_fails_its_call_only(world: AgentHarness) -> None:
    def plan(parts: AgentParts, engine: Engine) -> Flow[list[str]]:
        world.host.engine = engine

        def broken(arguments: Arguments) -> Flow[str]:
            yield from sleep(engine, 0.1)
            raise KeyError("token=abc")

        box = box_of(engine, Tool(name="a", description="", parameters=schema(), run=broken))
        return [result.text for result in (yield from box.run_calls(TURN, world.host, requested("a")))]

    assert world.run(plan) == ["error: the tool has a bug, logged as bug-1"]
    (bug,) = [fields for name, fields in world.logs if name == "bug"]
    assert (bug["reference"], bug["error"]) == ("bug-1", "KeyError")
    assert "abc" not in repr(world.logs)


def test_the_toolsets() -> None:
    rows = AgentHarness().run(lambda parts, engine: make_flow(parts.toolbox.toolsets()))
    assert [row["name"] for row in rows] == ["phone", "memory", "skills", "user"]
    for row in rows:
        assert set(row) == {"name", "label", "description", "enabled", "configured", "tools", "descriptions"}
        assert None not in row.values()
    assert rows[1]["tools"] == ["memory"]
    assert rows[1]["descriptions"]["memory"].startswith("Keep notes")


def test_every_tool_is_described_in_words_and_types() -> None:
    tools = AgentHarness().run(lambda parts, engine: make_flow([*parts.toolbox.tools.values()]))
    assert {type(tool.sequential) for tool in tools} == {bool}
    for tool in tools:
        assert tool.description.endswith(".")
        assert set(tool.parameters) <= {"type", "properties", "required", "additionalProperties"}
        assert tool.parameters["type"] == "object"
        for member in cast("dict[str, dict[str, Any]]", tool.parameters["properties"]).values():
            assert set(member) <= {"type", "description", "enum", "minimum", "maximum", "items"}
            assert member["type"] in ("string", "integer", "boolean", "object", "array")
            assert len(member.get("description", "not needed")) > 8


@pytest.mark.parametrize(
    ("output", "preview"),
    [
        ("one\ntwo", "one"),
        ("", ""),
        ("x" * toolbox.MAX_PREVIEW, "x" * toolbox.MAX_PREVIEW),
        ("x" * (toolbox.MAX_PREVIEW + 1), "x" * (toolbox.MAX_PREVIEW - 1) + "…"),
        ('{"a": 1, "token": "t"}', '{"a":1,"token":"[redacted]"}'),
        ("{cut", "{cut"),
    ],
)
def test_previews_of_results(output: str, preview: str) -> None:
    assert toolbox.preview_of(output) == preview


def test_previews_of_calls() -> None:
    assert toolbox.call_preview({}) is None
    assert toolbox.call_preview({"password": "x", "a": 1}) == '{"password":"[redacted]","a":1}'


def test_a_tool_needs_what_its_toolset_needs(world: AgentHarness) -> None:
    held: set[str] = set()
    authority = Authority("guest", held.__contains__)

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        world.host.engine = engine

        def run(_: object) -> Flow[str]:
            return make_flow("done")

        tool = Tool(name="look", description="", parameters=schema(), run=run, needs_approval="ask")
        box = box_of(engine, tool, name="phone", needs="bridge")
        turn = evolve(TURN, authority=authority)
        for power, visible, text in (("", False, "error: The device of this chat may not"), ("bridge", True, "done")):
            held.update({power})
            assert ("phone" in (yield from box.visible_tools(authority))) is visible
            assert (yield from box.run_calls(turn, world.host, requested("look")))[0].text.startswith(text)

    world.host.choices = ["once"]
    world.run(plan)
    (asked,) = (event for event in world.host.events if isinstance(event, ApprovalRequested))
    assert asked.choices == toolbox.ONE_CALL
