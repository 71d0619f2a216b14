import enum
from base64 import b64encode
from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import FIELDS, MAX_FAILURES_IN_SUM, DashboardAuthorizer
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.message import Request
from svc_proto.facts import Address
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.events import Headers
from tests.support.playbook import START

PASSWORD = "correct horse"
LOCAL = Address("127.0.0.1", 50_000)
FAR = Address("192.0.2.7", 50_000)
OWN = {"host": "127.0.0.1:9119"}
OPEN = DashboardConfig()
KEPT = DashboardConfig(host="0.0.0.0", password=PASSWORD, names=("dash.example",))


def basic(password: str, user: str = "me") -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def refusal(
    gate: DashboardAuthorizer,
    headers: dict[str, str],
    *,
    peer: Address = LOCAL,
    path: str = "/",
    after: float = 0.0,
    own_user: bool | None = None,
) -> Refused | None:
    """Return the refusal of a request; None when it may pass."""
    fields = Headers((name.encode(), value.encode("latin-1")) for name, value in headers.items())
    request = Request("GET", path, "", fields, peer, False, {}, own_user=own_user)
    try:
        gate.check(request, START.at(START.mono + after))
    except Refused as refused:
        return refused
    return None


def verdict(gate: DashboardAuthorizer, headers: dict[str, str], **how: Any) -> int:
    """Return the status of a refusal; 200 when the request may pass."""
    refused = refusal(gate, headers, **how)
    return 200 if refused is None else refused.status


@pytest.mark.parametrize(
    ("gate", "headers", "status", "code", "hint"),
    [
        (OPEN, {}, 403, "host_not_allowed", "SVC_DASHBOARD_NAMES"),
        (OPEN, {"host": "rebound.example:9119"}, 403, "host_not_allowed", "SVC_DASHBOARD_NAMES"),
        (OPEN, {"host": "192.0.2.2:9119"}, 403, "loopback_only", "without a password"),
        (OPEN, {**OWN, "origin": "http://127.0.0.1:8642"}, 403, "origin_not_allowed", "another web site"),
        (OPEN, {**OWN, "sec-fetch-site": "cross-site"}, 403, "origin_not_allowed", "another web site"),
        (OPEN, {**OWN, "forwarded": "for=192.0.2.1"}, 403, "loopback_only", "without a password"),
        (KEPT, OWN, 401, "password_needed", "password"),
    ],
)
def test_refusals_say_why(gate: DashboardConfig, headers: dict[str, str], status: int, code: str, hint: str) -> None:
    refused = refusal(DashboardAuthorizer(gate), headers)
    assert refused is not None
    assert (refused.status, refused.code) == (status, code)
    assert hint in refused.message


def test_other_hosts_come_with_a_password_only() -> None:
    assert verdict(DashboardAuthorizer(OPEN), OWN, peer=FAR) == 403
    gate = DashboardAuthorizer(KEPT)
    known = {"authorization": basic(PASSWORD)}
    for host in ("192.0.2.2:9119", "[2001:db8::1]", "dash.example", "Dash.Example:443", "box.local", "a.localhost"):
        assert verdict(gate, {**known, "host": host}, peer=FAR) == 200
        assert verdict(gate, {**known, "host": host, "origin": f"https://{host}"}, peer=FAR) == 200
    assert verdict(gate, {**known, "host": "rebound.example"}, peer=FAR) == 403
    assert verdict(gate, {**known, "host": "box.local", "origin": "https://evil.example"}, peer=FAR) == 403


