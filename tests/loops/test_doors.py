"""The table of doors: who gets through which, asked of running servers.

A row is a kind of door with the routes that have it, a column is a caller, and what stands there is the answer: `in`
(whatever comes behind the door), or the status that turns the caller away. A route that is in no row fails.
Where there is voice, a token that is none of the relay's may be a key of the API, and that must not come from afar in
the clear: 403.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from svc_proto.config import LocalTrust, RelayConfig
from svc_proto.engine.router import Kind
from svc_proto.relay.service import Relay
from tests.loops.wires import Declined
from tests.loops.world import LOOPBACK, REMOTE, World, bearer

IN = "in"
CALLERS = (
    *("program", "stranger", "lan_page", "local_page", "other_user", "proxy"),
    *("poor_phone", "rich_phone", "revoked"),
)

RELAY_DOORS: dict[str, tuple[str, str]] = {
    # door: (what each caller meets, in the order of CALLERS; the routes)
    "anybody": (
        "in   in   in   in   in   in   in   in   in",
        "GET /health",
    ),
    "anybody but pages": (
        "in   in   403  403  in   in   in   in   in",
        "GET /ws, GET /",
    ),
    "programs of this host": (
        "in   403  403  403  403  403  403  403  403",
        """GET /relay/info, GET /relay/security, PATCH /relay/security, GET /bridge/status, GET /bridge/activity,
        GET /bridge/devices, POST /bridge/select-active, POST /pairing, POST /pairing/register, POST /pairing/approve,
        POST /pairing/mint, POST /media/register, GET /media/inspect""",
    ),
    "this host, or a session": (
        "in   401  401  401  401  401  in   in   401",
        "GET /sessions, DELETE /sessions/{token_prefix}, PATCH /sessions/{token_prefix}, GET /notifications/recent",
    ),
    "a session": (
        "401  401  401  401  401  401  in   in   401",
        "POST /media/upload, GET /media/by-path, GET /media/{token}, POST /clipboard/inbox",
    ),
    "a session with bridge": (
        "401  401  401  401  401  401  403  in   401",
        """GET /ping, POST /setup, GET /current_app, POST /return_to_svc, POST /return_to_hermes, GET /screen,
        GET /screen_hash, POST /diff_screen, POST /find_nodes, POST /describe_node, GET /screenshot, GET /get_apps,
        GET /apps, POST /tap, POST /tap_text, POST /long_press, POST /drag, POST /type, POST /swipe, POST /scroll,
        POST /press_key, POST /wait, POST /open_app, GET /clipboard, POST /clipboard, POST /media, POST /send_intent,
        POST /broadcast, GET /events, POST /events/stream, GET /location, POST /search_contacts, POST /call,
        POST /send_sms, POST /share_media, POST /send_mms""",
    ),
    "a session with voice": (
        "401  401  401  401  401  401  403  in   403",
        """GET /voice/config, POST /voice/transcribe, POST /voice/synthesize, GET /voice/output/config,
        PATCH /voice/output/config, GET /voice/output/providers/{provider_id}/options,
        POST /voice/output/providers/{provider_id}/validate, GET /voice/realtime/config, PATCH /voice/realtime/config,
        GET /voice/realtime/providers/{provider_id}/options, POST /voice/realtime/providers/{provider_id}/validate,
        GET /voice/realtime-agent/config, PATCH /voice/realtime-agent/config,
        GET /voice/realtime-agent/providers/{provider_id}/options,
        POST /voice/realtime-agent/providers/{provider_id}/validate, POST /voice/output/session,
        POST /voice/realtime/session, POST /voice/realtime-agent/session""",
    ),
    "a session with voice, but no page's": (
        "401  401  401  401  401  401  403  in   403",
        "GET /voice/output/{session_id}, GET /voice/realtime/{session_id}, GET /voice/realtime-agent/{session_id}",
    ),
}
KINDS = {f"{route.method} {route.pattern}": route.kind for route in Relay(RelayConfig()).router.routes}
WITHHELD = ("bridge", "voice:config", "voice:realtime", "voice:stt", "voice:tts")
PLACES = {"{token_prefix}": "0123abcd", "{token}": "none", "{provider_id}": "stub", "{session_id}": "none"}


@frozen
class Caller:
    """Where somebody calls from, and what is in the request."""

    peer: str = LOOPBACK
    headers: Mapping[str, str] = {}


def doors(table: Mapping[str, tuple[str, str]], caller: str) -> dict[str, str]:
    """What a caller meets on each route."""
    column = CALLERS.index(caller)
    return {route.strip(): met.split()[column] for met, routes in table.values() for route in routes.split(",")}


def callers(world: World) -> dict[str, Caller]:
    """Everybody but the other user, for whom the relay has to ask for its secret."""
    poor = world.pair(
        "Poor", grants=dict.fromkeys(("bridge", "voice:config", "voice:realtime", "voice:stt", "voice:tts"), False)
    )
    rich, revoked = world.pair("Rich"), world.pair("Revoked")
    assert world.http("DELETE", f"/sessions/{revoked.token[:8]}", headers=bearer(rich.token)).status == 200
    proxied = {"via": "1.1 caddy", "x-forwarded-for": "192.168.1.66"}
    return {
        "program": Caller(),
        "stranger": Caller(REMOTE),
        "lan_page": Caller(REMOTE, {"origin": "http://192.168.1.66"}),
        "local_page": Caller(LOOPBACK, {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}),
        "proxy": Caller(LOOPBACK, proxied),
        "poor_phone": Caller(REMOTE, bearer(poor.token)),
        "rich_phone": Caller(REMOTE, bearer(rich.token)),
        "revoked": Caller(LOOPBACK, {**bearer(revoked.token), **proxied}),
    }


def met(world: World, caller: Caller, route: str) -> str:
    """What a caller meets on a route of the relay."""
    method, _, path = route.partition(" ")
    for braces, place in PLACES.items():
        path = path.replace(braces, place)
    if KINDS[route] is Kind.WEBSOCKET:
        try:
            world.websocket(path, peer=caller.peer, headers=caller.headers).wire.close()
            return IN
        except Declined as declined:
            status = declined.answer.status
    else:
        status = world.http(method, path, peer=caller.peer, headers=caller.headers).status
    return str(status) if status in (401, 403) else IN


def test_every_route_is_here() -> None:
    assert sorted(doors(RELAY_DOORS, "program")) == sorted(KINDS)


def test_the_doors_of_the_relay(world: World) -> None:
    world.start_relay()
    known = callers(world)
    for name, caller in known.items():
        expected = doors(RELAY_DOORS, name)
        assert {route: met(world, caller, route) for route in expected} == expected, name


def test_another_user_of_this_host(world: World) -> None:
    world.start_relay(local_trust=LocalTrust.SECRET)
    expected = doors(RELAY_DOORS, "other_user")
    assert {route: met(world, Caller(), route) for route in expected} == expected
