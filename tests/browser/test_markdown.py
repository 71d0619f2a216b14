"""Tests of Markdown in the chat: the examples of CommonMark, the extensions, and hostile texts.

`commonmark-0.31.2.json.gz` has the examples of the specification (John MacFarlane, CC BY-SA 4.0) as pairs of text and
expected HTML.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageOpener, Site, read_script
from tests.browser.test_layout import ENDED, Scripted, start
from tests.browser.test_pictures import faults

EXAMPLES: list[tuple[str, str]] = json.loads(
    gzip.decompress(Path(__file__).with_name("commonmark-0.31.2.json.gz").read_bytes())
)
EXTENSIONS = 40  # examples at most that use the syntax of an extension, such as a plain address that becomes a link

DRAW = read_script("draw_examples.js")
CANONICAL = read_script("canonical_html.js")


def drawn(page: Page, source: str) -> None:
    """Replace the content of the page's `main` element by the text, drawn as a message of the chat."""
    page.evaluate(
        """async (source) => {
          const { loadMarkdown, Prose } = await import('/page/prose.js');
          await loadMarkdown();
          const element = document.createElement('div');
          element.className = 'prose';
          document.querySelector('main').replaceChildren(element);
          new Prose().draw(element, source);
        }""",
        source,
    )


def test_the_examples_of_commonmark(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    found: list[dict[str, Any]] = page.evaluate(DRAW, EXAMPLES)
    judge = page.context.new_page()  # without the page's policy, which refuses to parse markup
    different: list[str] = []
    extended = 0
    for (source, expected), each in zip(EXAMPLES, found, strict=True):
        if each["raw"]:  # markup stays text here
            continue
        if each["extensions"]:
            extended += 1
            continue
        wanted, got = judge.evaluate(CANONICAL, [expected, each["html"]])
        if wanted != got:
            different.append(f"{source!r}\n  {wanted}\n  {got}")
    assert different == []
    assert extended <= EXTENSIONS
    assert len(EXAMPLES) == 652


GROWN = read_script("grown_texts.js")


def test_a_text_that_has_grown_is_drawn_as_the_whole_one(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    files = ["MEDIA:svc-relay://abc", "See:\n\nMEDIA:/tmp/a.png", "- one\n- MEDIA:/tmp/a.png"]
    assert page.evaluate(GROWN, [*(source for source, _ in EXAMPLES), RICH, *files]) == []


RICH = read_script("rich.txt")


@pytest.mark.firefox
def test_tables_tasks_footnotes_math_and_colours(site: Site, visit: PageOpener) -> None:
    rows = [{"role": "user", "content": "?"}, {**ENDED, "content": RICH}]
    script = Scripted(messages={"messages": rows}, chats={"sessions": [{"id": "c", "title": "c"}]})
    page = start(site, visit, "#chat/c", script, viewport={"width": 320, "height": 640})
    prose = page.locator(".prose")
    for title, level in (("Steps", 3), ("Detail", 4), ("More", 3)):  # none is skipped
        expect(prose.get_by_role("heading", name=title)).to_have_attribute("aria-level", f"{level}")
    expect(prose.locator("td").last).to_have_css("text-align", "right")
    expect(prose.locator("td s")).to_have_text("3")
    expect(prose.get_by_role("img", name="Done:")).to_have_text("☑")
    expect(prose.locator(".katex")).to_have_count(4)
    expect(prose.locator(".math.display .mfrac").first).to_be_visible()
    expect(prose).to_contain_text("at $5 or $10.")
    expect(prose.locator("pre .hljs-keyword").first).to_have_text("def")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    prose.get_by_role("button", name="Copy this code").first.click()
    assert page.evaluate("window.copied") == prose.locator("pre").first.inner_text()
    prose.get_by_role("button", name="Footnote 1").click()
    expect(prose.locator("[data-note='1']")).to_be_focused()
    assert [each.get_attribute("href") for each in prose.locator("a").all()] == [
        "https://pictures.example/a.png",
        "https://a.example/",
        "mailto:a@b.example",
    ]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    heavy = {each.rpartition("/")[2] for each in visit.asked}
    assert {"katex.js", "highlight.js", "python.js"} <= heavy
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert faults(page) == []


HOSTILE = read_script("hostile.txt")


def test_hostile_markdown_and_math(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#chat")
    drawn(page, HOSTILE + "> " * 60 + "deep\n\n" + "- " * 60 + "deep\n\n" + "a\u0301" + "\u0310" * 300 + "*_" * 3000)
    prose = page.locator(".prose")
    expect(prose.locator(".math.wrong")).to_have_count(2)
    assert prose.locator("script, img, object, iframe, style, b, svg[onload]").count() == 0
    assert [each.get_attribute("href") for each in prose.locator("a").all()] == [
        "https://evil.example/x.png",
        "https://evil.example/",
    ]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert prose.evaluate("each => getComputedStyle(each).overflow") == "clip"
    code = prose.locator(".code pre").first
    assert code.evaluate(
        "each => [getComputedStyle(each).letterSpacing, parseFloat(getComputedStyle(each).fontSize) < 16]"
    ) == ["normal", True]


def test_first_view_loads_no_library(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    expect(page.get_by_text("No device is paired")).to_be_visible()
    assert not [each for each in visit.asked if "/vendor/" in each]