def test_same_origin_and_navigation_are_accepted() -> None:
    gate = DashboardAuthorizer(OPEN)
    assert verdict(gate, {**OWN, "origin": "http://127.0.0.1:9119"}, path="/api/qr") == 200
    assert verdict(gate, {**OWN, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, path="/api/qr") == 200
    assert verdict(gate, {**OWN, "sec-fetch-site": "none", "sec-fetch-mode": "navigate"}) == 200
    link = {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert verdict(gate, link) == 200
    assert verdict(gate, link, path="/page/app.js") == 403


@pytest.mark.parametrize(
    "given", ["Bearer x", "Basic", "Basic !!!", basic("wrong"), basic(PASSWORD + "x"), basic("", PASSWORD), "basic"]
)
def test_password_is_required(given: str) -> None:
    gate = DashboardAuthorizer(KEPT)
    assert verdict(gate, OWN) == 401  # from loopback, too
    assert verdict(gate, {**OWN, "authorization": given}) == 401
    assert verdict(gate, {**OWN, "authorization": basic(PASSWORD)}) == 200
    assert verdict(gate, {**OWN, "authorization": basic(PASSWORD, "").replace("Basic", "basic")}) == 200


def test_a_password_may_hold_colons_and_letters_of_every_script() -> None:
    gate = DashboardAuthorizer(DashboardConfig(password="grün:weiß:rot"))
    assert verdict(gate, {**OWN, "authorization": basic("grün:weiß:rot")}) == 200


def test_wrong_passwords_are_counted_until_the_right_one() -> None:
    """Block an address for five minutes after five wrong passwords; a request without a password does not count."""
    gate = DashboardAuthorizer(KEPT)
    wrong, right = {**OWN, "authorization": basic("wrong")}, {**OWN, "authorization": basic(PASSWORD)}
    for _ in range(10):
        assert verdict(gate, OWN, peer=FAR) == 401
    assert [verdict(gate, wrong, peer=FAR) for _ in range(6)] == [401] * 5 + [429]
    assert verdict(gate, right, peer=FAR) == 429
    assert verdict(gate, right) == 200  # another address
    assert verdict(gate, right, peer=FAR, after=299.0) == 429
    assert verdict(gate, right, peer=FAR, after=300.0) == 200
    gate = DashboardAuthorizer(KEPT)
    wrong, right = {**OWN, "authorization": basic("wrong")}, {**OWN, "authorization": basic(PASSWORD)}
    for _ in range(2):
        assert [verdict(gate, wrong) for _ in range(4)] == [401] * 4
        assert verdict(gate, right) == 200


def test_failures_are_counted_by_forwarded_address_and_in_sum() -> None:
    proxied = {**OWN, "authorization": basic("wrong")}
    for networks, blocked in ((("127.0.0.0/8",), [429, 401]), ((), [429, 429])):
        gate = DashboardAuthorizer(evolve(KEPT, relay=RelayConfig(trusted_proxies=networks)))
        for _ in range(5):
            assert verdict(gate, {**proxied, "x-forwarded-for": "203.0.113.5, 198.51.100.1"}) == 401
        hops = ("203.0.113.6, 198.51.100.1", "203.0.113.5, 198.51.100.2")
        assert [verdict(gate, {**proxied, "x-forwarded-for": hop}) for hop in hops] == blocked
    gate = DashboardAuthorizer(KEPT)
    own = {"host": "dash.example"}
    wrong = {**own, "authorization": basic("guess")}
    for number in range(MAX_FAILURES_IN_SUM):
        assert verdict(gate, wrong, peer=Address(f"192.0.2.{number}", 1), after=number / 2) == 401
    refused = refusal(gate, {**own, "authorization": basic(PASSWORD)}, peer=Address("198.51.100.1", 1), after=30.0)
    assert refused is not None
    assert (refused.status, refused.headers) == (429, ((b"retry-after", b"30"),))
    assert verdict(gate, {**own, "authorization": basic(PASSWORD)}, peer=Address("198.51.100.1", 1), after=60.0) == 200


def test_the_page_loads_nothing_from_elsewhere_under_its_own_policy() -> None:
    policy = dict(FIELDS)[b"content-security-policy"].decode()
    directives = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert directives["default-src"] == ["'none'"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert directives["require-trusted-types-for"] == ["'script'"]
    assert directives["trusted-types"] == ["svc-relay-worker"]  # it makes one constant address, and only once

    class Other(enum.Enum):
        ANY = "any"

    request = Request(method="GET", path="/", raw_query="", headers=Headers(), peer=LOCAL, secure=False, params={})
    with pytest.raises(TypeError):
        Dashboard(OPEN, {}).authorize(Other.ANY, request)


@pytest.mark.parametrize(
    ("headers", "peer", "status"),
    [
        (OWN, LOCAL, 200),
        ({"host": "dash.example"}, LOCAL, 401),  # a name that may be a proxy's
        ({**OWN, "x-forwarded-for": "192.0.2.1"}, LOCAL, 401),
        ({**OWN, "origin": "https://evil.example"}, LOCAL, 403),
        (OWN, FAR, 401),
    ],
)
def test_with_local_access_this_host_needs_no_password(headers: dict[str, str], peer: Address, status: int) -> None:
    config = evolve(KEPT, local_access=True)
    assert verdict(DashboardAuthorizer(config), headers, peer=peer) == status
    assert (config.identifies_owner, KEPT.identifies_owner, OPEN.identifies_owner) == (False, True, False)


def test_the_owner_of_this_host_is_identified_by_user_or_password() -> None:
    assert refusal(DashboardAuthorizer(OPEN), OWN, own_user=True) is None
    refused = refusal(DashboardAuthorizer(OPEN), OWN, own_user=False)
    assert refused is not None
    assert (refused.status, refused.code) == (403, "loopback_only")
    assert "call it as that user" in refused.message
    assert refusal(DashboardAuthorizer(KEPT), OWN | {"authorization": basic(PASSWORD)}, own_user=False) is None
    configs = [evolve(OPEN, **more) for more in ({}, {"asks_for_users": True}, {"password": PASSWORD})]
    assert [config.identifies_owner for config in configs] == [False, True, True]
