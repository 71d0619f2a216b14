"""Tests of the reference phone behind a relay: many callers, and routes."""

from attrs import evolve

from clients.phone.emulator import EmulatedPhone
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.phone.service import Phone, PhoneConfig
from tests.loops.environment import TRUSTING, Environment, bearer


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
