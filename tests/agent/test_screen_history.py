from itertools import pairwise

import pytest

from svc_proto.agent.context_window import Row, estimate_tokens
from svc_proto.agent.screen_history import ALLOWANCE, LARGEST_BUDGET, SENT_PER_LOST, screen_budget, shorten_screens

SCREEN = 'screen {n} com.example.mail 1080x2400\n1 "Inbox"\n(window behind, com.a)\n2 button "Ada {n}"'


def result(number: int, start: str = "", end: str = "") -> Row:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": start + SCREEN.format(n=number) + end}


@pytest.mark.parametrize(("context", "budget"), [(None, LARGEST_BUDGET), (4_096, 455), (1_000_000, LARGEST_BUDGET)])
def test_budget_follows_the_context(context: int | None, budget: int) -> None:
    assert screen_budget(context) == budget


def test_older_screens_become_a_line() -> None:
    rows: list[Row] = [
        {"role": "user", "content": "Go"},
        result(1, "opened com.example.mail; changed: true\n"),
        result(2, "", "\nnote of another"),
        {"role": "tool", "tool_call_id": "x", "content": '{"pong":true}'},
        {"role": "assistant", "content": None},
        result(3),
    ]
    assert shorten_screens(rows[:2], 0) == rows[:2]
    assert [row["content"] for row in shorten_screens(rows, 0)] == [
        "Go",
        "opened com.example.mail; changed: true\n[screen 1: shown before]",
        "[screen 2: shown before]\nnote of another",
        '{"pong":true}',
        None,
        rows[5]["content"],
    ]
    assert "Inbox" in str(rows[1]["content"])  # the stored rows are unchanged


def test_a_screen_stays_if_a_cache_would_lose_too_much() -> None:
    long = "x" * ALLOWANCE * 4
    rows: list[Row] = [result(1, end=f'\n9 "{long}"'), {"role": "assistant", "content": ""}, result(2), result(3)]
    whole = [count for count, row in enumerate(shorten_screens(rows, LARGEST_BUDGET)) if "Inbox" in str(row["content"])]
    assert whole == [0, 3]  # the small second one is replaced
    first, second = (estimate_tokens(str(row["content"])[len("screen 1") :]) for row in (rows[0], rows[2]))
    base = SENT_PER_LOST * (first - ALLOWANCE) - estimate_tokens(rows[:1])
    assert shorten_screens(rows, LARGEST_BUDGET, base)[0]["content"] == "[screen 1: shown before]"
    assert shorten_screens(rows, LARGEST_BUDGET, base - 1)[0] == rows[0]
    assert shorten_screens(rows[:3], first + second)[0] == rows[0]
    assert shorten_screens(rows[:3], first + second - 1)[0]["content"] == "[screen 1: shown before]"


def test_of_equal_screens_in_a_row_the_newest_is_kept() -> None:
    equal = {"role": "tool", "content": result(1)["content"]}
    later = {"role": "tool", "content": str(result(1)["content"]).replace("screen 1", "screen 2")}
    rows = [result(0), equal, {"role": "assistant", "content": ""}, later]
    shown = [f"[screen {number}: shown before]" for number in (0, 1)]
    assert [row["content"] for row in shorten_screens(rows, 1_000)] == [*shown, "", later["content"]]


def test_looks_at_an_equal_screen_do_not_make_others_stay() -> None:
    long: Row = {"role": "tool", "content": f'{result(1)["content"]}\n9 "{"x" * ALLOWANCE * 2}"'}
    sent = shorten_screens([long, long, long, result(2)], LARGEST_BUDGET)
    assert [row["content"] for row in sent[:3]] == ["[screen 1: shown before]"] * 3


def test_a_replacement_changes_the_end_of_the_request_before() -> None:
    rows: list[Row] = []
    sent: list[list[Row]] = [[]]
    for number in range(40):
        rows += [{"role": "assistant", "content": ""}, result(number)]
        sent.append(shorten_screens(rows, 150, base=1_000))
    assert all(before[:-1] == after[: len(before[:-1])] for before, after in pairwise(sent))
    assert all(sum("Inbox" in str(row["content"]) for row in request) <= 6 for request in sent)


def test_a_text_of_others_is_no_screen() -> None:
    row: Row = {"role": "tool", "content": '1 "screen 5 com.a 1x1\\n2 x"'}
    assert shorten_screens([row, row], 0) == [row, row]
