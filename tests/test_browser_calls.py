"""Calls of Playwright that the page's Content-Security-Policy forbids, which the tests in browsers must not use."""

import ast
from pathlib import Path

import pytest

BROWSER_TESTS = Path(__file__).parent / "browser"
POLLING = "wait_for_function"  # evaluates a string in each frame, outside the call that Firefox exempts from the policy


def find_polling(source: str) -> list[int]:
    """Return the lines on which a text of Python uses the polling call."""
    return [
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and node.attr == POLLING
    ]


def test_no_test_in_a_browser_polls_the_page_by_eval() -> None:
    found = {path.name: find_polling(path.read_text(encoding="utf-8")) for path in BROWSER_TESTS.glob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [("page.evaluate('1')\npage.wait_for_function('x')", [2]), ("# wait_for_function\npage.evaluate('1')", [])],
)
def test_a_polling_call_is_found(source: str, lines: list[int]) -> None:
    assert find_polling(source) == lines
