"""The route table, compared with the specification's tables; refused requests, a bug in a handler, and `OPTIONS *`."""

from __future__ import annotations

import pytest

from svc_proto.engine.router import BODY_LIMIT, RouteKind
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.relay.harness import PEER, REMOTE, RelayHarness

# SPEC.md "Device Control (bridge) routes": 34 rows. The self-foreground route has no method there; phones and agents
# use POST (wire bridge 3).
SPEC_DEVICE_CONTROL = """
GET /ping
POST /setup
GET /current_app
GET /screen
GET /screen_hash
POST /diff_screen
POST /find_nodes
POST /describe_node
GET /screenshot
GET /get_apps
GET /apps
POST /tap
POST /tap_text
POST /long_press
POST /drag
POST /type
POST /swipe
POST /scroll
POST /press_key
POST /wait
POST /open_app
GET,POST /clipboard
POST /media
POST /send_intent
POST /broadcast
GET /events
POST /events/stream
GET /location
POST /search_contacts
POST /call
POST /send_sms
POST /share_media
POST /send_mms
POST /return_to_svc
"""

# SPEC.md "Relay: pairing and sessions", with the caller classes of wire core 0.3.
SPEC_RELAY = {
    ("GET", "/ws"): RelayAccess.SOCKET,
    ("GET", "/"): RelayAccess.SOCKET,
    ("GET", "/health"): RelayAccess.PUBLIC,
    ("GET", "/healthz"): RelayAccess.PUBLIC,
    ("GET", "/readyz"): RelayAccess.PUBLIC,
    ("GET", "/metrics"): RelayAccess.MONITOR,
    ("GET", "/openapi.json"): RelayAccess.LOOPBACK_OR_BEARER,
    ("GET", "/docs"): RelayAccess.LOOPBACK_OR_BEARER,
    ("POST", "/pairing"): RelayAccess.LOOPBACK,
    ("POST", "/pairing/register"): RelayAccess.LOOPBACK,
    ("POST", "/pairing/mint"): RelayAccess.LOOPBACK,
    ("POST", "/pairing/approve"): RelayAccess.LOOPBACK,
    ("GET", "/sessions"): RelayAccess.LOOPBACK_OR_BEARER,
    ("DELETE", "/sessions/{token_prefix}"): RelayAccess.LOOPBACK_OR_BEARER,
    ("PATCH", "/sessions/{token_prefix}"): RelayAccess.LOOPBACK_OR_BEARER,  # the operator may grant what was withheld
    ("GET", "/bridge/status"): RelayAccess.LOOPBACK,
    ("GET", "/relay/security"): RelayAccess.LOOPBACK,
    ("PATCH", "/relay/security"): RelayAccess.LOOPBACK,
    ("GET", "/relay/info"): RelayAccess.LOOPBACK_OR_BEARER,
    ("GET", "/bridge/activity"): RelayAccess.LOOPBACK,
    ("GET", "/media/inspect"): RelayAccess.LOOPBACK,
    ("GET", "/media/inspect/{token}"): RelayAccess.LOOPBACK,
    ("POST", "/media/register"): RelayAccess.LOOPBACK,
    ("POST", "/media/upload"): RelayAccess.FILES,
    ("GET", "/media/{token}"): RelayAccess.BEARER,
    ("GET", "/media/by-path"): RelayAccess.FILES,
    ("POST", "/clipboard/inbox"): RelayAccess.FILES,
    ("GET", "/notifications/recent"): RelayAccess.LOCAL_OR_NOTIFICATIONS,
}

# SPEC.md "Relay: voice", with the grants of wire terminal-voice 7.
SPEC_VOICE = {
    ("GET", "/voice/config"): RelayAccess.VOICE_CONFIG,
    ("POST", "/voice/transcribe"): RelayAccess.VOICE_STT,
    ("POST", "/voice/synthesize"): RelayAccess.VOICE_TTS,
    **{
        (method, f"/voice/{family}{path}"): access
        for family, access in (
            ("output", RelayAccess.VOICE_TTS),
            ("realtime", RelayAccess.VOICE_REALTIME),
            ("realtime-agent", RelayAccess.VOICE_REALTIME),
        )
        for method, path in (
            ("GET", "/config"),
            ("PATCH", "/config"),
            ("GET", "/providers/{provider_id}/options"),
            ("POST", "/providers/{provider_id}/validate"),
            ("POST", "/session"),
        )
    },
    ("GET", "/voice/output/{session_id}"): RelayAccess.VOICE_OUTPUT_SOCKET,
    ("GET", "/voice/realtime/{session_id}"): RelayAccess.VOICE_REALTIME_SOCKET,
    ("GET", "/voice/realtime-agent/{session_id}"): RelayAccess.VOICE_REALTIME_SOCKET,
}


