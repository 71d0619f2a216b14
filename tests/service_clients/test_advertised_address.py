import pytest

from svc_proto.commands import EnsureSecret
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.pairing_payload import parse_invite, verify_payload
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.advertised_address import advertised_host, lan_address, relay_address, sign_invite
from tests.cli.harness import OneShotHarness
from tests.support.core_harness import SECRET

LAN = "192.0.2.9"


@pytest.mark.parametrize("host", ["", " ", "localhost", "LocalHost", "127.0.0.1", "::1", "::", " 0.0.0.0 "])
def test_unusable_hosts_are_replaced(host: str) -> None:
    assert advertised_host(host, LAN) == LAN


def test_host_without_an_address() -> None:
    assert OneShotHarness(lan_address, compute={"network_addresses": list}).run() == "127.0.0.1"


def test_other_hosts_are_kept() -> None:
    assert advertised_host(" box.example ", LAN) == "box.example"


@pytest.mark.parametrize(
    ("host", "tls", "url"),
    [
        ("0.0.0.0", False, f"ws://{LAN}:8767"),
        ("::", True, f"wss://{LAN}:8767"),
        ("", False, f"ws://{LAN}:8767"),
        ("127.0.0.1", False, "ws://127.0.0.1:8767"),
        ("2001:db8::1", False, "ws://[2001:db8::1]:8767"),
    ],
)
def test_the_relay_in_an_invite(host: str, tls: bool, url: str) -> None:
    config = RelayConfig(home="/h", config_path="/c", host=host, ssl_cert="/c.pem" if tls else None, ssl_key="/k.pem")
    assert relay_address(config, LAN) == url


def test_signed_and_unsigned_invite() -> None:
    config = RelayConfig(home="/h", config_path="/c")
    world = OneShotHarness(lambda engine: sign_invite(engine, config, {"svc": 1, "host": "h"}))
    text, url, problem = world.run()
    assert problem is None
    assert parse_invite(text) == parse_invite(url)
    assert list(parse_invite(text)) == ["svc", "host", "sig"]
    assert verify_payload(parse_invite(text), SECRET)
    world = OneShotHarness(lambda engine: sign_invite(engine, config, {"svc": 1}))
    world.refuse = (EnsureSecret,)
    text, url, problem = world.run()
    assert (parse_invite(url), text, problem) == ({"svc": 1}, '{"svc":1}', Failure(FailureKind.NO_SPACE))
