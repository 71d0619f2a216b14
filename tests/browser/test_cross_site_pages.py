"""Test that a script of a foreign page, in a browser on the relay's host, registers no code and opens no WebSocket."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Site, read_script

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = "<!doctype html><title>A page of another site</title>"
ATTACK = read_script("cross_site_attack.js")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it has there
        ...


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[int]:
    """Run another web server on this host, with an empty page, and yield its port."""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "index.html").write_text(PAGE)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "place",
    [
        "http://localhost:{port}/",
        "http://127.0.0.1:{port}/",
        "http://evil.example:{port}/",
        "file://{folder}/index.html",
    ],
)
@pytest.mark.parametrize("relay", ["127.0.0.1", "localhost"])
def test_a_foreign_page_registers_no_code_and_opens_no_socket(
    browser: Browser, site: Site, elsewhere: int, tmp_path: Path, place: str, relay: str
) -> None:
    world = site.world
    world.start_relay()
    context = browser.new_context()
    page = context.new_page()
    page.goto(place.format(port=elsewhere, folder=tmp_path / "pages"))
    told = page.evaluate(ATTACK, f"{relay}:{world.relay.port}")
    context.close()
    assert told == ["sent", *["refused"] * 6]
    assert world.websocket().sign_in(pairing_code="EVIL66")["type"] == "auth.fail"
    world.pair()  # and the rate limiter has blocked no address
