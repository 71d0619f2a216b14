from typing import Any

import pytest

from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.host_addresses import AddressKind, HostAddresses, find_host_addresses, parse_addresses
from tests.cli.harness import OneShotHarness
from tests.support.tables import read_table


def row(interface: str, address: str, **more: Any) -> dict[str, Any]:
    return {"interface": interface, "address": address, "up": True, "point_to_point": False, "default": False, **more}


LAN = row("wlan0", "192.168.1.20")
DEFAULT = {"default": True}


@pytest.mark.parametrize(
    "each", read_table("tests/service_clients/host_addresses.tsv"), ids=lambda each: each["address"]
)
def test_kinds(each: dict[str, str]) -> None:
    flags = {"up": each["flag"] != "down", "point_to_point": each["flag"] == "point_to_point"}
    (found,) = parse_addresses([row(each["interface"], each["address"], **flags)])
    assert found.kind is AddressKind[each["kind"].upper()]
    assert found.is_indirect is (each["kind"] not in ("lan", "internet"))
    assert found.address == each["address"].partition("%")[0]


@pytest.mark.parametrize("each", [{}, row("eth0", "nonsense"), 5, row("eth0", "")])
def test_rows_without_an_address(each: object) -> None:
    assert parse_addresses([each]) == ()


@pytest.mark.parametrize(
    ("rows", "bind_host", "best"),
    [
        ([LAN], "0.0.0.0", "192.168.1.20"),
        ([row("tun0", "10.5.0.2", **DEFAULT), LAN], "0.0.0.0", "192.168.1.20"),
        ([row("docker0", "172.17.0.1"), LAN], "", "192.168.1.20"),
        ([row("eth0", "10.0.0.1"), row("wlan0", "192.168.1.20", **DEFAULT)], "0.0.0.0", "192.168.1.20"),
        ([row("eth0", "10.0.0.1"), LAN], "0.0.0.0", "10.0.0.1"),
        ([row("eth0", "93.184.216.34", **DEFAULT), LAN], "0.0.0.0", "192.168.1.20"),
        ([row("eth0", "fd00::2", **DEFAULT), LAN], "::", "192.168.1.20"),
        ([row("eth0", "2a01:4f8::1"), row("eth0", "fd00::2")], "::", "fd00::2"),
        ([row("eth0", "fd00::2")], "0.0.0.0", None),
        ([row("tun0", "10.5.0.2")], "0.0.0.0", "10.5.0.2"),
        ([row("eth0", "169.254.3.4")], "0.0.0.0", "169.254.3.4"),
        ([row("eth0", "fe80::1"), row("lo", "127.0.0.1"), row("eth1", "10.0.0.1", up=False)], "::", None),
        ([], "::", None),
    ],
)
def test_the_best_address(rows: list[dict[str, Any]], bind_host: str, best: str | None) -> None:
    assert HostAddresses(parse_addresses(rows)).best(bind_host) == best


def test_the_others_have_reasons() -> None:
    rows = [LAN, row("docker0", "172.17.0.1"), row("tun0", "10.5.0.2"), row("lo", "127.0.0.1")]
    left = HostAddresses(parse_addresses(rows)).left_out(["192.168.1.20"])
    assert [(found.address, reason) for found, reason in left] == [
        ("10.5.0.2", "belongs to a VPN: --host names it"),
        ("172.17.0.1", "belongs to a bridge of containers or virtual machines"),
    ]


@pytest.mark.parametrize(("answer", "addresses"), [([LAN], ["192.168.1.20"]), (None, []), ("x", [])])
def test_ask_the_host(answer: object, addresses: list[str]) -> None:
    found = OneShotHarness(find_host_addresses, compute={"network_addresses": lambda: answer}).run()
    assert [each.address for each in found.rows] == addresses


def test_a_host_that_cannot_list_them() -> None:
    compute = {"network_addresses": lambda: Failure(FailureKind.INTERNAL)}
    assert OneShotHarness(find_host_addresses, compute=compute).run() == HostAddresses()
