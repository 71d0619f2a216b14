import pytest

from svc_proto.dashboard.static_files import command_sentences, routes
from tests.loops.dashboard_client import FILES, DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment


def test_files_are_served_with_their_types(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    page = board.request("GET", "/")
    assert (page.status, page.body) == (200, FILES["index.html"])
    assert page.headers.get(b"content-type") == b"text/html; charset=utf-8"
    assert (page.headers.get(b"x-frame-options"), page.headers.get(b"cache-control")) == (b"DENY", b"no-cache")
    script = board.request("GET", "/page/app.js")
    assert script.headers.get(b"content-type") == b"text/javascript; charset=utf-8"
    assert script.body == FILES["app.js"]
    assert board.request("GET", "/page/index.html").status == 404
    assert board.request("GET", "/page/../config").status == 404
    assert board.request("POST", "/").status == 405
    assert board.request("HEAD", "/").body == b""


def test_under_a_path_of_a_proxy(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual, root_path="/board")
    for path in ("/board/", "/"):
        assert board.request("GET", path).body == FILES["index.html"]
    assert board.request("GET", "/board/page/app.js").body == FILES["app.js"]
    short = board.request("GET", "/board")
    assert (short.status, short.headers.get(b"location")) == (308, b"/board/")
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert board.request("GET", "/board", headers=link).status == 308
    assert board.request("GET", "/board/page/app.js", headers=link).status == 403
    assert board.request("GET", "/boarding").status == 404


def test_sentences_of_the_commands_are_a_module_of_a_known_type() -> None:
    lines = command_sentences().decode().splitlines()
    assert lines[0] == 'import { t } from "./i18n.js";'
    assert '  "/ping": [t("Checked the connection"), t("check the connection")],' in lines
    keys = [line.partition(":")[0].strip() for line in lines]
    assert keys.index('"GET /clipboard"') < keys.index('"/clipboard"')
    with pytest.raises(KeyError):
        routes({"page.exe": b""})
