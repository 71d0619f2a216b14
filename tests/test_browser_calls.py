"""A call of Playwright that the page's Content-Security-Policy forbids, which the tests in browsers must not use."""

from pathlib import Path

BROWSER_TESTS = Path(__file__).parent / "browser"
POLLING = ".wait_for_function("  # evaluates a string in each frame, where Firefox does not exempt it from the policy


def test_no_test_in_a_browser_polls_the_page_by_eval() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in BROWSER_TESTS.glob("*.py")}
    assert len(texts) > 10
    assert [name for name, text in texts.items() if POLLING in text] == []
