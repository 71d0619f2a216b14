from __future__ import annotations

from attrs import evolve

from svc_proto.cli.health_facts import RouteFacts
from svc_proto.cli.health_finders import find_down, find_public
from tests.cli.test_health_checks import WELL, addresses, certificate, found, public, server


def test_addresses_of_a_container_are_not_enough() -> None:
    inside = evolve(WELL, is_container=True, addresses=addresses(("eth0", "172.17.0.2")))
    assert found(inside) == {"poor_address"}
    assert found(evolve(inside, is_container=False)) == set()
    assert found(evolve(inside, addresses=addresses(("eth0", "192.168.1.20")))) == set()
    assert (
        found(evolve(inside, addresses=addresses(("eth0", "fd00::2")), servers=(server("relay", host="::"),))) == set()
    )


def test_a_certificate_is_not_compared_with_addresses() -> None:
    routes = (RouteFacts("lan", "wss://192.168.1.20:8767"), RouteFacts("public", "wss://home.example:443"))
    assert found(evolve(certificate(names=("home.example",)), routes=routes)) == set()


def test_finders_for_roles_and_subjects() -> None:
    alone = evolve(WELL, servers=(server("relay"), server("api", runs=False)))
    assert find_down("api")(alone) == "the api does not run"
    assert find_down("dashboard")(alone) is None
    assert find_public("encryption")(public("encryption")) == "encryption: a text"
    assert find_public("WebSocket")(public("encryption")) is None
