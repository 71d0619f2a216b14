"""Tests of the reference phone behind a relay: screenshots, many callers, and routes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from clients.phone.emulator import EmulatedPhone
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.phone.service import Phone, PhoneConfig
from tests.loops.conftest import open_world
from tests.loops.environment import TRUSTING, Environment, PhoneHandle, bearer


@pytest.fixture(scope="module")
def driven(
    any_loop: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Environment, PhoneHandle, EmulatedPhone]]:
    """Yield an environment with a relay, a phone and the phone's backend; two tests of this module share them."""
    with open_world(any_loop, tmp_path_factory.mktemp("driven"), request) as world:
        world.start_relay()
        backend = EmulatedPhone()
        yield world, world.phone(backend=backend), backend


def test_a_screenshot_is_uploaded_and_can_be_fetched(driven: tuple[Environment, PhoneHandle, EmulatedPhone]) -> None:
    world, phone, _ = driven
    answer = world.http("GET", "/screenshot", headers=bearer(phone.token))
    assert answer.status == 200, answer.json
    marker: str = answer.json["media"]
    prefix, _, token = marker.rpartition("/")
    assert prefix == "MEDIA:svc-relay:/"
    picture = world.http("GET", f"/media/{token}", headers=bearer(phone.token))
    assert (picture.status, picture.headers.get(b"content-type")) == (200, b"image/png")
    assert picture.body.startswith(b"\x89PNG\r\n")


def test_many_callers_of_one_phone(driven: tuple[Environment, PhoneHandle, EmulatedPhone]) -> None:
    world, phone, _ = driven
    callers = [world.client() for _ in range(50)]
    for _ in range(3):
        asked = [caller.begin("GET", "/current_app", headers=bearer(phone.token)) for caller in callers]
        assert {each.finish().status for each in asked} == {200}
    for caller in callers:
        caller.wire.close()


# --- attachments and routes ---------------------------------------------------------------------------------------


def test_the_phone_finds_a_route_and_comes_back_by_it(world: Environment) -> None:
    world.start_relay(durable=True)

    def make(config: PhoneConfig) -> Phone:
        dead = config.remote.rpartition(":")[0] + ":1"
        routes = (Candidate("lan", 0, dead), Candidate("mesh", 1, config.remote))
        return Phone(evolve(config, remote=dead, routes=routes), EmulatedPhone(), TRUSTING)

    phone = world.phone(make=make)
    assert [news.fields["role"] for news in phone.news if news.event == "route"] == ["mesh"]
    assert world.http("GET", "/screenshot", headers=bearer(phone.token)).status == 200  # uploaded by the same route
    world.relay.stop(0.0)
    world.wait_until(lambda: phone.count("offline") > 0)
    world.relay.restart()
    world.wait_until(lambda: phone.count("online") == 1)
    assert {news.fields["role"] for news in phone.news if news.event == "route"} == {"mesh"}
