"""Origin of a request, by its peer and its head alone."""

import pytest

from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import (
    TrustedProxies,
    is_browser_request,
    is_foreign_page,
    is_forwarded,
    is_from_this_host,
    is_local,
    is_loopback_address,
    is_trusted_host_name,
)
from svc_proto.facts import Address
from svc_proto.wire.events import Headers

OWN = (b"host", b"127.0.0.1:8767")


def request(
    peer: str = "127.0.0.1",
    *headers: tuple[bytes, bytes],
    secure: bool = False,
    version: str = "1.1",
    own_user: bool | None = None,
) -> Request:
    return Request(
        method="GET",
        path="/",
        raw_query="",
        headers=Headers(headers),
        peer=Address(peer, 5000),
        secure=secure,
        params={},
        http_version=version,
        own_user=own_user,
    )


@pytest.mark.parametrize(
    ("peers", "local", "loopback"),
    [
        (["127.0.0.1", "::1", "::ffff:127.0.0.1"], True, True),
        (["127.0.0.2", "::ffff:127.0.0.9"], False, True),
        (["192.0.2.1", "::ffff:192.0.2.1", "a name"], False, False),
    ],
)
def test_local_are_three_addresses(peers: list[str], local: bool, loopback: bool) -> None:
    for peer in peers:
        assert is_local(request(peer)) is local
        assert is_loopback_address(peer) is loopback


@pytest.mark.parametrize(
    "name", [b"forwarded", b"x-forwarded-for", b"x-forwarded-server", b"x-forwarded-host", b"x-real-ip", b"via"]
)
def test_forwarded_requests_are_never_local(name: bytes) -> None:
    assert is_forwarded(request("127.0.0.1", (name, b"127.0.0.1")))
    assert not is_local(request("127.0.0.1", (name, b"127.0.0.1")))


@pytest.mark.parametrize(("own_user", "expected"), [(None, True), (True, True), (False, False)])
def test_processes_of_other_users_are_never_local(own_user: bool | None, expected: bool) -> None:
    assert is_local(request("127.0.0.1", OWN, own_user=own_user)) is expected
    assert is_from_this_host(request("::1", own_user=own_user)) is expected
    assert not is_local(request("192.0.2.1", own_user=own_user))


def test_signs_of_a_proxy_without_forwarding_headers() -> None:
    assert not is_local(request("127.0.0.1", OWN, version="1.0"))
    assert not is_local(request("127.0.0.1", OWN, (b"connection", b"Upgrade")))
    assert is_local(request("127.0.0.1", OWN, (b"connection", b"upgrade, h2"), (b"upgrade", b"websocket")))
    assert is_local(request("127.0.0.1", OWN, (b"connection", b"close")))


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([b"localhost", b"LOCALHOST:8767", b"127.0.0.1:8767", b"[::1]:8767"], True),
        ([b"rebound.example", b"rebound.example:8767", b"127.0.0.1.rebound.example", b"192.0.2.1", b"a:b:c"], False),
    ],
)
def test_a_rebound_name_shows_in_host(hosts: list[bytes], expected: bool) -> None:
    for host in hosts:
        assert is_local(request("127.0.0.1", (b"host", host))) is expected


@pytest.mark.parametrize(
    ("cases", "foreign"),
    [
        ([((b"origin", b"https://127.0.0.1:8767"),)], False),  # TLS may have ended at a proxy
        ([(), ((b"origin", b"http://127.0.0.1:8767"),), ((b"origin", b"HTTP://127.0.0.1:8767"),)], False),
        ([((b"sec-fetch-site", b"none"),), ((b"sec-fetch-site", b"same-origin"),)], False),
        ([((b"origin", b"http://127.0.0.1:9119"),), ((b"origin", b"http://127.0.0.1"),)], True),
        ([((b"origin", b"http://localhost:8767"),), ((b"origin", b"https://page.example"),)], True),
        ([((b"origin", b"null"),), ((b"origin", b"file://"),), ((b"origin", b"\xff"),), ((b"origin", b""),)], True),
        ([((b"sec-fetch-site", b"same-site"),), ((b"sec-fetch-site", b"cross-site"),)], True),
        # Sec-Fetch-Site decides: a proxy cut the port off `Host`, or replaced the name.
        ([((b"origin", b"https://home.example:8443"), (b"sec-fetch-site", b"same-origin"))], False),
        ([((b"origin", b"https://home.example:8443"), (b"sec-fetch-site", b"none"))], True),
        ([((b"origin", b"https://home.example:8443"), (b"sec-fetch-site", b"same-site"))], True),
    ],
)
def test_a_page_shows_in_origin_and_in_sec_fetch_site(
    cases: list[tuple[tuple[bytes, bytes], ...]], foreign: bool
) -> None:
    for headers in cases:
        asked = request("127.0.0.1", OWN, *headers)
        assert is_foreign_page(asked) is foreign
        assert is_browser_request(asked) or not foreign
        assert is_local(asked) is not foreign
        assert is_from_this_host(asked)


