import json

import pytest

from svc_proto.cli.mesh_vpn import MeshStatus, find_mesh, parse_mesh_status, parse_served_ports
from svc_proto.facts import Failure, FailureKind
from tests.cli.harness import OneShotHarness

PATH = "/usr/bin/tailscale"
UP = {"BackendState": "Running", "Self": {"TailscaleIPs": ["fd7a::1", "100.64.0.7"], "DNSName": "box.tail.ts.net."}}
ANSWER = json.dumps(UP).encode()


@pytest.mark.parametrize(
    ("status", "mesh"),
    [
        (UP, MeshStatus("100.64.0.7", "box.tail.ts.net")),
        ({"Self": {"TailscaleIPs": ["fd7a::1"]}}, MeshStatus("fd7a::1", None)),
        ({"Self": {"TailscaleIPs": ["fd7a::1"], "DNSName": "."}}, MeshStatus("fd7a::1", None)),
        ({**UP, "BackendState": "Stopped"}, None),
        *(({"Self": {"TailscaleIPs": addresses}}, None) for addresses in ([], [7, ""], "100.64.0.7")),
        ({"Self": None}, None),
        ([], None),
    ],
)
def test_status(status: object, mesh: MeshStatus | None) -> None:
    assert parse_mesh_status(json.dumps(status).encode()) == mesh


def test_no_json() -> None:
    assert parse_mesh_status(b"Tailscale is stopped.\n") is None
    assert parse_served_ports(b"\xff") == ()


def test_served_ports() -> None:
    tcp = {"443": {"HTTPS": True}, "8767": {"HTTPS": True}, "80": {"HTTP": True}, "x": {"HTTPS": True}, "9": 1}
    tcp |= {"10443": {"HTTPS": True}, "100443": {"HTTPS": True}}
    assert parse_served_ports(json.dumps({"TCP": tcp, "Web": {}}).encode()) == (443, 8767, 10_443)
    assert parse_served_ports(b"{}") == ()


def programs(status: bytes | Failure, serve: bytes | Failure) -> dict[str, bytes | Failure]:
    return {f"{PATH} status --json": status, f"{PATH} serve status --json": serve}


@pytest.mark.parametrize(
    ("status", "serve", "mesh"),
    [
        (ANSWER, b'{"TCP": {"8767": {"HTTPS": true}}}', MeshStatus("100.64.0.7", "box.tail.ts.net", (8767,))),
        (ANSWER, Failure(FailureKind.DENIED), MeshStatus("100.64.0.7", "box.tail.ts.net")),
        (b'{"Self": {"TailscaleIPs": ["100.64.0.7"]}}', b"", MeshStatus("100.64.0.7", None)),
        (Failure(FailureKind.DENIED), b"", None),
        (b"", b"", None),
    ],
)
def test_asking(status: bytes | Failure, serve: bytes | Failure, mesh: MeshStatus | None) -> None:
    world = OneShotHarness(find_mesh, compute={"which": lambda name: PATH}, programs=programs(status, serve))
    assert world.run() == mesh
    assert OneShotHarness(find_mesh).run() is None  # without the program
