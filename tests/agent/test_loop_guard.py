import json
from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.interface import ToolCall
from svc_proto.agent.loop_guard import LoopGuard, fingerprint_of
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.screen_node import ScreenNode
from tests.agent.harness import AgentHarness
from tests.support.servers.model_server import calls


def call(name: str = "phone_tap", /, **args: object) -> ToolCall:
    return ToolCall(id="c", name=name, args=args, preview=json.dumps(args) if args else None)


def screen(text: str) -> ScreenTree:
    return ScreenTree(package="p", nodes=(ScreenNode(text=text),))


def act(guard: LoopGuard, shown: str, result: str = "ok", **args: object) -> str | None:
    """Record an act on a screen with the text `shown`; return the notice to the model, if any."""
    guard.trail.see(screen(shown))
    guard.trail.act()
    return guard.record(call(**args), result, is_act=True)


def play(guard: LoopGuard, *names: str, is_act: bool = False) -> tuple[int | None, int | None]:
    """Make calls until the guard ends the turn; return the numbers of the call with the first notice and of the last.

    Each is None if it did not occur: there was no notice, or the guard did not end the turn.
    """
    noticed: int | None = None
    for number, name in enumerate(names, 1):
        if guard.record(call(name), "same", is_act=is_act) is not None and noticed is None:
            noticed = number
        if guard.reason is not None:
            return noticed, number
    return noticed, None


@pytest.mark.parametrize(("size", "noticed", "ended"), [(1, 3, 5), (2, 4, 6), (3, 6, 9), (4, 8, 12), (5, 10, 12)])
def test_rounds_end_within_twelve_calls(size: int, noticed: int, ended: int) -> None:
    names = islice(cycle([f"tool_{number}" for number in range(size)]), 40)
    guard = LoopGuard()
    assert play(guard, *names) == (noticed, ended)
    assert guard.reason is not None
    assert guard.reason.startswith("The agent was stopped: ")


def test_numbers_of_looks_and_presses_on_a_changing_screen() -> None:
    guard = LoopGuard()
    for number in range(5):
        guard.record(call(nodeId="4", look=number), f"tapped 4; it is still screen {number}", is_act=True)
    assert guard.reason is not None
    guard = LoopGuard()
    for number in range(20):
        assert act(guard, str(number)) is None
    guard.trail.see(screen("the last"))
    assert (guard.reason, guard.unfinished()) == (None, ())
    assert play(LoopGuard(), *["phone_media"] * 40) == (12, 20)


@given(st.lists(st.integers(0, 9), unique=True, max_size=10))
def test_different_calls_are_no_loop(numbers: list[int]) -> None:
    assert play(LoopGuard(), *map(str, numbers)) == (None, None)


def test_acts_that_bring_up_nothing_new_end_the_turn() -> None:
    guard = LoopGuard()
    notices = [act(guard, str(number % 2), str(number), x=number) for number in range(8)]
    assert [bool(notice) for notice in notices] == [False] * 6 + [True, True]
    act(guard, "0", "9", x=9)
    assert guard.reason == "The agent was stopped: its last 8 acts brought up nothing new on the screen."
    assert fingerprint_of(screen("a")) == fingerprint_of(screen("a"))
    assert fingerprint_of(screen("a")) != fingerprint_of(screen("b"))


def test_the_report_of_a_turn() -> None:
    guard = LoopGuard()
    guard.record(call("memory"), "error: the argument is missing", is_act=False)  # no act
    for result in ("ok", "ok", "error: 403 user_denied: x", "error: no such node.\nLook again."):
        act(guard, "a", result, x=1)
    act(guard, "b", x=2)  # the last one: unknown
    guard.record(call("mcp_pay"), "error: The user did not allow this call.", is_act=False)
    assert guard.unfinished() == (
        'phone_tap {"x": 1}: nothing changed on the screen',
        'phone_tap {"x": 1}: denied',
        'phone_tap {"x": 1}: no such node.',
        "mcp_pay: denied",
    )
    guard = LoopGuard()
    for shown in "aba":  # back to an earlier screen, which is a change
        act(guard, shown, x=1)
    guard.trail.see(screen("b"))
    assert guard.unfinished() == ()
    guard = LoopGuard()
    for _ in range(2):
        guard.trail.see(screen("a"))
        guard.trail.act(shows=False)
        guard.record(call(x=1), "ok", is_act=True)
    assert guard.unfinished() == ()


def test_a_model_that_makes_the_same_call_for_ever() -> None:
    world = AgentHarness(model=[calls(("skills_list", {})) for _ in range(40)])
    outcome = world.answer("Go")
    assert (outcome.finish, len(world.model.seen)) == ("length", 5)
    assert outcome.reason == "The agent was stopped: it made the same call 5 times, with the same result."
    told = [row["content"] for row in world.model.seen[3]["messages"] if row["role"] == "tool"]
    assert ["[notice: You have made this call 3 times" in text for text in told] == [False, False, True]


def test_calls_of_one_answer_end_with_the_turn() -> None:
    world = AgentHarness(phone=True, model=[calls(*[("phone_tap_text", {"text": "Nothing"})] * 9)])
    world.answer("Go")
    assert [finished.error for finished in world.host.finished][5:] == [
        "The agent was stopped: it made the same call 5 times, with the same result."
    ] * 4
    assert len(world.model.seen) == 1
