"""Commands of the owner to paired phones, through the gates of the relay and of the phone."""

import pytest

from clients.phone.emulator import EmulatedPhone
from svc_proto.dashboard.phone_commands import COMMANDS, MAX_DEVICE, SESSION_NAME
from svc_proto.phone.backend import CommandReply
from svc_proto.phone.safety.settings import SafetySettings
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment


def test_commands_reach_the_named_phone(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    pixel, tablet = EmulatedPhone(name="Pixel"), EmulatedPhone(name="Tablet")
    virtual.phone(name="Pixel", backend=pixel)
    virtual.phone(name="Tablet", backend=tablet)
    board = DashboardServer(virtual)
    answer = board.relay("POST", "/phones/id%20of%20Pixel/tap", {"x": 5, "y": 9})
    assert (answer.status, answer.json["x"], answer.json["y"]) == (200, 5, 9)
    assert [gesture.kind for gesture in pixel.gestures] == ["tap"]
    assert not tablet.gestures
    assert board.relay("POST", "/phones/Tablet/current_app").json["package"]
    picture = board.relay("POST", "/phones/Pixel/screenshot").json["media"].rpartition("/")[2]
    assert board.relay("GET", f"/media/{picture}").headers.get(b"content-type") == b"image/png"
    rows = board.relay("GET", "/bridge-activity").json["activity"]
    assert {row["asked_by"] for row in rows} == {SESSION_NAME}
    names = [each["device_name"] for each in board.relay("GET", "/sessions").json["sessions"]]
    assert names.count(SESSION_NAME) == 1  # the operator sees the session, and can revoke it


def test_a_phone_whose_device_control_is_off_refuses(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    backend = EmulatedPhone(name="Pixel")
    virtual.phone(name="Pixel", backend=backend, safety=SafetySettings())
    answer = DashboardServer(virtual).relay("POST", "/phones/Pixel/tap", {"x": 5, "y": 9})
    assert answer.status == 403
    assert not backend.gestures


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/phones/Pixel/call", {"number": "1"}, 404),
        ("/phones/none/tap", {"x": 1, "y": 1}, 404),
        (f"/phones/{'x' * MAX_DEVICE}/tap", {"x": 1, "y": 1}, 404),
        (f"/phones/{'x' * (MAX_DEVICE + 1)}/tap", {}, 422),
        ("/phones/Pixel/tap", {"x": "wide"}, 400),
    ],
)
def test_refused_commands(virtual: SimulatedEnvironment, path: str, body: dict[str, object], status: int) -> None:
    virtual.start_relay()
    virtual.phone(name="Pixel")
    board = DashboardServer(virtual)
    answer = board.relay("POST", path, body)
    assert answer.status == status
    assert board.detail(answer)


def test_a_phone_that_fails_is_a_bad_gateway(virtual: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedPhone, "execute", lambda phone, command, now: CommandReply(500, {"error": "broken"}))
    virtual.start_relay()
    virtual.phone(name="Pixel", backend=EmulatedPhone(name="Pixel"))
    assert DashboardServer(virtual).relay("POST", "/phones/Pixel/tap", {"x": 5, "y": 9}).status == 502


def test_without_a_phone_or_a_relay(virtual: SimulatedEnvironment) -> None:
    relay = virtual.start_relay()
    board = DashboardServer(virtual)
    assert board.relay("POST", "/phones/Pixel/tap", {"x": 1, "y": 1}).status in (404, 502)
    relay.stop()
    answer = board.relay("POST", "/phones/Pixel/tap", {"x": 1, "y": 1})
    assert answer.status == 502
    assert "cannot be reached" in board.detail(answer)


def test_commands_are_routes_of_device_control() -> None:
    assert set(COMMANDS.values()) <= set(DEVICE_CONTROL)
