from collections.abc import Mapping
from typing import Any, cast

import pytest
from attrs import evolve

from svc_proto.agent.system_prompt import NO_PHONE
from svc_proto.agent.tool_selection import (
    GROUPS,
    MAX_KNOWN,
    MORE_TOOLS,
    KnownRows,
    ToolPolicy,
    ToolSelection,
    more_tools,
    unwrap_call,
)
from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from svc_proto.agent.tools.tool import Tool
from svc_proto.basics import strict_json
from tests.agent.harness import ROUTE, AgentHarness
from tests.support.playbook import make_flow, run_flow
from tests.support.servers.model_server import ModelAnswer, calls, plain

FEW = ("screen", "screenshot", "tap", "tap_text", "type", "scroll", "press_key", "open_app")


def all_tools() -> dict[str, tuple[Tool, ...]]:
    toolsets = AgentHarness().run(lambda parts, engine: make_flow(parts.toolbox._toolsets))
    return {toolset.name: toolset.tools for toolset in toolsets if toolset.offered}


def names(rows: list[Mapping[str, object]]) -> list[str]:
    return [cast("dict[str, Any]", row["function"])["name"] for row in rows]


def function(rows: list[Mapping[str, object]], name: str) -> dict[str, Any]:
    (found,) = [row["function"] for row in rows if names([row]) == [name]]
    return cast("dict[str, Any]", found)


def described(wanted: str, tools: list[Tool], *hidden: str) -> list[str]:
    """Return the lines of a description by `more_tools`, without the arguments `hidden`."""
    (more,) = more_tools(lambda: tools, lambda: make_flow(hidden)).tools
    return cast("str", run_flow(more.run({"tool": wanted}))).splitlines()


def test_large_context_gets_the_common_tools() -> None:
    tools = all_tools()
    offer = ToolSelection(tools, few=False)
    common = [tool.name for toolset in tools.values() for tool in toolset if not tool.is_rare]
    assert names(offer.rows) == [*common, MORE_TOOLS]
    assert function(offer.rows, "phone_call") == {
        "name": "phone_call",
        "description": "Call a number.",
        "parameters": {
            "type": "object",
            "properties": {
                "number": {"type": "string"},
                "device": {"type": "string", "description": "which phone, if there are several: its name or id"},
            },
            "required": ["number"],
        },
    }
    rare = [tool.name for toolset in tools.values() for tool in toolset if tool.is_rare]
    assert function(offer.rows, MORE_TOOLS)["description"].endswith(f": {', '.join(rare)}.")


def test_one_phone_needs_no_selector_and_limits_are_not_told() -> None:
    rows = ToolSelection(all_tools(), few=False, hidden=("device",)).rows
    assert '"device"' not in strict_json.dumps(rows)
    assert "imum" not in strict_json.dumps(rows)
    assert function(rows, "phone_wait")["parameters"]["properties"]["ms"] == {"type": "integer"}


def test_small_context_gets_few_short_tools() -> None:
    whole, offer = ToolSelection(all_tools(), few=False), ToolSelection(all_tools(), few=True)
    assert sorted(names(offer.rows)) == sorted([*(f"phone_{name}" for name in FEW), "memory", MORE_TOOLS])
    assert function(offer.rows, "phone_screen") == {
        "name": "phone_screen",
        "description": "Read the screen, a line a node: number, kind, texts, state.",
        "parameters": {"type": "object", "properties": {"device": {"type": "string"}}},
    }
    assert len(strict_json.dumps(offer.rows)) * 2 < len(strict_json.dumps(whole.rows))
    description = function(offer.rows, MORE_TOOLS)["description"]
    assert [group for group in GROUPS if f"{group}: " in description] == [group for group in GROUPS if group != "mcp"]


def ask(*answers: ModelAnswer, phone: bool = False) -> AgentHarness:
    world = AgentHarness(model=[*answers, plain("Done.")], phone=phone)
    world.answer("Go", model=evolve(ROUTE, context=8_000))
    assert len({strict_json.dumps(asked["tools"]) for asked in world.model.seen}) == 1  # constant over the turn
    return world


def test_a_group_is_described() -> None:
    world = ask(calls((MORE_TOOLS, {"tool": "people"})))
    (finished,) = world.host.finished
    *lines, use = finished.output.splitlines()
    people = [f"phone_{row.name}" for row in PHONE_TOOLS if row.tool.group == "people"]
    assert [line.partition(":")[0] for line in lines] == [*people, "ask_user"]
    assert lines[2] == 'phone_call: Call a number. {"number":{"type":"string"}}'
    assert use == "Call them by more_tools with tool and arguments."


@pytest.mark.parametrize("arguments", [{"number": "+15550100"}, '{"number": "+15550100"}'])
def test_a_named_tool_is_the_call(arguments: object) -> None:
    world = ask(calls((MORE_TOOLS, {"tool": "phone_call", "arguments": arguments})), phone=True)
    (finished,) = world.host.finished
    assert finished.call.name == "phone_call"
    assert '"confirmed":true' in finished.output
    (row,) = [row for row in world.model.seen[1]["messages"] if row["role"] == "assistant"]
    assert row["tool_calls"][0]["function"] == {"name": "phone_call", "arguments": '{"number":"+15550100"}'}


