import re

import pytest

from svc_proto.agent.builtin_agent import GREETING, MAX_SHOWN, _displayed_result
from svc_proto.agent.interface import ReasoningDelta, TextDelta, ToolCall, TurnOutcome
from svc_proto.agent.toolbox import DENIED
from svc_proto.basics.errors import ToolError
from tests.agent.harness import HOME, AgentHarness


def test_greeting_explains_how_to_connect_a_model(world: AgentHarness) -> None:
    history = ({"role": "user", "content": "c d e"}, {"content": None})
    assert world.command("Hello?", system="a b", history=history) == TurnOutcome()
    assert world.host.event_names == ["asked", "text", "answered"]
    assert world.host.text == GREETING
    assert "`svc model NAME --url http://127.0.0.1:11434/v1`" in GREETING
    assert {"SVC_MODEL_BASE_URL", "SVC_MODEL", "SVC_MODEL_API_KEY"} <= {*re.findall(r"\w+", GREETING)}
    assert world.host.usage == [(6, len(GREETING.split()))]
    assert world.model.seen == []


def test_words_are_sent_at_a_fixed_pace_to_readers_that_keep_up() -> None:
    world = AgentHarness(pace=0.02)
    world.command("/count 5")
    words = [event.text for event in world.host.events if isinstance(event, TextDelta)]
    assert words == ["1 ", "2 ", "3 ", "4 ", "5"]
    assert [round(at - world.host.at[0], 3) for at in world.host.at] == [0.0, 0.0, 0.02, 0.04, 0.06, 0.08, 0.08]
    world = AgentHarness()
    world.host.behind = True
    world.command("/count 3")
    assert world.host.drains == 1
    assert world.host.text == "1 2 3"


def test_content_parts_and_reasoning(world: AgentHarness) -> None:
    world.command(({"type": "text", "text": "/echo Hi"}, {"type": "image_url", "image_url": {}}))
    assert world.host.text == "Hi"
    world = AgentHarness()
    world.command("/think")
    assert world.host.event_names == ["asked", "reasoning", "text", "answered"]
    assert all(event.text for event in world.host.events if isinstance(event, ReasoningDelta))
    assert world.host.usage == [(1, 15)]


def test_a_tool(world: AgentHarness) -> None:
    assert world.command("/memory add Likes tea") == TurnOutcome()
    assert world.host.event_names == [
        "asked", "answered", "started memory", "noted memory", "finished memory", "asked", "text", "answered",
    ]  # fmt: skip
    assert world.host.text.startswith('`memory` answered:\n\n```\n{"success":true')
    (row, _) = world.host.rows
    given = {"action": "add", "target": "memory", "content": "Likes tea"}
    assert row == ("", "", [(world.host.finished[0].call.id, "memory", given)])


def test_memory_notes_are_shown(world: AgentHarness) -> None:
    world.command("/memory add Likes tea")
    world.host.events.clear()
    world.command("/memory")
    assert world.host.text == ("memory (0% - 9/2,200 chars):\n- Likes tea\nuser (0% - 0/1,375 chars):")
    world.disk.put(f"{HOME}/memories/USER.md", b"\xff")
    world.host.events.clear()
    world.command("/memory")
    assert world.host.text == "The memory cannot be read at the moment."


@pytest.mark.parametrize(
    ("line", "story"),
    [
        ("/fail", ["started demo_fail", "failed demo_fail"]),
        ("/approve", ["pending demo_ask", "asks demo_ask", "given deny", "failed demo_ask"]),
        ("/skill gone", ["started skill_view", "failed skill_view"]),
        ("/wait 99", ["started demo_wait", "failed demo_wait"]),
        ("/wait 1", ["started demo_wait", "finished demo_wait"]),
        ("/screenshot", ["started phone_screenshot", "failed phone_screenshot"]),
    ],
)
def test_tool_events(line: str, story: list[str]) -> None:
    world = AgentHarness()
    assert world.command(line) == TurnOutcome()
    assert world.host.event_names == ["asked", "answered", *story, "asked", "text", "answered"]


def test_tools_need_two_model_calls_and_may_run_at_once(world: AgentHarness) -> None:
    world.command("/parallel")
    assert world.host.event_names[2:5] == ["started demo_wait", "started demo_wait", "started skills_list"]
    assert world.host.text.count("answered:") == 3
    world = AgentHarness()
    assert world.command("/fail", max_calls=1) == TurnOutcome(finish="length")
    assert world.command("/fail", max_calls=2) == world.command("/fail") != TurnOutcome(finish="length")


def test_result_is_cut_and_has_no_model_hint_in_the_text(world: AgentHarness) -> None:
    world.disk.put(f"{HOME}/skills/long/SKILL.md", b"x" * 10_000)
    world.command("/skill long")
    assert len(world.host.text) < MAX_SHOWN + 100
    whole = _displayed_result(call := ToolCall(id="c", name="x", args={}), "x" * 4_000)
    assert ("…" in whole, "…" in _displayed_result(call, "x" * 4_001)) == (False, True)
    call = ToolCall(id="c", name="phone_screenshot", args={})
    assert _displayed_result(call, "The picture was taken.\nMEDIA:svc-relay://t0ken") == "MEDIA:svc-relay://t0ken"
    error = f"error: {ToolError(*DENIED)}"
    assert _displayed_result(call, error).endswith(f"```\nerror: {DENIED[0]}\n```")
    assert DENIED[1] in error
