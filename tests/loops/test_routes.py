"""Every route of the relay against bad input: a 400 that names the field, 413 for too much, 405 for a wrong method.

The rows come from the relay's own table, so a new route without bad input here fails `test_every_route_is_here`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import frozen

from svc_proto.config import RelayConfig
from svc_proto.engine.router import Kind, Route
from svc_proto.relay.access import Access
from svc_proto.relay.routes.control import DEVICE_CONTROL
from svc_proto.relay.service import Relay
from tests.loops.raw import read_response
from tests.loops.wires import Wire
from tests.loops.world import World, bearer

TABLE = Relay(RelayConfig()).router.routes
ROUTES = {f"{route.method} {route.pattern}": route for route in TABLE}
HTTP = {name: route for name, route in ROUTES.items() if route.kind is Kind.HTTP}
PATTERNS = sorted({route.pattern for route in TABLE})
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")
PLACES = {  # what stands for the braces of a pattern
    "{token_prefix}": "0123abcd",
    "{token}": "nosuchtoken",
    "{provider_id}": "stub",
    "{session_id}": "nosuchsession",
    "{ticket}": "nosuchticket",
    "{code}": "NOSUCH",
}
CHUNK = 1 << 16
DRAINED = 256 * 1024  # bytes that are read and thrown away behind a refusal, `Limits.max_drain`
TEXT = b"text/plain; charset=utf-8"
PAGE = b"text/html; charset=utf-8"  # of what browsers are sent to
FORM = "Content-Type: multipart/form-data; boundary=xyz"
SMALL_CAP = 1  # MB of media, so that the route for uploads has the limit of one that is sent as JSON


@frozen
class Bad:
    """A request that a route refuses with 400. Without a `field` the whole body is at fault."""

    code: str
    field: str | None
    body: object = None  # bytes as they are, anything else as JSON
    query: str = ""
    place: str = ""  # for the braces of the pattern


@frozen
class Plain:
    """One that a voice route refuses in text, with this word in it (wire terminal-voice 3)."""

    word: str
    body: object = None
    query: str = ""
    place: str = ""


def wrong(field: str, body: object = None, **more: Any) -> Bad:
    """A field that cannot be used."""
    return Bad("invalid_field", field, body, **more)


def no_object(field: str | None = None) -> list[Bad]:
    """Bodies for a route that takes a JSON object."""
    return [
        *(Bad("invalid_json", None, body) for body in (b"", b'{"a":1,"a":2}')),
        Bad("invalid_field" if field else "invalid_body", field, []),
    ]


CODE = {"code": "ABC123"}
META = [wrong("code", {}), wrong("grants.bridge", {**CODE, "grants": {"bridge": "long"}})]
FILE = {"path": "/tmp/x", "content_type": "image/png"}
UPLOAD = {"content_type": "image/png", "content": "QUJD"}
PASTE = {"format": "png", "bytes_base64": "iVBORw0KGgo="}
FOUR = {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}
SELECTOR = wrong("device", {"device": 5})

NO_JSON = Plain("JSON", b"{")
SETTINGS = [NO_JSON, Plain("sample_rate", {"sample_rate": 7_999})]
OPTIONS = [Plain("nobody", place="nobody")]
CHOICE = [NO_JSON, *OPTIONS, Plain("model", {"model": 5})]
SESSION = [NO_JSON, Plain("provider", {"provider": "nobody"})]
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
    "POST /pairing/mint": [Bad("invalid_json", None, b"{"), wrong("port", {"port": 0})],
    "GET /sessions": [],
    "DELETE /sessions/{token_prefix}": [Bad("invalid_prefix", "token_prefix", place="abc")],
    "PATCH /sessions/{token_prefix}": [
        *no_object("body"),
        Bad("invalid_prefix", "token_prefix", {"ttl_seconds": 1}, place="%20%20%20a"),
        wrong("ttl_seconds", {"ttl_seconds": -1}),
    ],
    # --- reports ---
    "GET /relay/info": [],
    "GET /relay/security": [],
    "PATCH /relay/security": [
        *no_object(),
        wrong("allow_insecure_api_bearer", {}),
        wrong("allow_insecure_api_bearer", {"allow_insecure_api_bearer": 1}),
    ],
    "GET /bridge/status": [],  # whatever is in the query is a name, and no phone's
    "GET /bridge/activity": [],  # a limit that is none counts as 100 (wire bridge 4.2)
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
    "GET /notifications/recent": [wrong("limit", query="?limit=1.5")],
    # --- voice ---
    "GET /voice/config": [],  # a profile that there is not is the global one
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
    # --- Device Control; a body that is no object counts as empty (wire bridge 2.1) ---
    "GET /ping": [],
    "POST /setup": [SELECTOR],
    "GET /current_app": [],
    "POST /return_to_svc": [SELECTOR],
    "POST /return_to_hermes": [SELECTOR],
    "GET /screen": [wrong("include_bounds", query="?include_bounds=maybe")],
    "GET /screen_hash": [],
    "POST /diff_screen": [wrong("previous_hash", b"nonsense")],
    "POST /find_nodes": [wrong("clickable", {"clickable": "yes"}), wrong("limit", {"limit": 1.5})],
    "POST /describe_node": [wrong("nodeId", b""), wrong("node_id", {"node_id": {}})],
    "GET /screenshot": [],
    "GET /get_apps": [],
    "GET /apps": [],
    "POST /tap": [wrong("nodeId", b"[]")],
    "POST /tap_text": [wrong("text", {}), wrong("text", {"text": ["x"]})],
    "POST /long_press": [wrong("nodeId", {}), wrong("duration", {"nodeId": "w0:1", "duration": []})],
    "POST /drag": [wrong("end_y", {**FOUR, "end_y": -1}), wrong("start_x", {})],
    "POST /type": [wrong("text", {}), wrong("text", {"text": True})],
    "POST /swipe": [wrong("start_x", {}), wrong("duration_ms", {**FOUR, "duration_ms": "12.5"})],
    "POST /scroll": [wrong("direction", {}), wrong("direction", {"direction": "sideways"})],
    "POST /press_key": [wrong("key", {}), wrong("key", {"key": ""})],
    "POST /wait": [wrong("ms", {"ms": "soon"})],
    "POST /open_app": [wrong("package", {})],
    "GET /clipboard": [],
    "POST /clipboard": [wrong("text", {}), wrong("text", {"text": {}})],
    "POST /media": [wrong("action", {})],
    "POST /send_intent": [wrong("action", {})],
    "POST /broadcast": [wrong("action", {"action": None})],
    "GET /events": [wrong("limit", query="?limit=x"), wrong("since", query="?since=now")],
    "POST /events/stream": [wrong("enabled", {}), wrong("enabled", {"enabled": 1})],
    "GET /location": [],
    "POST /search_contacts": [wrong("query", {}), wrong("limit", {"query": "Ada", "limit": "all"})],
    "POST /call": [wrong("number", {})],
    "POST /send_sms": [wrong("to", {"body": "x"}), wrong("body", {"to": "1"})],
    "POST /share_media": [wrong("attachments", {}), wrong("attachments", {"attachments": "x"})],
    "POST /send_mms": [wrong("to", {"text": "x"}), wrong("attachments", {"to": "1"})],
}
"""Some of what each route refuses, its room has the rest; empty where whatever comes in means something."""

CASES = [pytest.param(name, bad, id=f"{name} {n}") for name, cases in BAD.items() for n, bad in enumerate(cases)]


@pytest.fixture(scope="module")
def token(served: World) -> str:
    """Of a session with all grants."""
    return served.pair("Caller").token


def path_of(route: Route, place: str = "") -> str:
    path = route.pattern
    for braces, word in PLACES.items():
        path = path.replace(braces, place or word)
    return path


def limit_of(route: Route) -> int:
    """Bytes of a body: what a route that takes none throws away before it is too much."""
    return route.body_limit or 64 * 1024


def encoded(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    return json.dumps(body).encode()


def head(route: Route, token: str, *fields: str) -> bytes:
    lines = [f"{route.method} {path_of(route)} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def refused(wire: Wire, status: int, code: str) -> dict[str, str]:
    """Read a refusal; its header fields."""
    found, fields, body = read_response(wire)
    assert found == status
    if fields["content-type"] == TEXT.decode():  # of voice
        assert body
        return fields
    answer = json.loads(body)
    assert (answer["ok"], answer["code"]) == (False, code)
    assert answer["error"]
    return fields


# --- the table ------------------------------------------------------------------------------------------------------


def test_every_route_is_here() -> None:
    # Refusals of JSON-RPC and of OAuth: tests/mcp, tests/loops/test_mcp, tests/relay/test_oauth
    of_its_own = {name for name in ROUTES if any(part in name for part in (" /mcp", " /oauth/", " /.well-known/"))}
    assert sorted(BAD) == sorted(ROUTES.keys() - of_its_own)


def test_what_is_forwarded_to_phones_is_what_needs_the_bridge_grant() -> None:
    forwarded = sorted((route.method, route.pattern) for route in TABLE if route.access is Access.BRIDGE)
    assert forwarded == sorted(DEVICE_CONTROL)


# --- 400 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bad"), CASES)
def test_bad_input(served: World, token: str, name: str, bad: Bad | Plain) -> None:
    route = ROUTES[name]
    # None is JSON's null for a route that takes a body, and nothing at all for one that takes none.
    body = b"" if route.method in ("GET", "DELETE") else encoded(bad.body)
    answer = served.http(route.method, path_of(route, bad.place) + bad.query, headers=bearer(token), body=body)
    if isinstance(bad, Plain):
        assert answer.headers.get(b"content-type") == TEXT
        assert (answer.status, bad.word in answer.body.decode()) == (400, True), answer
        return
    assert answer.headers.get(b"content-type") == b"application/json"
    assert answer.status == 400, answer
    assert (answer.json["ok"], answer.code) == (False, bad.code)
    assert answer.json.get("field") == bad.field
    assert bad.field is None or bad.field in answer.json["error"] or bad.code != "invalid_field"


@pytest.mark.parametrize("name", HTTP)
def test_any_body_is_answered_in_json_or_taken(served: World, token: str, name: str) -> None:
    """Garbage at any route, those that take no body included: never a 5xx but for the phone that is not there."""
    route = HTTP[name]
    client = served.client()
    for body in (b"\x00\xff" * 50, b"{" * 3000, b'"\\ud800"', b"-0", b'{"":{"":[]}}'):
        answer = client.ask(route.method, path_of(route), headers=bearer(token), body=body)
        assert answer.status < 500 or answer.code == "phone_not_connected", answer
        if answer.status >= 400 and answer.headers.get(b"content-type") in (TEXT, PAGE):
            assert answer.body
        elif answer.status >= 400:
            assert (answer.json["ok"], bool(answer.json["error"]), bool(answer.code)) == (False, True, True)
    client.wire.close()


# --- 413 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HTTP)
@pytest.mark.parametrize("expect", [(), ("Expect: 100-continue",)], ids=["", "expect"])
def test_too_much_by_its_length_is_refused_before_it_is_sent(
    served: World, token: str, name: str, expect: tuple[str, ...]
) -> None:
    route = HTTP[name]
    wire = served.connect()
    wire.send(head(route, token, f"Content-Length: {max(limit_of(route), DRAINED) + 1}", *expect))
    assert refused(wire, 413, "body_too_large")["connection"] == "close"
    if not expect:  # who sends it all the same may do so for a while, so as to see the answer
        wire.send(bytes(DRAINED + CHUNK))
    assert wire.read_all() == b""


@pytest.mark.parametrize("name", HTTP)
def test_too_much_in_chunks_is_cut_at_the_limit(world: World, name: str) -> None:
    world.start_relay(media_max_size_mb=SMALL_CAP)
    limit = next(
        limit_of(route)
        for route in Relay(RelayConfig(media_max_size_mb=SMALL_CAP)).router.routes
        if f"{route.method} {route.pattern}" == name
    )
    wire = world.connect()
    recording = name == "POST /voice/transcribe"  # zeros before the first part of a form are read, and dropped
    wire.send(head(HTTP[name], world.pair().token, "Transfer-Encoding: chunked", *([FORM] if recording else [])))
    chunk = b"%x\r\n%s\r\n" % (CHUNK, bytes(CHUNK))
    for _ in range(limit // CHUNK + 1):
        wire.send(chunk)
    uploading = HTTP[name].streamed and not recording  # its handler has looked at the first 34 MiB, and said so itself
    refused(wire, 413, "too_large" if uploading else "body_too_large")
    for _ in range(DRAINED // CHUNK + 2):
        wire.send(chunk)
    assert wire.read_all() == b""
    wire.close()


# --- 405 and 404 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_wrong_method_is_told_the_right_ones(served: World, pattern: str) -> None:
    allowed = {route.method for route in TABLE if route.pattern == pattern}
    if "GET" in allowed:
        allowed.add("HEAD")
    client = served.client()
    (route, *_) = [route for route in TABLE if route.pattern == pattern]
    for method in METHODS:
        if method in allowed:
            continue
        answer = client.ask(method, path_of(route))
        assert (answer.status, answer.headers.get(b"allow")) == (405, ",".join(sorted(allowed)).encode())
        if method == "HEAD":
            continue
        if answer.headers.get(b"content-type") == TEXT:
            assert pattern.startswith("/voice/")
        else:
            assert (answer.json["ok"], answer.code) == (False, "method_not_allowed")
    client.wire.close()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_path_beside_one_that_is_there(served: World, pattern: str) -> None:
    client = served.client()
    (route, *_) = [route for route in TABLE if route.pattern == pattern]
    for path in (path_of(route) + "/more/of/it", f"/nowhere{path_of(route)}/x", path_of(route).upper() + "?x"):
        if path == "/?x":
            continue
        answer = client.ask("GET", path)
        assert answer.status == 404, path
        if answer.headers.get(b"content-type") == TEXT:
            assert path.startswith("/voice/")
        else:
            assert (answer.json["ok"], answer.code) == (False, "not_found"), path
    client.wire.close()
