import pytest

from svc_proto.cli.errors import CliError
from svc_proto.cli.mesh_vpn import MeshStatus
from svc_proto.cli.pairing_candidates import (
    ApiCandidate,
    HostCandidate,
    candidate_member,
    mesh_candidate,
    prefer_role,
    public_candidate,
)

API = ApiCandidate("192.0.2.10", 8642, False)
LAN = HostCandidate("lan", API, "ws://192.0.2.10:8767")
PUBLIC = public_candidate("https://home.example", 8767)


@pytest.mark.parametrize(
    ("status", "tls", "api", "relay"),
    [
        (MeshStatus("100.64.0.7", "box.ts.net", (8642,)), False, "http://100.64.0.7:8642", "ws://100.64.0.7:8767"),
        (MeshStatus("fd7a::1", None), True, "http://[fd7a::1]:8642", "wss://[fd7a::1]:8767"),
        # by its name where it serves both ports
        (MeshStatus("::", "box.ts.net", (8642, 8767)), False, "https://box.ts.net:8642", "wss://box.ts.net:8767"),
    ],
)
def test_mesh(status: MeshStatus, tls: bool, api: str, relay: str) -> None:
    route = mesh_candidate(status, "tailscale", API, relay_port=8767, relay_tls=tls)
    assert (route.role, route.api.url, route.relay_url) == ("tailscale", api, relay)


@pytest.mark.parametrize(
    ("url", "api", "relay"),
    [
        ("https://home.example", "https://home.example:443", "wss://home.example:8767"),
        ("https://home.example/", "https://home.example:443", "wss://home.example"),
        ("https://home.example:8443/", "https://home.example:8443", "wss://home.example:8443"),
        ("https://home.example/?x=1", "https://home.example:443", "wss://home.example"),
        ("https://bücher.example/r", "https://xn--bcher-kva.example:443", "wss://xn--bcher-kva.example/r"),
        (" http://home.example:8642 ", "http://home.example:8642", "ws://home.example:8767"),
        ("https://home.example:9/relay/?x=1", "https://home.example:9", "wss://home.example:9/relay"),
        ("https://home.example:443/relay", "https://home.example:443", "wss://home.example/relay"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]:80", "ws://[2001:db8::1]:8767"),
    ],
)
def test_public(url: str, api: str, relay: str) -> None:
    route = public_candidate(url, 8767)
    assert (route.api.url, route.relay_url) == (api, relay)


def test_public_under_the_path_of_a_proxy() -> None:
    assert public_candidate("https://home.example", 8767, "/relay").relay_url == "wss://home.example/relay"
    assert public_candidate("https://home.example/other", 8767, "/relay").relay_url == "wss://home.example/other"


BAD = "home.example https://\u00fc..example wss://home.example https://a:b@h.example https:// http://0.0.0.0:1 http://[::]"


@pytest.mark.parametrize("url", ["", *BAD.split()])
def test_bad_public(url: str) -> None:
    with pytest.raises(CliError, match="--public-url") as caught:
        public_candidate(url, 8767)
    assert caught.value.code == 2


def test_prefer() -> None:
    assert prefer_role([LAN, PUBLIC], None) == ([LAN, PUBLIC], None)
    assert prefer_role([LAN, PUBLIC], " Public ") == ([PUBLIC, LAN], None)
    routes, warning = prefer_role([LAN], "mesh")
    assert routes == [LAN]
    assert warning == "--prefer 'mesh' changes nothing: the routes are lan"
    assert prefer_role([], "lan")[1] == "--prefer 'lan' changes nothing: the routes are none"


def test_a_candidate() -> None:
    assert candidate_member(PUBLIC, 2) == {
        "role": "public",
        "priority": 2,
        "api": {"host": "home.example", "port": 443, "tls": True},
        "relay": {"url": "wss://home.example:8767", "transport_hint": "wss"},
    }
    assert candidate_member(LAN, 0)["relay"] == {"url": "ws://192.0.2.10:8767", "transport_hint": "ws"}
