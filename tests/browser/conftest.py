"""Fixtures with a real browser on the real page. Without Chromium or Playwright, a message replaces these tests.

`site` is a real environment, in which a test starts the dashboard, other servers and phones. `visit` opens the page. A
test fails at its end if the page has requested another origin, or has thrown or logged what is not tolerated.

With `--full` or `--rest`, tests with the marker `firefox` run in Firefox, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

from servers.dashboard_program import page_files
from tests.browser.firefox import FIREFOX, NODE_OPTIONS, RECORD_BODIES, launch_firefox
from tests.loops.dashboard_client import DashboardServer
from tests.loops.live_environment import LiveEnvironment
from tests.runtimes.conftest import certificate as certificate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, Playwright, Request

PROGRAMS = (
    "chromium-headless-shell",  # half the cost of the others, whose window is not needed
    *("chromium", "chromium-browser", "google-chrome"),
)
CHROMIUM = next(filter(None, map(which, PROGRAMS)), None)
MISSING = "Chromium" if CHROMIUM is None else "playwright" if find_spec("playwright") is None else None
FLAGS = (
    "--no-sandbox",  # the tests may run as root
    "--host-resolver-rules=MAP evil.example 127.0.0.1",  # a foreign site, whose requests do not leave this host
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
BLOCKED = "Service Worker registration blocked by Playwright"
LEFT = "error loading dynamically imported module"  # of Firefox, when a page is left
PATIENCE = 30_000  # ms, for anything that should happen at once, also on a busy machine

if MISSING is not None:
    collect_ignore_glob = ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING is not None:
        terminalreporter.write_line(f"{MISSING} is not installed: the dashboard's page was not tested")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests with the marker `firefox` in Firefox, too, with `--full` or `--rest`."""
    options = metafunc.config.option
    if metafunc.definition.get_closest_marker("firefox") and (options.full or options.rest):
        firefox = pytest.param("firefox", marks=pytest.mark.needs("Firefox", FIREFOX is None))
        metafunc.parametrize("browser", ["chromium", firefox], indirect=True, scope="package")


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Yield Playwright, which drives Chromium and Firefox."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NODE_OPTIONS", NODE_OPTIONS)
        started = sync_playwright().start()
    yield started
    started.stop()


@pytest.fixture(scope="package")
def browser(playwright: Playwright, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Yield a browser, Chromium unless the parameter is `firefox`; each page of a test has a profile of its own."""
    if getattr(request, "param", "chromium") == "firefox":
        opened = launch_firefox(playwright)
    else:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
    yield opened
    opened.close()


def read_script(name: str) -> str:
    """Return the text of a file in `scripts`: a function in JavaScript, or Markdown."""
    return (Path(__file__).parent / "scripts" / name).read_text()


def body_of(request: Request) -> Any:
    """Return the JSON body of a request that the page has sent by `fetch`."""
    if (body := request.post_data) is None:
        body = request.frame.page.evaluate("(address) => globalThis.sentBodies[address]", request.url)
    return json.loads(body)


def box_of(element: Locator) -> Any:
    """Return the place of an element on the screen, a `FloatRect`; assert that the element is drawn."""
    box = element.bounding_box()
    assert box is not None
    return box


class Site:
    """A real environment and its dashboard."""

    def __init__(self, world: LiveEnvironment) -> None:
        self.world = world
        self.board: DashboardServer

    def open(self, **config: Any) -> DashboardServer:
        """Start the dashboard with the packaged page, beside the programs that run already; return it.

        Its timeouts are longer than usual, so that a busy machine does not fail a test.
        """
        config.setdefault("patience", PATIENCE / 1000)
        self.board = DashboardServer(self.world, files=page_files(), **config)
        return self.board

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.board.server.port}/"


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    def made() -> tuple[Path, Path]:
        files: tuple[Path, Path] = request.getfixturevalue("certificate")
        return files

    world = LiveEnvironment("asyncio", tmp_path, made)
    try:
        yield Site(world)
    finally:
        world.close()


class PageOpener:
    """Opener of pages; their errors, console messages and requests to other origins are `faults` unless tolerated."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.faults: list[str] = []
        self.asked: list[str] = []  # every requested address
        self.tolerated: tuple[str, ...] = ()

    def __call__(self, url: str, *, clock: float | None = None, **options: Any) -> Page:
        """Open a page in a new profile, and return it. The page has a fake clock, which a test can advance and stop.

        The clock starts at `clock`, epoch s, or at the present.
        """
        options.setdefault("service_workers", "block")  # requests of a worker are invisible to `page.route`
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        if self._browser.browser_type.name == "firefox":
            context.add_init_script(RECORD_BODIES)
        page = context.new_page()
        page.clock.install(time=clock)
        page.on("console", self._on_message)
        page.on("pageerror", self._on_error)
        page.on("request", lambda request: self._saw(url, request))
        page.goto(url)
        return page

    def close(self) -> None:
        for context in self._contexts:
            with suppress(Exception):
                context.close()
        assert self.faults == []

    def _on_error(self, error: Error) -> None:
        if not str(error).startswith((*self.tolerated, LEFT)):
            self.faults.append(f"thrown: {error}")

    def _on_message(self, message: ConsoleMessage) -> None:
        if not message.text.startswith((*self.tolerated, BLOCKED)):
            self.faults.append(f"{message.type}: {message.text}")

    def _saw(self, url: str, request: Request) -> None:
        self.asked.append(request.url)
        origin = "/".join(url.split("/", 3)[:3])
        if not request.url.startswith(origin):
            self.faults.append(f"asked elsewhere: {request.url}")


@pytest.fixture
def visit(browser: Browser) -> Iterator[PageOpener]:
    visitor = PageOpener(browser)
    yield visitor
    visitor.close()