def spec_pairs() -> list[tuple[str, str]]:
    rows = [row.split(" ") for row in SPEC_DEVICE_CONTROL.split("\n") if row]
    return [(method, path) for methods, path in rows for method in methods.split(",")]


def test_device_control_is_the_34_paths_of_the_specification() -> None:
    pairs = spec_pairs()
    paths = dict.fromkeys(path for _, path in pairs)
    assert len(paths) == 34
    both = [*pairs, ("POST", "/return_to_hermes")]  # the same route in the spelling of older agents
    assert sorted(DEVICE_CONTROL) == sorted(both)
    assert len(dict.fromkeys(DEVICE_CONTROL)) == len(DEVICE_CONTROL)


def test_every_device_control_route_needs_the_bridge_grant() -> None:
    table = {(route.method, route.pattern): route for route in Relay(RelayConfig()).router.routes}
    for pair in DEVICE_CONTROL:
        assert table[pair].access is RelayAccess.BRIDGE
        assert table[pair].body_limit == BODY_LIMIT == 2_097_152


@pytest.mark.parametrize(("pair", "access"), [*SPEC_RELAY.items(), *SPEC_VOICE.items()])
def test_the_rows_of_the_relay(pair: tuple[str, str], access: RelayAccess) -> None:
    (route,) = [each for each in Relay(RelayConfig()).router.routes if (each.method, each.pattern) == pair]
    assert route.access is access
    assert (route.kind is RouteKind.WEBSOCKET) == (pair[1] in ("/", "/ws") or pair[1].endswith("{session_id}"))


def test_the_voice_routes_are_those_of_the_specification() -> None:
    rows = {(route.method, route.pattern) for route in Relay(RelayConfig()).router.routes}
    assert {row for row in rows if row[1].startswith("/voice/")} == set(SPEC_VOICE)


def test_routes_are_unique() -> None:
    rows = [(route.method, route.pattern) for route in Relay(RelayConfig()).router.routes]
    assert len(rows) == len(dict.fromkeys(rows))


# --- properties of every route --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/nope", "/health/x", "/sessions/a/b", "/pairing/other", "/media/a/b/", "/%", "/a%zz"]
)
def test_an_unknown_path(path: str) -> None:
    answer = RelayHarness().request("GET", path, peer=REMOTE)
    assert answer.status == (400 if "%" in path else 404)
    assert answer.json["ok"] is False
    assert answer.headers.get(b"content-type") == b"application/json"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/health", b"GET,HEAD"),
        ("GET", "/pairing", b"POST"),
        ("PUT", "/clipboard", b"GET,HEAD,POST"),
        ("OPTIONS", "/relay/security", b"GET,HEAD,PATCH"),
        ("GET", "/sessions/abcd", b"DELETE,PATCH"),
        ("DELETE", "/ws", b"GET,HEAD"),
    ],
)
def test_a_wrong_method(method: str, path: str, allow: bytes) -> None:
    answer = RelayHarness().request(method, path, peer=REMOTE)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (405, False, "method_not_allowed")
    assert answer.headers.get(b"allow") == allow


def test_a_body_over_two_mebibytes(book: RelayHarness) -> None:
    body = b'{"code":"Q7M2ZK"' + b" " * BODY_LIMIT + b"}"
    for peer, status in ((PEER, 413), (REMOTE, 403)):
        answer = book.request("POST", "/pairing/register", body, peer=peer)
        assert (answer.status, answer.json["ok"]) == (status, False)
    fits = b'{"code":"Q7M2ZK"' + b" " * (BODY_LIMIT - 17) + b"}"
    assert book.request("POST", "/pairing/register", fits).status == 200


def test_a_bug_is_a_500_with_a_reference_and_closes_that_connection_only(book: RelayHarness) -> None:
    book.logs.bugs = True
    paired = book.pair()
    book.relay.codes = None  # type: ignore[assignment] # a bug, made on purpose
    call = book.call("POST", "/pairing/register", {"code": "Q7M2ZK"})
    answer = call.result
    assert (answer.status, answer.json) == (
        500,
        {"ok": False, "error": "internal error, reference bug-1", "code": "internal_error"},
    )
    assert answer.headers.get(b"connection") == b"close"
    assert call.gone
    assert paired.phone.is_open
    assert "bug" in book.events()


def test_options_asterisk_lists_all_methods() -> None:
    answer = RelayHarness().request("OPTIONS", "*", peer=REMOTE)
    assert (answer.status, answer.headers.get(b"allow")) == (204, b"DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT")
