"""All Device Control routes end to end: caller, relay, reference phone, and back (wire bridge 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve

from clients.phone.handset import SimulatedHandset
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.machines.route_choice import Candidate
from svc_proto.relay.routes.control import DEVICE_CONTROL
from tests.loops.conftest import open_world
from tests.loops.world import TRUSTING, PhoneHandle, World, bearer

VIEW = "android.intent.action.VIEW"
MAIL = "com.example.mail"
Check = Callable[[dict[str, Any]], object]


def has(**members: object) -> Check:
    """The answer has these members."""
    return lambda answer: {key: answer.get(key) for key in members} == members


# In an order that makes sense on one phone; every answer is a 200.
ROUTES: list[tuple[str, str, dict[str, object] | None, Check]] = [
    ("GET", "/ping", None, lambda answer: answer["pong"] is True and answer["ts"] > 1e12),
    ("POST", "/setup", {}, has(ok=True)),
    ("POST", "/open_app", {"package": MAIL}, has(ok=True, package=MAIL)),
    ("GET", "/current_app", None, has(package=MAIL)),
    ("GET", "/screen", None, lambda answer: answer["nodes"] and answer["rootBounds"] and not answer["truncated"]),
    ("GET", "/screen_hash", None, lambda answer: len(answer["hash"]) == 64),
    ("POST", "/diff_screen", {"previous_hash": "0" * 64}, has(changed=True)),
    ("POST", "/find_nodes", {"text": "Compose"}, lambda answer: answer["count"] >= 1),
    ("POST", "/describe_node", {"nodeId": "w0:0"}, has(nodeId="w0:0")),
    ("GET", "/get_apps", None, lambda answer: MAIL in [app["package"] for app in answer["apps"]]),
    ("GET", "/apps", None, lambda answer: answer["count"] == len(answer["apps"])),
    ("POST", "/events/stream", {"enabled": True}, has(streaming=True)),
    ("POST", "/tap_text", {"text": "Compose"}, has(ok=True)),
    ("POST", "/type", {"text": "ada@example.com"}, has(length=15)),
    ("GET", "/events?limit=5", None, lambda answer: answer["streaming"] and answer["count"] >= 1),
    ("POST", "/tap", {"x": 500, "y": 1200}, has(x=500, y=1200, duration_ms=100)),
    ("POST", "/long_press", {"x": 500, "y": 1200}, has(mode="gesture")),
    ("POST", "/drag", {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}, has(end_y=4, duration_ms=500)),
    ("POST", "/swipe", {"start_x": 500, "start_y": 2000, "end_x": 500, "end_y": 500}, has(end_y=500)),
    ("POST", "/scroll", {"direction": "down"}, lambda answer: "start_x" in answer),
    ("POST", "/press_key", {"key": "back"}, has(key="back")),
    ("POST", "/wait", {"ms": 20}, has(slept_ms=20)),
    ("POST", "/clipboard", {"text": "4 ü"}, has(success=True, length=3)),
    ("GET", "/clipboard", None, has(text="4 ü")),
    ("POST", "/media", {"action": "play"}, has(action="play", keycode=126)),
    ("POST", "/send_intent", {"action": VIEW, "data": "https://x.example"}, has(action=VIEW, data="https://x.example")),
    ("POST", "/broadcast", {"action": "org.example.HELLO"}, has(action="org.example.HELLO")),
    ("GET", "/location", None, lambda answer: {"latitude", "longitude", "accuracy"} <= set(answer)),
    ("POST", "/search_contacts", {"query": "Ada"}, has(count=1)),
    ("POST", "/call", {"number": "+15550100"}, has(number="+15550100")),
    ("POST", "/send_sms", {"to": "+15550100", "body": "Hello"}, has(status="sent")),
    ("POST", "/share_media", {"text": "Hello"}, has(ok=True, status="share_opened")),
    ("POST", "/send_mms", {"to": "+15550100", "text": "Hello"}, has(status="compose_opened")),
    ("POST", "/return_to_svc", {}, has(ok=True)),
    ("POST", "/return_to_hermes", {}, has(ok=True)),
]
SCREENSHOT = ("GET", "/screenshot")


@pytest.fixture(scope="module")
def driven(
    any_loop: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, PhoneHandle, SimulatedHandset]]:
    """One relay and one phone for all routes."""
    with open_world(any_loop, tmp_path_factory.mktemp("driven"), request) as world:
        world.start_relay()
        handset = SimulatedHandset()
        yield world, world.phone(handset=handset), handset


def test_the_table_here_is_complete() -> None:
    assert {(method, path.partition("?")[0]) for method, path, _, _ in ROUTES} | {SCREENSHOT} == set(DEVICE_CONTROL)
    assert len({path for _, path in DEVICE_CONTROL} - {"/return_to_hermes"}) == 34


def test_every_route_in_turn(driven: tuple[World, PhoneHandle, SimulatedHandset]) -> None:
    """One story: what one route does to the handset is what the next one finds."""
    world, phone, _ = driven
    for method, path, body, check in ROUTES:
        answer = world.http(method, path, body, headers=bearer(phone.token))
        assert answer.status == 200, (method, path, answer)
        assert answer.headers.get(b"content-type") == b"application/json"
        assert check(answer.json), (method, path, answer.json)


def test_a_screenshot_is_uploaded_and_can_be_fetched(driven: tuple[World, PhoneHandle, SimulatedHandset]) -> None:
    world, phone, _ = driven
    answer = world.http("GET", "/screenshot", headers=bearer(phone.token))
    assert answer.status == 200, answer.json
    marker: str = answer.json["media"]
    prefix, _, token = marker.rpartition("/")
    assert prefix == "MEDIA:svc-relay:/"
    picture = world.http("GET", f"/media/{token}", headers=bearer(phone.token))
    assert (picture.status, picture.headers.get(b"content-type")) == (200, b"image/png")
    assert picture.body.startswith(b"\x89PNG\r\n")


def test_many_callers_of_one_phone(driven: tuple[World, PhoneHandle, SimulatedHandset]) -> None:
    world, phone, _ = driven
    callers = [world.client() for _ in range(50)]
    for _ in range(3):
        asked = [caller.begin("GET", "/current_app", headers=bearer(phone.token)) for caller in callers]
        assert {each.finish().status for each in asked} == {200}
    for caller in callers:
        caller.wire.close()


# --- attachments and routes ---------------------------------------------------------------------------------------


def test_the_phone_finds_a_route_and_comes_back_by_it(world: World) -> None:
    world.start_relay(durable=True)

    def make(config: PhoneConfig) -> Phone:
        dead = config.remote.rpartition(":")[0] + ":1"
        routes = (Candidate("lan", 0, dead), Candidate("mesh", 1, config.remote))
        return Phone(evolve(config, remote=dead, routes=routes), SimulatedHandset(), TRUSTING)

    phone = world.phone(make=make)
    assert [news.fields["role"] for news in phone.news if news.event == "route"] == ["mesh"]
    assert world.http("GET", "/screenshot", headers=bearer(phone.token)).status == 200  # uploaded by the same route
    world.relay.stop(0.0)
    world.wait_until(lambda: phone.count("offline") > 0)
    world.relay.restart()
    world.wait_until(lambda: phone.count("online") == 1)
    assert {news.fields["role"] for news in phone.news if news.event == "route"} == {"mesh"}
