from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.context_window import (
    IMAGE_TOKENS,
    SHORT_RESULT,
    SHORTENED,
    STEPS_LEFT_OUT,
    estimate_tokens,
    fit_messages,
)


def row(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def turn(size: int) -> list[dict[str, Any]]:
    return [row("user", "q" * size), row("assistant", "a" * size), row("tool", "r" * size)]


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("word " * 70, 100, 100),
        ([row("user", "word " * 70)], 100, 120),
        ([row("user", "日本" * 50)], 85, 105),
        ([row("user", [{"type": "text", "text": "abc"}, {"image_url": {"url": "x" * 10**6}}])], IMAGE_TOKENS, 1_020),
        ([{"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": "x" * 350}}]}], 100, 140),
        ([], 0, 0),
        ({"type": "function"}, 5, 8),
    ],
)
def test_estimates(value: object, low: int, high: int) -> None:
    assert low <= estimate_tokens(value) <= high


def test_whole_turns_are_left_out() -> None:
    rows = [row("system", "S"), *turn(700), *turn(350), *turn(70), row("user", "now")]
    sizes = [estimate_tokens([each]) for each in rows]
    everything = sum(sizes)
    assert fit_messages(rows, everything, 10).rows == rows
    fitted = fit_messages(rows, everything - 1, 10)
    assert (fitted.rows, fitted.left_out, fitted.shortened) == ([rows[0], *rows[4:]], 3, 0)
    fitted = fit_messages(rows, sizes[0] + sum(sizes[7:]), 10)
    assert (fitted.rows, fitted.left_out) == ([rows[0], *rows[7:]], 6)
    fitted = fit_messages(rows, 1, 10)
    assert (fitted.rows, fitted.left_out) == ([rows[0], rows[10]], 9)
    rows = [row("system", "S"), *turn(700), *turn(70), *turn(350), row("user", "now")]
    rest = estimate_tokens([rows[0], *rows[7:]])
    assert [fit_messages(rows, limit, 10).left_out for limit in (2 * rest, 2 * rest + 2)] == [6, 3]


def test_requests_of_a_growing_chat_begin_alike() -> None:
    rows = [row("system", "S")]
    beginnings = []
    for _ in range(24):
        rows += [row("user", "q" * 300), row("assistant", "a" * 300)]
        beginnings.append(fit_messages([*rows, row("user", "now")], 2_000, len(rows)).left_out)
    assert sorted(set(beginnings)) == [0, 8, 16, 24, 32]
    assert beginnings == sorted(beginnings)


def test_results_of_the_turn_are_shortened_oldest_first() -> None:
    rows = [row("user", "now"), row("assistant", ""), row("tool", "a" * 7000), row("tool", "b" * 7000)]
    fitted = fit_messages(rows, 2_500, 0)
    first, second = (str(each["content"]) for each in fitted.rows[2:])
    assert first.startswith("a" * SHORT_RESULT + "\n[shortened to fit the model's context: 6600 more characters]")
    assert (second, fitted.left_out, fitted.shortened) == ("b" * 7000, 0, 1)
    fitted = fit_messages(rows, 600, 0)
    second = str(fitted.rows[3]["content"])
    assert fitted.shortened == 2
    assert SHORT_RESULT < second.count("b") < 1_800
    assert estimate_tokens(fitted.rows) <= 600
    short = [row("tool", "x" * (SHORT_RESULT + len(SHORTENED)))]
    assert fit_messages(short, 1, 0).rows == short
    assert fit_messages([row("system", "S" * 100)], 1, 0).rows == [row("system", "S" * 100)]


def step(number: int, size: int = 350) -> list[dict[str, Any]]:
    return [row("assistant", f"step {number}"), row("tool", f"{number}" * size)]


def test_a_long_turn_leaves_out_its_oldest_steps_in_blocks() -> None:
    prompt, seen = row("user", "Go"), list[str]()
    rows = [row("system", "S"), prompt]
    for number in range(10, 40):
        rows += step(number, 175)
        fitted = fit_messages(rows, 1_200, 1)
        assert estimate_tokens(fitted.rows) <= 1_200
        assert (fitted.left_out, fitted.rows[-2:]) == (0, rows[-2:])
        assert len(fitted.rows) == len(rows) - 2 * fitted.steps
        assert (fitted.rows[1] == prompt) is (fitted.steps == 0)
        seen.append(str(fitted.rows[1]["content"]))
    assert seen[-1] == "Go\n\n[24 earlier steps of this task, which were done, are left out here.]"
    assert sorted(set(seen), key=seen.index)[:2] == ["Go", seen[-1].replace("24", "4")]
    behind = fit_messages([rows[0], row("user", "Before"), row("assistant", "Done"), *rows[1:]], 1_200, 3)
    assert (behind.rows, behind.left_out) == (fit_messages(rows, 1_200, 1).rows, 2)


def test_a_turn_that_fits_exactly_without_some_steps() -> None:
    rows = [row("user", "Go"), *step(10, 175), *step(11, 175), *step(12, 175)]
    note = estimate_tokens(STEPS_LEFT_OUT)
    rest = estimate_tokens([rows[0], *rows[5:]]) + note
    assert [fit_messages(rows, limit, 0).steps for limit in (2 * rest, 2 * rest + 2)] == [2, 1]
    assert fit_messages(rows, estimate_tokens(rows), 0).rows == rows
    assert fit_messages(rows[:5], 150, 0).steps == 1
    rows = [*rows[:5], *step(12, 20)]
    rest = estimate_tokens([rows[0], *rows[3:]]) + note
    assert [fit_messages(rows, limit, 0).steps for limit in (rest - 1, rest)] == [2, 1]


def test_the_newest_screen_of_a_long_turn_stays_whole() -> None:
    lines = "\n".join(f'{number} button "Entry"' for number in range(40))
    screen = row("tool", f"opened; changed: true\nscreen 412 com.a 100x200\n{lines}")
    rows = [row("user", [{"type": "text", "text": "Go"}])]
    for number in range(10, 20):
        rows += step(number)
    rows += [row("assistant", ""), screen, *step(20, 20)]
    fitted = fit_messages(rows, 700, 0)
    assert screen in fitted.rows
    assert fitted.rows[0]["content"][1]["text"].startswith(f"[{fitted.steps} earlier steps")  # type: ignore[index]
    assert fitted.steps
    (cut,) = [text for each in fit_messages(rows, 250, 0).rows if "412" in (text := str(each["content"]))]
    assert "more characters]" in cut  # nothing else is left to leave out


ROLES = st.sampled_from(["user", "assistant", "tool"])


@given(st.lists(st.tuples(ROLES, st.integers(0, 900)), max_size=12), st.integers(1, 2_000), st.integers(0, 12))
def test_fitting_leaves_the_turn_and_gets_small(drawn: list[tuple[str, int]], limit: int, start: int) -> None:
    rows = [row(role, "x" * size) for role, size in drawn]
    start = min(start, len(rows))
    fitted = fit_messages(rows, limit, start)
    roles = [each["role"] for each in rows[fitted.left_out :]]
    assert [each["role"] for each in fitted.rows] == roles or fitted.steps
    assert fitted.left_out <= start
    assert estimate_tokens(fitted.rows) <= max(limit, estimate_tokens(rows[fitted.left_out :]))
