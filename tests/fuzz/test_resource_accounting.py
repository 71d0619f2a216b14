"""Tests of the resource accounting: wrong states are found, and right states pass."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import svc_proto
from fuzz.simulation.deployment import Deployment
from fuzz.simulation.invariants import Violation
from fuzz.simulation.leak_check import KEPT, LeakCheck
from fuzz.simulation.resource_accounting import ClosingSockets, check_api, check_relay
from fuzz.simulation.script import Script
from svc_proto.basics.moment import Moment
from svc_proto.machines.media_registry import MediaRegistry
from svc_proto.relay.agent_profiles import profile_entry
from svc_proto.relay.media.upload_registry import MediaUpload
from svc_proto.relay.service import Relay

IN_LINES = re.MULTILINE | re.DOTALL


@pytest.fixture
def world() -> Deployment:
    world = Deployment(Script(1, ()))
    world.sim.run_for(5.0)
    assert world.are_programs_up
    return world


def _an_ended_session(relay: Relay) -> None:
    relay.sessions.create(Moment(0.0, relay.engine.now.wall - 100.0), bytes, ttl=60.0)


def _an_ended_medium(relay: Relay) -> None:
    relay.media.registry = MediaRegistry(ttl=-10.0, cap=5)
    relay.media.registry.register(relay.engine.now, bytes, path="/a", content_type="a/b", file_name=None, size=1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda relay: setattr(relay.phones, "_active", "absent"),  # the active phone is not connected
        lambda relay: relay.clients.clear(),  # a phone has no socket
        _an_ended_session,
        _an_ended_medium,
        # An upload that is not counted, and one without a token.
        lambda relay: relay.media.register("/a", content_type="a/b", file_name=None, size=1, owner="a client"),
        lambda relay: relay.media.uploads._owned.update({"token": MediaUpload("/a", "a client", 0)}),
    ],
)
def test_inconsistent_relay_is_found(world: Deployment, spoil: Callable[[Relay], None]) -> None:
    check_relay(world.relay_service, clock_was_set=False)
    spoil(world.relay_service)
    with pytest.raises(Violation, match="ACCOUNTING"):
        check_relay(world.relay_service, clock_was_set=False)


def test_a_clock_that_was_set_is_noticed_within_the_hour(world: Deployment) -> None:
    _an_ended_session(world.relay_service)
    check_relay(world.relay_service, clock_was_set=True)


def test_slot_without_run_is_found(world: Deployment) -> None:
    check_api(world.api_service)
    world.api_service.runs.registry._slots = 1
    with pytest.raises(Violation, match="1 slots are taken"):
        check_api(world.api_service)


def test_socket_that_stays_open_is_found(world: Deployment) -> None:
    relay = world.relay_service
    closings, now = ClosingSockets(), relay.engine.now.mono
    closings.check(relay.engine, now)
    (client,) = relay.clients.values()
    client.socket.close(1000)
    for later in (0.0, 9.0):
        closings.check(relay.engine, now + later)
    with pytest.raises(Violation, match="is being closed for 11 s"):
        closings.check(relay.engine, now + 11.0)


def test_leaked_entry_is_found(world: Deployment) -> None:
    rest = LeakCheck(world)
    rest.check()
    relay: Relay = world.relay_service
    relay.sessions.create(relay.engine.now, bytes)  # permitted, with a reason in `KEPT`
    rest.check()
    relay.profiles.append(profile_entry("work", {}))
    with pytest.raises(Violation, match=r"'Relay\.profiles': 1"):
        rest.check()


def test_a_record_and_a_file_without_an_owner_are_found(world: Deployment) -> None:
    rest = LeakCheck(world)
    world.home.store.sessions["hash"] = {"token_prefix": "abcdefgh", "expires_at": "never"}
    with pytest.raises(Violation, match="abcdefgh is stored"):
        rest.check()
    world.home.store.sessions.clear()
    world.home.disk.put(f"{world.home.spool}/a.bin", b"a")
    with pytest.raises(Violation, match=r"a\.bin"):
        rest.check()


@pytest.mark.parametrize("place", KEPT)
def test_every_permitted_table_exists(place: str) -> None:
    kind, _, attribute = place.partition(".")
    kinds = [kind]  # and its base classes
    for each in kinds:
        for text in texts():
            found = re.search(rf"^class {each}\b(?:\(([^)]*)\))?.*?(?=^\S)", text + "#", IN_LINES)
            if found is not None and attribute in found[0]:
                return
            kinds += re.findall(r"\w+", (found and found[1]) or "")
    pytest.fail(f"{kind} has no {attribute}")


@cache
def texts() -> list[str]:
    return [path.read_text() for path in Path(svc_proto.__path__[0]).rglob("*.py")]
