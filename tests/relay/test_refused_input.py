"""Refused input of the relay's routes: a 400 in JSON, which may name a field, or in plain text from a voice route.

A new route without a row fails `test_every_route_has_a_row`; `/mcp`, OAuth, `/.well-known` and Device Control have
tests of their own.
"""

import json
from typing import Any

import pytest
from attrs import frozen

from svc_proto.engine.router import Route
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.relay.harness import RelayHarness

TABLE = Relay(RelayConfig()).router.routes
ROUTES = {f"{route.method} {route.pattern}": route for route in TABLE}
PARAMETERS = {
    "{token_prefix}": "0123abcd", "{token}": "nosuchtoken", "{provider_id}": "stub", "{session_id}": "nosuchsession",
    "{ticket}": "nosuchticket", "{code}": "NOSUCH",
}  # fmt: skip
TEXT = "text/plain; charset=utf-8"


@frozen
class Bad:
    """A request that is refused with 400; `field` is what the refusal names, None if it names no field."""

    code: str
    field: str | None
    body: object = None  # bytes as they are, anything else as JSON
    query: str = ""
    parameter: str = ""  # value of the path parameter


@frozen
class Plain:
    """A request that a voice route refuses with 400 in plain text that contains `word` (wire terminal-voice 3)."""

    word: str
    body: object = None
    query: str = ""
    parameter: str = ""


def wrong(field: str, body: object = None, **more: Any) -> Bad:
    """Return a request with an invalid field."""
    return Bad("invalid_field", field, body, **more)


def no_object(field: str | None = None) -> list[Bad]:
    """Return requests with an empty body, a duplicate member and an array, which a route for a JSON object refuses.

    The array is refused as `invalid_field` with the name `field`, or as `invalid_body` if `field` is None.
    """
    return [
        *(Bad("invalid_json", None, body) for body in (b"", b'{"a":1,"a":2}')),
        Bad("invalid_field" if field else "invalid_body", field, []),
    ]


CODE = {"code": "ABC123"}
META = [wrong("code", {}), wrong("grants.bridge", {**CODE, "grants": {"bridge": "long"}})]
FILE = {"path": "/tmp/x", "content_type": "image/png"}
UPLOAD = {"content_type": "image/png", "content": "QUJD"}
PASTE = {"format": "png", "bytes_base64": "iVBORw0KGgo="}

NO_JSON = Plain("JSON", b"{")
SETTINGS = [NO_JSON, Plain("sample_rate", {"sample_rate": 7_999})]
OPTIONS = [Plain("absent", parameter="absent")]
CHOICE = [NO_JSON, *OPTIONS, Plain("model", {"model": 5})]
SESSION = [NO_JSON, Plain("provider", {"provider": "absent"})]
SOCKET = [Plain("WebSocket")]

