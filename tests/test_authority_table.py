"""The table of authority, compared with the services: its rows, and requests with several kinds of credential."""

from typing import Any

import pytest

from svc_proto.api.access import ApiAccess
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.engine.router import Route, RouteKind
from svc_proto.machines.auth_rate_limiter import BLOCK_DURATION
from svc_proto.machines.grants import CHANNELS as GRANTS
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay.websocket.message_dispatch import CHANNEL_HANDLERS
from svc_proto.relay_config import RelayConfig
from tests.api.harness import KEY, ApiHarness
from tests.api.test_authority import CHAT, KeyHolder
from tests.relay.harness import PEER, REMOTE, RelayHarness
from tests.support import authority_table

NOTHING = dict.fromkeys(GRANTS, False)
PLACES = {"{token_prefix}": "0123abcd", "{token}": "none", "{provider_id}": "stub", "{session_id}": "none",
          "{ticket}": "none", "{code}": "QQQQQQ", "{id}": "none", "{run_id}": "none", "{name}": "none",
          "{response_id}": "none"}  # fmt: skip
REFUSALS = (401, 403)


def by_policy(routes: list[Route]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for route in routes:
        found.setdefault(route.access.name, []).append(f"{route.method} {route.pattern}")
    return {policy: sorted(set(rows)) for policy, rows in found.items()}


def example(route: str) -> tuple[str, str]:
    method, _, path = route.partition(" ")
    for braces, named in PLACES.items():
        path = path.replace(braces, named)
    return method, path


@pytest.mark.parametrize(
    ("routes", "access", "table", "policies"),
    [
        (Relay(RelayConfig()).router.routes, RelayAccess, authority_table.RELAY_ROUTES, authority_table.RELAY_ACCESS),
        (Api(ApiConfig()).router.routes, ApiAccess, authority_table.API_ROUTES, authority_table.API_ACCESS),
    ],
    ids=["relay", "api"],
)
def test_each_route_has_a_row(
    routes: list[Route], access: Any, table: dict[str, str], policies: dict[str, str]
) -> None:
    assert {policy: sorted(authority_table.routes_of(text)) for policy, text in table.items()} == by_policy(routes)
    assert set(policies) == {policy.name for policy in access}


def relay_credentials(book: RelayHarness) -> dict[str, dict[str, Any]]:
    """Return the request options by kind of credential, such as a session or an MCP token."""
    tokens = {
        "bare session": {"operator": {"grants": NOTHING}},
        "session": {},
        "MCP token": {"operator": {"grants": {**NOTHING, "bridge": 0}, "audience": "mcp"}},
        "read-only MCP token": {"operator": {"grants": {**NOTHING, "bridge:read": 0}, "audience": "mcp"}},
    }
    found: dict[str, dict[str, Any]] = {"program of the host": {"peer": PEER}, "nothing": {"peer": REMOTE}}
    for kind, how in tokens.items():
        found[kind] = {"peer": REMOTE, "token": book.pair(device_id=kind, **how).token}  # type: ignore[arg-type]
    return found


@pytest.mark.unmeasured
@pytest.mark.parametrize("policy", authority_table.RELAY_ROUTES)
def test_credentials_at_the_relay(policy: str) -> None:
    sockets = {
        f"{route.method} {route.pattern}"
        for route in Relay(RelayConfig()).router.routes
        if route.kind is RouteKind.WEBSOCKET
    }
    expected = dict(zip(authority_table.RELAY_KINDS, authority_table.RELAY_ACCESS[policy].split(), strict=True))
    for route in authority_table.routes_of(authority_table.RELAY_ROUTES[policy]):
        if route in sockets:
            continue
        book = RelayHarness()
        method, path = example(route)
        for kind, how in relay_credentials(book).items():
            call = book.call(method, path, None if method == "GET" else {}, **how)
            status = 200 if call.reader.head is None else call.head.status
            assert (status in REFUSALS) is (expected[kind] == authority_table.NO), (route, kind, status)


@pytest.mark.unmeasured
def test_credentials_at_the_api() -> None:
    holders = {"key of a pairing": KeyHolder(CHAT), "key of a pairing with manage": KeyHolder({**CHAT, "manage": 0.0})}
    for policy, text in authority_table.API_ROUTES.items():
        expected = dict(zip(authority_table.API_KINDS, authority_table.API_ACCESS[policy].split(), strict=True))
        for route in authority_table.routes_of(text):
            method, path = example(route)
            for holder in holders.values():
                holder.book.after(BLOCK_DURATION)  # refusals on other routes count no longer
            for kind in authority_table.API_KINDS:
                book: ApiHarness = holders[kind].book if kind in holders else ApiHarness()
                key = holders[kind].key if kind in holders else KEY if kind == "main key" else ""
                call = book.call(method, path, None if method in ("GET", "HEAD") else {}, key=key, peer=REMOTE)
                status = 200 if call.reader.head is None else call.head.status
                assert (status in REFUSALS) is (expected[kind] == authority_table.NO), (route, kind, status)


def test_each_channel_and_each_tool_has_a_row() -> None:
    assert set(authority_table.CHANNELS) == set(CHANNEL_HANDLERS)
    toolbox = ApiHarness().api.parts.toolbox
    found = {each.name: (each.needs, {tool.name for tool in each.tools}) for each in toolbox.all_toolsets}
    assert found == {name: (power, set(tools.split())) for name, (power, tools) in authority_table.TOOLS.items()}


@pytest.mark.parametrize("channel", [name for name, grant in authority_table.CHANNELS.items() if grant])
def test_a_channel_needs_its_grant(channel: str) -> None:
    book = RelayHarness()
    bare = book.pair(operator={"grants": NOTHING}).phone
    bare.send(
        channel, {"notifications": "notification.posted", "bridge": "bridge.status"}.get(channel, f"{channel}.attach")
    )
    assert "grant_required" in str(bare.envelopes())


def test_the_page_shows_the_table() -> None:
    assert authority_table.PAGE.read_text() == authority_table.page(), "python -m tests.support.authority_table"