@pytest.mark.parametrize("field", [b"origin", b"sec-fetch-site"])
def test_signs_of_a_browser_request(field: bytes) -> None:
    assert is_browser_request(request("127.0.0.1", OWN, (field, b"x")))
    assert not is_browser_request(request("127.0.0.1", OWN))


def test_an_origin_needs_a_host_and_over_tls_its_own_scheme() -> None:
    assert is_foreign_page(request("127.0.0.1", (b"origin", b"http://127.0.0.1")))
    assert is_foreign_page(request("127.0.0.1", OWN, (b"origin", b"http://127.0.0.1:8767"), secure=True))
    assert not is_foreign_page(request("127.0.0.1", OWN, (b"origin", b"https://127.0.0.1:8767"), secure=True))


def test_case_does_not_matter_in_a_host() -> None:
    host = (b"host", b"LocalHost:8767")
    assert not is_foreign_page(request("127.0.0.1", host, (b"origin", b"http://localhost:8767")))
    assert is_local(request("127.0.0.1", host, (b"origin", b"http://localhost:8767")))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost:8642", "127.0.0.1", "[::1]:8642", "10.0.2.2:8642", "svc", "my_api:1", "pi.local", "PI.LOCAL."),
        *("a.localhost:1", "nas.lan", "nas.home.arpa", "nas.internal", "box.example:8642"),
    ],
)
def test_names_of_this_network(host: str) -> None:
    assert is_trusted_host_name(host.encode(), ("box.example",))


@pytest.mark.parametrize(
    "host", ["", ":8642", ".", "evil.example", "evil.example:8642", "127.0.0.1.evil.example", "evil.example.", "\xff.x"]
)
def test_names_that_may_be_rebound(host: str) -> None:
    assert not is_trusted_host_name(host.encode("latin-1"), ("box.example",))


# --- proxies --------------------------------------------------------------------------------------------------------

ONE = TrustedProxies(("192.0.2.9",))
TWO = TrustedProxies(("192.0.2.9", "10.0.0.0/8", "2001:db8:ffff::/48"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], "192.0.2.9"),
        ([b"198.51.100.1"], "198.51.100.1"),
        ([b"10.0.0.1, 198.51.100.1"], "198.51.100.1"),
        ([b"10.0.0.1", b"198.51.100.2"], "198.51.100.2"),
        ([b"198.51.100.1:4711"], "198.51.100.1"),
        ([b"[2001:db8::1]:4711"], "2001:db8::1"),
        ([b"2001:db8::1"], "2001:db8::1"),
        ([b"a" * 500], "a" * 64),
        ([b" , "], "192.0.2.9"),
    ],
)
def test_the_address_behind_a_trusted_proxy(fields: list[bytes], expected: str) -> None:
    headers = [(b"x-forwarded-for", value) for value in fields]
    assert ONE.client_address(request("192.0.2.9", *headers)) == expected
    assert ONE.client_address(request("::ffff:192.0.2.9", *headers)) == expected.replace(
        "192.0.2.9", "::ffff:192.0.2.9"
    )
    assert ONE.client_address(request("192.0.2.8", *headers)) == "192.0.2.8"
    assert TrustedProxies(()).client_address(request("192.0.2.9", *headers)) == "192.0.2.9"


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        (b"203.0.113.5, 198.51.100.1, 10.1.2.3", "198.51.100.1"),
        (b"198.51.100.1, 2001:db8:ffff::7, 10.1.2.3:99", "198.51.100.1"),
        (b"10.9.9.9, 10.1.2.3", "10.9.9.9"),  # no other address: it came from the farthest proxy
        (b"198.51.100.1, unknown, 10.1.2.3", "unknown"),
    ],
)
def test_a_chain_of_proxies_ends_at_the_last_that_is_not_trusted(hops: bytes, expected: str) -> None:
    assert TWO.client_address(request("192.0.2.9", (b"x-forwarded-for", hops))) == expected


def test_a_trusted_network_of_link_local_addresses() -> None:
    proxies = TrustedProxies(("fe80::/10",))
    forwarded = (b"x-forwarded-for", b"198.51.100.1")
    assert proxies.client_address(request("fe80::1%eth0", forwarded)) == "198.51.100.1"
    assert proxies.client_address(request("2001:db8::1%eth0", forwarded)) == "2001:db8::1%eth0"


@pytest.mark.parametrize(
    ("values", "expected"),
    [([b"https", b"wss", b" HTTPS , http"], True), ([b"ws", b"http, https", b"", b"httpsx"], False)],
)
def test_the_first_forwarded_proto_of_a_trusted_proxy_counts(values: list[bytes], expected: bool) -> None:
    for said in values:
        assert ONE.forwarded_https(request("192.0.2.9", (b"x-forwarded-proto", said))) is expected
        assert not ONE.forwarded_https(request("192.0.2.8", (b"x-forwarded-proto", said)))
        assert not ONE.forwarded_https(request("192.0.2.9"))
