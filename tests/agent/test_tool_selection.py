from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.interface import ModelEndpoint, ToolCall
from svc_proto.agent.system_prompt import NO_PHONE
from svc_proto.agent.tool_selection import GROUPS, MORE_TOOLS, ToolPolicy, ToolSelection
from svc_proto.agent.tools.phone_tools import ON_DEMAND, PHONE_TOOLS
from svc_proto.agent.tools.tool import Tool
from svc_proto.basics import strict_json
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from tests.agent.harness import ROUTE, AgentHarness
from tests.support.servers.model_server import calls, plain

FEW = ("screen", "screenshot", "get_apps", "tap", "tap_text", "type", "scroll", "press_key", "open_app")


def all_tools() -> dict[str, tuple[Tool, ...]]:
    def plan(parts: AgentParts, engine: Engine) -> Flow[dict[str, tuple[Tool, ...]]]:
        yield from ()
        toolsets = parts.toolbox._toolsets
        return {toolset.name: toolset.tools for toolset in toolsets if toolset.offered}

    return AgentHarness().run(plan)


def names(rows: list[Mapping[str, object]]) -> list[str]:
    return [cast("dict[str, Any]", row["function"])["name"] for row in rows]


def bring(group: object) -> ToolCall:
    return ToolCall(id="c", name=MORE_TOOLS, args={"group": group})


def test_large_context_gets_all_tools() -> None:
    tools = all_tools()
    offer = ToolSelection(tools, few=False)
    assert names(offer.rows) == [tool.name for toolset in tools.values() for tool in toolset]
    assert len(offer.rows) == 38
    assert offer.rows[4] == {
        "type": "function",
        "function": {
            "name": "phone_screen",
            "description": tools["phone"][4].description,
            "parameters": tools["phone"][4].parameters,
        },
    }


def test_small_context_gets_few_short_tools() -> None:
    whole, offer = ToolSelection(all_tools(), few=False), ToolSelection(all_tools(), few=True)
    assert sorted(names(offer.rows)) == sorted([*(f"phone_{name}" for name in FEW), "memory", "ask_user", MORE_TOOLS])
    screen = next(row for row in offer.rows if names([row]) == ["phone_screen"])
    assert screen["function"] == {
        "name": "phone_screen",
        "description": "What is on the screen: texts and controls with their node ids.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    size = len(strict_json.dumps(offer.rows))
    assert size < 3_500  # characters: about 900 tokens
    assert size * 4 < len(strict_json.dumps(whole.rows))
    more = cast("dict[str, Any]", offer.rows[-1]["function"])
    assert more["parameters"]["properties"]["group"]["enum"] == [group for group in GROUPS if group != "mcp"]


def test_more_tools_are_loaded_by_group() -> None:
    offer = ToolSelection(all_tools(), few=True)
    few = len(offer.rows)
    offer.expand([bring("people"), bring("people"), bring("nonsense"), ToolCall(id="d", name="memory", args={})])
    assert names(offer.rows[few:]) == [f"phone_{row.name}" for row in PHONE_TOOLS if row.name in ON_DEMAND["people"]]
    for group in GROUPS:
        offer.expand([bring(group)])
    assert len(offer.rows) == 39
    assert len(set(names(offer.rows))) == 39


def test_no_more_tools_without_other_groups() -> None:
    tools = {"memory": all_tools()["memory"]}
    assert names(ToolSelection(tools, few=True).rows) == ["memory"]


@pytest.mark.parametrize(
    ("choice", "context", "few"),
    [
        (ToolPolicy(), None, False),
        (ToolPolicy(), 16_384, False),
        (ToolPolicy(), 16_383, True),
        (ToolPolicy(few=True), None, True),
        (ToolPolicy(few=False), 2_048, False),
    ],
)
def test_few_tools_depend_on_the_context(choice: ToolPolicy, context: int | None, few: bool) -> None:
    assert choice.prefers_few(context) is few


def test_turn_that_loads_more_tools() -> None:
    world = AgentHarness(model=[calls((MORE_TOOLS, {"group": "skills"})), calls(("skills_list", {})), plain("None.")])
    route = ModelEndpoint(base_url=ROUTE.base_url, model="small", api_key=ROUTE.api_key, context=4_096)
    world.answer("Skills?", model=route)
    assert [names(asked["tools"]) for asked in world.model.seen] == [
        ["memory", "ask_user", MORE_TOOLS],
        *[["memory", "ask_user", MORE_TOOLS, "skills_list", "skill_view"]] * 2,
    ]
    results = [row["content"] for row in world.model.seen[2]["messages"] if row["role"] == "tool"]
    assert results[0] == "until this answer is done you have: skills_list, skill_view"
    assert "skills" in results[1]


def test_an_operator_names_toolsets() -> None:
    only: tuple[str, ...]
    for only, told in ((("skills",), ["skills_list", "skill_view"]), ((), [])):
        world = AgentHarness(model=[plain("Ok")], tools=ToolPolicy(only=only))
        world.answer("Hi")
        assert names(world.model.seen[0].get("tools", [])) == told
        assert NO_PHONE not in world.model.seen[0]["messages"][0]["content"]  # no tool needs a phone
