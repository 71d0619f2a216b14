"""What the documents show is what there is: code, steps of the contract, links, the picture of the doors."""

from __future__ import annotations

import re
from pathlib import Path

from fuzz.doors import CALLERS, CHANNEL_DOORS, IN, RELAY_DOORS
from runtimes import threads_loop
from svc_proto import boundary

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/embedding/runtime.md").read_text()
(LOOP,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


PICTURE = {  # of docs/security.md: the callers and the doors of `fuzz/doors.py` that a box stands for
    "pages": "lan_page local_page",
    "nobody": "stranger other_user proxy revoked",
    "anybody": "anybody",
    "socket": "anybody but pages",
    "local_door": "programs of this host",
    "devices": "this host, or a session",
    "session": "a session; whoever has signed in",
    "granted": "a session with bridge; a session with bridge, but no page's; a session with voice; "
    "a session with voice, but no page's; a session with terminal; a session with tui",
}


def test_the_loop_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert LOOP in Path(threads_loop.__file__).read_text()


def test_the_steps_of_the_documentation_are_the_contract() -> None:
    def steps(text: str) -> list[str]:
        return re.findall(r"^\d\. .*(?:\n   .*)*", text, re.MULTILINE)

    assert steps(GUIDE) == steps(boundary.__doc__ or "")
    assert len(steps(GUIDE)) == 6


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]+))?\)", page.read_text()):
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(found.read_text()), f"{page.name} links to {target}#{anchor}"


def anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a Markdown page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_who_is_trusted_is_said_where_one_starts() -> None:
    start = (ROOT / "README.md").read_text().partition("\n## Start\n")[2].partition("\n## ")[0]
    assert "(docs/security.md)" in start
    sections = re.findall(r"^## (.*)$", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    assert {"Who is trusted with what", "What is lost with what", "A fault to report", "Behind a proxy"} <= {*sections}


def test_the_picture_of_the_doors_is_their_table() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
    drawn = {
        (caller, door)
        for who, doors in re.findall(r"^    (\w+) --> ([\w &]+)$", picture, re.MULTILINE)
        for caller in PICTURE.get(who, who).split()
        for box in doors.split(" & ")
        for door in PICTURE.get(box, box).split("; ")
        if caller in CALLERS
    }
    told = {
        (caller, door)
        for door, (met, _) in (*RELAY_DOORS.items(), *CHANNEL_DOORS.items())
        for caller, what in zip(CALLERS, met.split(), strict=True)
        if what == IN
    }
    assert drawn == told
