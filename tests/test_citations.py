"""Citations in comments: sections of docs/spec/wire, headings of docs/spec/requirements.md, decisions of docs/adr."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("svc_proto", "runtimes", "servers", "clients", "examples", "tests", "fuzz", "bench", "docs")
KINDS = (".py", ".js", ".toml", ".md", ".html", ".css")
PAGES = {
    "core": "core", "bridge": "bridge", "api": "api", "terminal-voice": "terminal-voice", "terminal": "terminal-voice",
    "voice": "terminal-voice"
}  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)*"
_WIRE = re.compile(rf"\bwire[ /]({'|'.join(PAGES)})(?:\.md)? ({_NUMBER}(?:(?:, | and | to ){_NUMBER})*)")
_SPEC = re.compile(r"\b(?:SPEC\.md|docs/spec/requirements\.md|[Ss]pec) \"([^\"]+)\"")
_DECISION = re.compile(r"\b[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)\b")


def sections(text: str) -> set[str]:
    """Return the section numbers of a page's headings."""
    return set(re.findall(rf"^#+ ({_NUMBER})\.? ", text, re.MULTILINE))


def headings(text: str) -> set[str]:
    """Return the headings of a page, without their numbers and without text in brackets."""
    return {heading.partition(" (")[0] for heading in re.findall(r"^#+ (?:\d+\. )?(.+)$", text, re.MULTILINE)}


SECTIONS = {page: sections((ROOT / f"docs/spec/wire/{page}.md").read_text()) for page in set(PAGES.values())}
HEADINGS = headings((ROOT / "docs/spec/requirements.md").read_text())
ADR = ROOT / "docs/adr"
DECISIONS = {
    (number, title, page.name)
    for page in ADR.glob("[0-9]*.md")
    for number, title in re.findall(r"\A# (\d+)\. (.+)$", page.read_text(), re.MULTILINE)
}
NUMBERS = {number for number, _, _ in DECISIONS}
_LINK = re.compile(r"\[(?:decision )?(\d+)\]\((?:[^)]*/)?(\d{4}-[^)]+\.md)\)")


def dangling(text: str) -> list[str]:
    """Return the citations in a text whose target does not exist; a citation may continue in the next comment line."""
    text = re.sub(r"\s*\n\s*(?:#|//|\*|>)?\s*", " ", text)
    found = [
        f"wire {page} {number}"
        for page, numbers in _WIRE.findall(text)
        for number in re.findall(_NUMBER, numbers)
        if number not in SECTIONS[PAGES[page]]
    ]
    found += [f'spec "{name}"' for name in _SPEC.findall(text) if name.partition(" (")[0] not in HEADINGS]
    cited = [number for numbers in _DECISION.findall(text) for number in re.findall(_NUMBER, numbers)]
    return found + [f"decision {number}" for number in cited if number not in NUMBERS]


@pytest.mark.full
@pytest.mark.parametrize("folder", FOLDERS)
def test_each_citation_has_a_target(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and path != Path(__file__)]
    found = {path.relative_to(ROOT).as_posix(): dangling(path.read_text()) for path in files}
    assert {name: each for name, each in found.items() if each} == {}


def test_the_table_of_decisions_lists_every_page() -> None:
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (ADR / "README.md").read_text(), re.MULTILINE)
    assert listed == sorted(DECISIONS, key=lambda each: int(each[0]))
    assert len(NUMBERS) == len(DECISIONS) == len([*ADR.glob("[0-9]*.md")])
    assert all(name.startswith(f"{int(number):04d}-") for number, _, name in DECISIONS)


def test_links_to_decisions_lead_to_their_page() -> None:
    pages = {(number, name) for number, _, name in DECISIONS}
    links = {link for page in (ROOT / "docs").rglob("*.md") for link in _LINK.findall(page.read_text())}
    assert len(links) > 40
    assert links - pages == set()


def test_each_decision_has_context_decision_and_consequences() -> None:
    for page in ADR.glob("[0-9]*.md"):
        text = page.read_text()
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], page.name
        assert text.count("\n") <= 60, page.name


def test_requirements_that_do_not_hold_are_those_that_differ() -> None:
    rows = re.findall(r"^\| (R\d+\.\d+)(\*?) \|", (ROOT / "docs/spec/requirements.md").read_text(), re.MULTILINE)
    numbers = [number for number, _ in rows]
    assert len(numbers) == len(set(numbers)) > 150
    differ = re.findall(r"^\| (R\d+\.\d+): ", (ROOT / "docs/spec/differences.md").read_text(), re.MULTILINE)
    assert sorted(number for number, star in rows if star) == sorted(set(differ))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("see wire core 3.3, 4.1 and 5", 0),
        ("wire terminal 1.6, wire voice 4.2 to 4.5, wire/bridge.md 3.1", 0),
        ("# a rule of wire\n    # core 3.99", 1),
        ("wire api 4.3, 99", 1),
        ('spec "Limits", SPEC.md "Pairing flow", Spec "Grants"', 0),
        ('spec "Limitations"', 1),
        ("decision 16", 0),
        ("decision 9999", 1),
        ("Decisions 7, 46 and 9999", 1),
    ],
)
def test_dangling_citations_are_found(text: str, count: int) -> None:
    assert len(dangling(text)) == count
