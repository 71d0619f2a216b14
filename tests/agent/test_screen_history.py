from __future__ import annotations

from itertools import pairwise

import pytest

from svc_proto.agent.screen_history import LARGE_BUDGET, Row, screen_budget, shorten_screens

SCREEN = 'screen {n} com.example.mail 1080x2400\n1 "Inbox"\n(window behind, com.a)\n2 button "Ada {n}"'


def result(number: int, start: str = "", end: str = "") -> Row:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": start + SCREEN.format(n=number) + end}


@pytest.mark.parametrize(
    ("context", "few", "budget"),
    [(None, False, LARGE_BUDGET), (None, True, 455), (4_096, True, 455), (1_000_000, False, LARGE_BUDGET)],
)
def test_budget_follows_the_context(context: int | None, few: bool, budget: int) -> None:
    assert screen_budget(context, few=few) == budget


def test_all_but_the_newest_become_a_line_at_once() -> None:
    rows: list[Row] = [
        {"role": "user", "content": "Go"},
        result(1, "opened com.example.mail; changed: true\n"),
        result(2, "", "\nnote of another"),
        {"role": "tool", "tool_call_id": "x", "content": '{"pong":true}'},
        {"role": "assistant", "content": None},
        result(3),
    ]
    assert shorten_screens(rows, 100) == rows
    assert [row["content"] for row in shorten_screens(rows, 60)] == [
        "Go",
        "opened com.example.mail; changed: true\n[screen 1: shown before]",
        "[screen 2: shown before]\nnote of another",
        '{"pong":true}',
        None,
        rows[5]["content"],
    ]
    assert "Inbox" in str(rows[1]["content"])  # the stored rows are unchanged


def test_of_equal_screens_in_a_row_the_newest_is_kept() -> None:
    equal = {"role": "tool", "content": result(1)["content"]}
    later = {"role": "tool", "content": str(result(1)["content"]).replace("screen 1", "screen 2")}
    rows = [result(0), equal, {"role": "assistant", "content": ""}, later]
    assert [row["content"] for row in shorten_screens(rows, 1_000)] == [
        rows[0]["content"],
        "[screen 1: shown before]",
        "",
        later["content"],
    ]


def test_most_requests_begin_with_the_one_before() -> None:
    rows = [result(number) for number in range(40)]
    sent = [shorten_screens(rows[: count + 1], 150) for count in range(40)]
    kept = [before == after[: len(before)] for before, after in pairwise(sent)]
    assert kept.count(False) * 4 <= len(kept)
    assert all(sum("Inbox" in str(row["content"]) for row in request) <= 6 for request in sent)


def test_a_text_of_others_is_no_screen() -> None:
    row: Row = {"role": "tool", "content": '1 "screen 5 com.a 1x1\\n2 x"'}
    assert shorten_screens([row, row], 0) == [row, row]