def test_a_tool_without_arguments_is_called_by_its_name_alone() -> None:
    world = ask(calls((MORE_TOOLS, {"tool": "phone_ping"}), (MORE_TOOLS, {"tool": "phone_drag"})), phone=True)
    drag, ping = sorted(world.host.finished, key=lambda finished: finished.call.id, reverse=True)
    assert (ping.call.name, '"pong":true' in ping.output) == ("phone_ping", True)
    assert drag.output.startswith('phone_drag: Drag from one point to another. {"start_x":{"type":"integer"}')


@pytest.mark.parametrize("wanted", ["nonsense", MORE_TOOLS, ""])
def test_an_unknown_name_lists_the_known_ones(wanted: str) -> None:
    world = ask(calls((MORE_TOOLS, {"tool": wanted, "arguments": {}})))
    (finished,) = world.host.finished
    assert finished.output.startswith(f"error: there is no tool and no group {wanted!r}. There are: look, touch, send")
    assert "phone_drag" in finished.output


def test_descriptions_are_cut_and_name_the_selector_of_several_phones() -> None:
    tool = all_tools()["memory"][0]
    many = [evolve(tool, name=f"t{number}", group="mcp") for number in range(30)]
    assert "and 10 more" in described("mcp", many)
    assert len(described("mcp", many[:20])) == 21  # with the use
    tools = [tool for tool in all_tools()["phone"] if tool.name == "phone_call"]
    assert '"device"' in described("phone_call", tools)[0]
    assert '"device"' not in described("phone_call", tools, "device")[0]
    assert names(ToolSelection({"memory": all_tools()["memory"]}, few=True).rows) == ["memory"]


@pytest.mark.parametrize(
    ("choice", "context", "few"),
    [(None, None, False), (None, 16_384, False), (None, 16_383, True), (True, None, True), (False, 2_048, False)],
)
def test_few_tools_depend_on_the_context(choice: bool | None, context: int | None, few: bool) -> None:
    assert ToolPolicy(few=choice).prefers_few(context) is few


def test_an_operator_names_toolsets() -> None:
    only: tuple[str, ...]
    for only, told in ((("skills",), ["skills_list", "skill_view"]), ((), [])):
        world = AgentHarness(model=[plain("Ok")], tools=ToolPolicy(only=only))
        world.answer("Hi")
        assert names(world.model.seen[0].get("tools", [])) == told
        assert NO_PHONE not in world.model.seen[0]["messages"][0]["content"]  # no tool needs a phone


def server(name: str, count: int) -> dict[str, tuple[Tool, ...]]:
    one = Tool(name="", description="Do it.", parameters={"type": "object", "properties": {}}, run=lambda _: iter(()))  # type: ignore[arg-type,return-value]  # never run
    return {f"mcp-{name}": tuple(evolve(one, name=f"mcp_{name}_{n}") for n in range(count))}


def test_whole_toolsets_that_do_not_fit_are_behind_one_tool() -> None:
    tools = {"memory": all_tools()["memory"]} | server("a", 60) | server("b", 80)
    offer = ToolSelection(tools, few=False)
    assert names(offer.rows) == ["memory", *(f"mcp_a_{n}" for n in range(60)), MORE_TOOLS]
    more = cast("dict[str, Any]", offer.rows[-1]["function"])
    assert more["description"].endswith("mcp-b: 80 tools.")
    assert names(ToolSelection(tools, few=False, limit=61).rows) == ["memory", MORE_TOOLS]
    assert names(ToolSelection(tools, few=False, limit=1).rows) == [MORE_TOOLS]
    fitting = {"memory": tools["memory"]} | server("a", 127)
    assert len(ToolSelection(fitting, few=False).rows) == 128


def test_an_argument_of_a_server_is_never_hidden() -> None:
    properties = {"device": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["device"]}
    (tool,) = server("home", 1)["mcp-home"]
    tool = evolve(tool, parameters=parameters, group="mcp", pass_through=True)
    whole = ToolSelection({"mcp-home": (tool,)}, few=False, hidden=("device",))
    assert function(whole.rows, tool.name)["parameters"]["properties"] == properties
    assert described("mcp", [tool], "device")[0] == 'mcp_home_0: Do it. {"device":{"type":"string"}}'
    assert unwrap_call({"tool": tool.name}, {tool.name: tool}.get) is None  # it is described, not called
    short = ToolSelection({"mcp-home": (evolve(tool, group=""),)}, few=True, hidden=("device",))
    assert function(short.rows, tool.name)["parameters"]["properties"] == properties


def test_list_is_reduced_in_place() -> None:
    offer = ToolSelection(all_tools(), few=False)
    rows = offer.rows
    assert offer.reduce() is True
    assert (len(rows), offer.reduce()) == (10, False)
    assert offer.reduce(5) is True
    assert (len(rows), offer.reduce(5)) == (1, False)
    assert ToolSelection({"memory": all_tools()["memory"]}, few=False).reduce(5) is False


def test_selections_are_kept_until_a_toolset_changes() -> None:
    known: KnownRows = {}
    tools = {"memory": all_tools()["memory"]} | server("a", 2)
    (first, again) = (ToolSelection(tools, few=False, known=known) for _ in range(2))
    assert all(one is other for one, other in zip(first.rows, again.rows, strict=True))
    assert names(ToolSelection(tools | server("a", 3), few=False, known=known).rows)[-1] == "mcp_a_2"
    for limit in range(2 * MAX_KNOWN):
        ToolSelection(tools, few=False, limit=limit, known=known)
        assert len(known) <= MAX_KNOWN
