"""Tests that the page names the clients of the suite, with the versions of the lock files."""

import json
import re

import pytest

from tests.conformance.chat_clients_suite import CLIENTS, FOLDER, WANTED, ChatClient
from tests.servers.program_process import ROOT

PAGE = (ROOT / "docs/reference/compatibility.md").read_text()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.package)
def test_a_client_of_the_page_has_its_version_in_a_lock_file(client: ChatClient) -> None:
    responses = len(client.routes) > 1
    assert client.left_out.keys() <= WANTED.keys()
    results = "yes", ("yes" if not client.left_out else "yes, but for a refused stream") if responses else "has none"
    assert f"| {' | '.join((client.package, *results))} |" in PAGE
    name, version = client.package.split()[:2]
    if client.program.endswith(".mjs"):
        packages = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
        assert packages[f"node_modules/{name}"]["version"] == version
    else:
        lock = (ROOT / "requirements" / f"{client.lock}.lock").read_text()
        assert re.search(rf"^{re.escape(name)}(\[.*\])?=={re.escape(version)} ", lock, re.MULTILINE)
