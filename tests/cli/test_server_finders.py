from attrs import evolve

from svc_proto.cli.health_facts import RouteFacts
from tests.cli.test_health_checks import WELL, addresses, certificate, found, model, server


def test_addresses_of_a_container_are_not_enough() -> None:
    inside = evolve(WELL, is_container=True, addresses=addresses(("eth0", "172.17.0.2")))
    assert found(inside) == {"poor_address"}
    assert found(evolve(inside, is_container=False)) == set()
    assert found(evolve(inside, addresses=addresses(("eth0", "192.168.1.20")))) == set()
    six = evolve(inside, addresses=addresses(("eth0", "fd00::2")), servers=(server("relay", host="::"),))
    assert found(six) == set()


def test_a_certificate_is_not_compared_with_addresses() -> None:
    routes = (RouteFacts("lan", "wss://192.168.1.20:8767"), RouteFacts("public", "wss://home.example:443"))
    assert found(evolve(certificate(names=("home.example",)), routes=routes)) == set()


def test_a_dashboard_is_missed_only_beside_another_server() -> None:
    assert found(evolve(WELL, servers=(server("relay"), server("dashboard", runs=False)))) == {"dashboard_down"}
    servers = (server("relay", runs=False), server("dashboard", runs=False))
    assert found(evolve(WELL, servers=servers, routes=(), devices=None)) == {"relay_down"}


def test_a_model_may_be_listed_with_its_default_tag() -> None:
    assert found(model(name="llama3.2", listed=("llama3.2:latest",))) == set()
    assert found(model(name="llama3.2", listed=("llama3.2:8b",))) == {"model_name_unknown"}


def test_the_configured_context_counts_before_that_of_the_server() -> None:
    assert found(model(context=32_768, configured_context=8_192)) == {"model_context_small"}