BAD: dict[str, list[Bad] | list[Plain]] = {
    # --- pairing and sessions ---
    "GET /ws": [Bad("upgrade_required", None)],
    "GET /": [Bad("upgrade_required", None)],
    "GET /health": [],
    "GET /openapi.json": [],
    "GET /docs": [],
    "GET /healthz": [],
    "GET /readyz": [],
    "GET /metrics": [],
    "POST /pairing": [],
    "POST /pairing/register": [*no_object("body"), *META, wrong("endpoints", {**CODE, "endpoints": {}})],
    "POST /pairing/approve": [*no_object("body"), *META],
    "POST /pairing/mint": [
        Bad("invalid_json", None, b"{"),
        *(wrong("port", {"port": port}) for port in (0, 65_536, "100000", "x", True, "9" * 5000)),
        *(wrong("host", {"host": host}) for host in (5, "", "  ", "0.0.0.0")),
        *(wrong(name, {name: value}) for name, value in (("tls", 1), ("api_key", 5), ("dashboard_url", 5))),
        wrong("endpoints", {"endpoints": {}}),
    ],
    "GET /sessions": [wrong("limit", query=f"?limit={limit}") for limit in ("0", "201", "2.5", "x", "")],
    "DELETE /sessions/{token_prefix}": [Bad("invalid_prefix", "token_prefix", parameter="abc")],
    "PATCH /sessions/{token_prefix}": [
        *no_object("body"),
        Bad("invalid_prefix", "token_prefix", {"ttl_seconds": 1}, parameter="%20%20%20a"),
        wrong("ttl_seconds", {"ttl_seconds": -1}),
    ],
    # --- reports ---
    "GET /audit": [wrong("limit", query="?limit=all")],
    "GET /relay/info": [],
    "GET /relay/security": [],
    "PATCH /relay/security": [
        *no_object(),
        wrong("allow_insecure_api_bearer", {}),
        wrong("allow_insecure_api_bearer", {"allow_insecure_api_bearer": 1}),
    ],
    "GET /bridge/status": [],  # any query is the name of a phone
    "GET /bridge/activity": [],  # an invalid limit counts as 100 (wire bridge 4.2)
    "GET /bridge/devices": [],
    "POST /bridge/select-active": [*no_object(), wrong("device", {}), wrong("device_id", {"device_id": ["x"]})],
    # --- media and the inbox ---
    "POST /media/register": [
        *no_object(),
        wrong("content_type", {"path": "/tmp/x"}),
        Bad("outside_roots", "path", {**FILE, "path": "/tmp/../etc/passwd"}),
    ],
    "POST /media/upload": [*no_object(), wrong("content", {**UPLOAD, "content": "QUJ"})],
    "GET /media/by-path": [wrong("path")],
    "GET /media/inspect": [],
    "GET /media/inspect/{token}": [],
    "GET /media/{token}": [],
    "POST /clipboard/inbox": [*no_object(), wrong("bytes_base64", {**PASTE, "format": "gif"})],
    "POST /phone/message": [
        *no_object(),
        wrong("text", {}),
        wrong("title", {"text": "x", "title": "a\nb"}),
        wrong("surfacing", {"text": "x", "surfacing": "loud"}),
        wrong("metadata", {"text": "x", "metadata": []}),
    ],
    "GET /phone/replies": [wrong("timeout", query="?timeout=soon")],
    "GET /phone/outbound": [],
    "DELETE /phone/outbound": [],
    "GET /phone/threads": [],
    "GET /notifications/recent": [wrong("limit", query="?limit=1.5")],
    "GET /context/injected": [],
    "GET /chat/image-activity": [wrong("session_id"), wrong("session_id", query="?profile=default")],
    **{f"GET /api/profiles/{{profile}}/{part}": [] for part in ("config", "skills", "soul", "memory", "avatar")},
    "PUT /api/profiles/{profile}/soul": [],  # the API server reads the body
    "PUT /api/profiles/{profile}/memory/{filename}": [],
    # --- voice ---
    "GET /voice/config": [],  # an unknown profile stands for the global one
    "POST /voice/transcribe": [Bad("invalid_multipart", None, body) for body in (b"", b"RIFF", {"file": "x"})],
    "POST /voice/synthesize": [*no_object(), wrong("text", {"text": " "})],
    "GET /voice/output/config": [],
    "PATCH /voice/output/config": SETTINGS,
    "GET /voice/output/providers/{provider_id}/options": OPTIONS,
    "POST /voice/output/providers/{provider_id}/validate": CHOICE,
    "POST /voice/output/session": SESSION,
    "GET /voice/output/{session_id}": SOCKET,
    "GET /voice/realtime/config": [],
    "PATCH /voice/realtime/config": SETTINGS,
    "GET /voice/realtime/providers/{provider_id}/options": [*OPTIONS, Plain("stub")],
    "POST /voice/realtime/providers/{provider_id}/validate": [Plain("stub", {}), *OPTIONS],
    "POST /voice/realtime/session": SESSION,
    "GET /voice/realtime/{session_id}": SOCKET,
    "GET /voice/realtime-agent/config": [],
    "PATCH /voice/realtime-agent/config": SETTINGS,
    "GET /voice/realtime-agent/providers/{provider_id}/options": OPTIONS,
    "POST /voice/realtime-agent/providers/{provider_id}/validate": CHOICE,
    "POST /voice/realtime-agent/session": SESSION,
    "GET /voice/realtime-agent/{session_id}": SOCKET,
}
"""Refused input of each route; empty where every input has a meaning. The tests of the handlers have more."""

CASES = [pytest.param(name, bad, id=f"{name} {n}") for name, cases in BAD.items() for n, bad in enumerate(cases)]


def path_of(route: Route, parameter: str) -> str:
    path = route.pattern
    for braces, value in PARAMETERS.items():
        path = path.replace(braces, parameter or value)
    return path


def test_every_route_has_a_row() -> None:
    # JSON-RPC and OAuth have refusals of their own: tests/mcp, tests/relay/oauth/test_authorization_server. Those of
    # Device Control are in tests/schema/test_device_control_arguments and routes/test_device_control.
    others = {name for name in ROUTES if any(part in name for part in (" /mcp", " /oauth/", " /.well-known/"))}
    others |= {f"{method} {path}" for method, path in DEVICE_CONTROL}
    assert sorted(BAD) == sorted(ROUTES.keys() - others)


def test_routes_are_unique() -> None:
    assert len(ROUTES) == len(TABLE)


def test_bridge_grant_routes_are_the_forwarded_ones() -> None:
    forwarded = sorted((route.method, route.pattern) for route in TABLE if route.access is RelayAccess.BRIDGE)
    assert forwarded == sorted(DEVICE_CONTROL)


@pytest.mark.parametrize(("name", "bad"), CASES)
def test_refused_input(name: str, bad: Bad | Plain) -> None:
    route, book = ROUTES[name], RelayHarness()
    body = bad.body if isinstance(bad.body, bytes) else json.dumps(bad.body).encode()
    if route.method in ("GET", "DELETE"):
        body = b""
    path = path_of(route, bad.parameter) + bad.query
    answer = book.call(route.method, path, body, token=book.pair().token).result
    assert answer.status == 400, answer
    content_type = answer.headers.get(b"content-type")
    if isinstance(bad, Plain):
        assert (content_type, bad.word in answer.body.decode()) == (TEXT.encode(), True)
        return
    assert content_type == b"application/json"
    assert (answer.json["ok"], answer.json["code"], answer.json.get("field")) == (False, bad.code, bad.field)
    assert bad.field is None or bad.field in answer.json["error"] or bad.code != "invalid_field"
