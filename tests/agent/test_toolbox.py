from collections.abc import Callable
from typing import Any, cast

import pytest
from attrs import evolve

from svc_proto.agent import toolbox
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.approval_memory import ApprovalMemory
from svc_proto.agent.interface import ApprovalRequested, ToolCall, Turn
from svc_proto.agent.loop_guard import LoopGuard
from svc_proto.agent.phone_consent import ALREADY_DENIED
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.agent.turn_consent import TurnConsent
from svc_proto.basics.brand import HERMES
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
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


def approved(work: Callable[[Arguments], Flow[str]], name: str = "pay") -> Tool:
    return Tool(name=name, description="", parameters=schema(), run=work, needs_approval="It costs money.")


def test_denial_covers_the_calls_that_waited_behind_its_question(world: AgentHarness) -> None:
    def plan(parts: AgentParts, engine: Engine) -> Flow[list[str]]:
        def work(arguments: Arguments) -> Flow[str]:
            return make_flow("paid")

        world.host.engine, consent = engine, TurnConsent.begin(engine)
        box = box_of(engine, approved(work), approved(work, "book"))
        results = yield from box.run_calls(TURN, world.host, requested("pay", "pay", "book"), consent)
        results += yield from box.run_calls(TURN, world.host, requested("pay", "book"), consent)
        return [result.text.partition("\n")[0] for result in results]

    world.host.choices = ["deny", "once", "once"]
    denied, again = (f"error: {words[0]}" for words in (toolbox.DENIED, ALREADY_DENIED))
    assert world.run(plan) == [denied, again, "paid", again, "paid"]
    assert [asked.call.name for asked in world.host.asked] == ["pay", "book", "book"]
    assert world.host.event_names[:4] == ["pending pay", "asks pay", "pending pay", "pending book"]


@pytest.mark.parametrize(("choice", "seconds"), [("once", 1.0), ("deny", 30.0)])
def test_approved_call_covers_its_confirmation_and_is_timed_from_the_approval(choice: str, seconds: float) -> None:
    world = AgentHarness()

    def plan(parts: AgentParts, engine: Engine) -> Flow[bool]:
        def work(arguments: Arguments) -> Flow[str]:
            yield from sleep(engine, 1.0)
            return "paid"

        def request_approval(asked: ApprovalRequested) -> Flow[str]:
            yield from sleep(engine, 30.0)
            return choice

        world.host.engine, consent = engine, TurnConsent.begin(engine)
        world.host.request_approval = request_approval  # type: ignore[method-assign]
        yield from box_of(engine, approved(work)).run_calls(TURN, world.host, requested("pay"), consent)
        return consent.is_granted(Effect(kind=EffectKind.CONFIRMATION, label="OK"), ScreenTree())

    assert world.run(plan) is (choice == "once")
    assert [finished.seconds for finished in world.host.finished] == [pytest.approx(seconds, abs=0.1)]


@pytest.mark.parametrize(
    ("name", "client", "has_read", "private"),
    [("phone_contacts", False, True, True), ("skills_list", False, False, False), ("skills_list", True, True, False)],
)
def test_turn_begins_with_what_its_history_has_read(name: str, client: bool, has_read: bool, private: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    history = (
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ann@example.org"},
    )
    turn = evolve(TURN, history=history, client_history=client)
    consent = AgentHarness().run(lambda parts, engine: make_flow(parts.toolbox.begin_turn(turn, LoopGuard())))
    assert (consent.has_read, consent.private.was_read) == (has_read, private)
    assert consent.private.is_in("To: ann@example.org") is private


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
