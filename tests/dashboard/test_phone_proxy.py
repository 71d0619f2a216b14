"""The reference phone in the dashboard: found by its file, read and controlled by forwarded requests."""

import json

import pytest

from svc_proto.dashboard.phone_proxy import PREFIX
from svc_proto.service_clients.phone_screen_endpoint import PHONE_SCREEN_FILE
from tests.loops.dashboard_client import DashboardServer
from tests.loops.phone_screen import PhoneScreen
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.http_codec import Response
from tests.support.openapi_validation import OpenApiValidator
from tests.support.servers.canned_server import CannedServer, http


def point_at(world: SimulatedEnvironment, port: int) -> None:
    """Write the file by which a phone announces its screen."""
    host = world.relay_host
    text = json.dumps({"url": f"http://127.0.0.1:{port}", "secret": "5ec4e7"})
    host.disk.replace(f"{host.state}/{PHONE_SCREEN_FILE}", text.encode())


def test_phone_screen_and_touches(virtual: SimulatedEnvironment) -> None:
    """Check also that each answer matches the dashboard's document."""
    virtual.start_relay()
    board = DashboardServer(virtual)
    documented = OpenApiValidator.of(board.request("GET", "/openapi.json").body)

    def ask(method: str, path: str, body: object = None) -> Response:
        answer = board.request(method, PREFIX + path, body)
        documented.check(f"{method} {PREFIX}{path.partition('?')[0]}", answer)
        return answer

    without_phone = ask("GET", "/screen")
    assert (without_phone.status, "svc phone" in board.detail(without_phone)) == (404, True)
    phone = PhoneScreen(virtual, name="Pixel 9")
    screen = ask("GET", "/screen").json
    assert screen["name"] == "Pixel 9"
    assert ask("POST", "/touch", {"kind": "key", "key": "recents"}).json == {"ok": True}
    assert ask("POST", "/touch", {"kind": "knock"}).status == 400
    began = virtual.clock()
    after = ask("GET", f"/screen?seen={screen['tag']}").json
    assert after["tag"] != screen["tag"]
    assert virtual.clock() - began < 1  # no wait: the screen has changed already
    same = ask("GET", f"/screen?seen={after['tag']}").json  # before its timeout of 5 s
    assert same["tag"] == after["tag"]
    refused = ask("POST", "/answer", {"question": "c9", "allow": True})
    assert (refused.status, refused.json["detail"]["code"]) == (409, "not_open")
    assert ask("POST", "/toggle", {"on": False}).status == 200
    silent = ask("POST", "/say", {"text": "hello"})
    assert (silent.status, board.detail(silent)) == (404, "this dashboard offers no chat with the agent")
    assert ask("GET", "/screen").json["device_control"] is False
    phone.server.kill()
    gone = ask("GET", "/screen")
    assert (gone.status, board.detail(gone).startswith("phone unreachable at 127.0.0.1:41233")) == (502, True)


def test_text_to_the_phone(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    PhoneScreen(virtual)
    board = DashboardServer(virtual, api_url="http://127.0.0.1:8642")
    assert board.request("POST", f"{PREFIX}/say", {"text": "hello"}).status == 200
    assert board.request("GET", f"{PREFIX}/screen").json["talk"][0] == {"id": 1, "kind": "person", "text": "hello"}


def test_forwarded_requests(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b"{}"))
    board = DashboardServer(virtual)
    port = virtual.start_service("canned", lambda port, home: peer, port=41_234).port
    point_at(virtual, port)
    assert board.request("GET", f"{PREFIX}/screen?seen=a/b%26c&x=1").status == 200
    assert board.request("POST", f"{PREFIX}/touch?seen=x", b'{"kind":"wake"}').status == 200
    first, second = (part.partition(b"\r\n")[0] for part in peer.heard)
    assert (first, second) == (b"GET /screen?seen=a%2Fb%26c HTTP/1.1", b"POST /touch HTTP/1.1")
    assert peer.heard[0].lower().count(b"authorization: bearer 5ec4e7") == 1
    assert peer.heard[1].endswith(b'{"kind":"wake"}')


@pytest.mark.parametrize(("method", "path"), [("GET", "/touch"), ("POST", "/screen"), ("POST", "/tap"), ("GET", "")])
def test_other_requests_are_refused(virtual: SimulatedEnvironment, method: str, path: str) -> None:
    assert DashboardServer(virtual).request(method, PREFIX + path).status in (404, 405)
