"""What the documents show is run: the small runtime of docs/runtimes.md serves a connection, under the contract."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from fuzz.doors import CALLERS, CHANNEL_DOORS, IN, RELAY_DOORS
from runtimes.sim.check import ContractError
from svc_proto.basics.moment import Moment
from svc_proto.engine import boundary
from svc_proto.facts import Started
from tests.loops import outside_loop

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/runtimes.md").read_text()
LOOP, RUNTIME, CHECKED = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


PICTURE = {  # of docs/security.md: the callers and the doors of `fuzz/doors.py` that a box stands for
    "pages": "lan_page local_page",
    "nobody": "stranger other_user proxy revoked",
    "anybody": "anybody",
    "socket": "anybody but pages",
    "local_door": "programs of this host",
    "devices": "this host, or a session",
    "session": "a session; whoever has signed in",
    "granted": "a session with bridge; a session with voice; a session with voice, but no page's; "
    "a session with terminal; a session with tui",
}


@pytest.fixture
def names() -> dict[str, Any]:
    """What the guide's small runtime and its check define."""
    defined: dict[str, Any] = {}
    exec(compile(RUNTIME + CHECKED, "docs/runtimes.md", "exec"), defined)
    return defined


def test_the_runtime_of_the_documentation_serves_and_keeps_the_contract(names: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        core = names["Checked"](names["relay"]())
        thread = threading.Thread(target=names["serve_one"], args=(listener, core), daemon=True)
        thread.start()
        with socket.create_connection(listener.getsockname(), timeout=10.0) as peer:
            peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            peer.sendall(b"POST /pairing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            assert b'"code"' in peer.recv(65536)
            peer.sendall(b"GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := peer.recv(65536):
                answer += piece
            assert b"404 Not Found" in answer
        thread.join(10.0)
        assert not thread.is_alive()


def test_the_check_of_the_documentation_finds_a_breach(names: dict[str, Any]) -> None:
    core = names["Checked"](names["relay"]())
    core.handle(Started(), Moment(0.0, 0.0))
    with pytest.raises(ContractError, match="comes once"):
        core.handle(Started(), Moment(0.0, 0.0))


def test_the_loop_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert LOOP in Path(outside_loop.__file__).read_text()


def test_the_steps_of_the_documentation_are_the_contract() -> None:
    def steps(text: str) -> list[str]:
        return re.findall(r"^\d\. .*(?:\n   .*)*", text, re.MULTILINE)

    assert steps(GUIDE) == steps(boundary.__doc__ or "")
    assert len(steps(GUIDE)) == 6


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


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
