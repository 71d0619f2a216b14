"""Bad and random requests, messages and bytes: a paired phone still answers and its session is unchanged.

One test sends tokens in wrong places: they are neither logged nor shown by the routes for inspection.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.wire.events import BinaryMessage, TextMessage
from tests.relay.harness import FIRST, PEER, REMOTE, HttpCall, PairedPhone, RelayHarness, paired_relay

ROUTES = sorted(dict.fromkeys((route.method, route.pattern) for route in Relay(RelayConfig()).router.routes))
SOCKETS = (("GET", "/"), ("GET", "/ws"))
HTTP_ROUTES = [route for route in ROUTES if route not in SOCKETS]

_NAMES = """
code ttl_seconds grants transport_hint endpoints host port tls api_key device allow_insecure_api_bearer dashboard_url
channel type id payload request_id status result session_token pairing_code ts text path content_type file_name
sensitive content format bytes_base64 filename_hint
"""
_TEXTS = "Q7M2ZK /tmp/x image/png png QUJD bridge system auth ping bridge.status bridge.response unknown"
KEYS = st.sampled_from(_NAMES.split())
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(_TEXTS.split())
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=6)
BODIES = (
    st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | OBJECTS.map(lambda value: json.dumps(value).encode())
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "channel": st.sampled_from(["system", "bridge", "tui", "terminal", "notifications", ""]) | LEAVES,
        "type": st.sampled_from(
            ["auth", "ping", "bridge.status", "bridge.response", "bridge.command", "notification.posted"]
        )
        | LEAVES,
        "id": LEAVES,
        "payload": OBJECTS | JSON,
    },
).map(json.dumps)
TEXTS = ENVELOPES | st.text(max_size=60) | JSON.map(json.dumps)
SEGMENT = st.text("abcXYZ019%2f.~", min_size=1, max_size=12)
VALUES = st.binary(max_size=40).map(lambda value: bytes(byte for byte in value if 0x21 <= byte <= 0x7E))
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"authorization", b"origin", b"x-forwarded-for", b"content-type", b"accept", b"upgrade", b"expect"]
        ),
        VALUES | st.sampled_from([b"Bearer x", b"websocket", b"null", b"http://localhost"]),
    ),
    max_size=4,
)


def witness(book: RelayHarness) -> tuple[PairedPhone, list[Any]]:
    """Pair a phone whose session the test must not change; return it, and its session as listed and as stored.

    The time `last_seen` of the listed one is omitted.
    """
    paired = book.pair(device_id="witness", device_name="Witness")
    paired.phone.send("bridge", "bridge.status", {"device": {"name": "W"}})
    return paired, known(book)


def known(book: RelayHarness) -> list[Any]:
    return [{**record, "last_seen": None} for record in book.sessions() if record["device_id"] == "witness"] + [
        record for record in book.store.values() if record["device_id"] == "witness"
    ]


def check_untouched(book: RelayHarness, paired: PairedPhone, before: list[Any]) -> None:
    assert known(book) == before
    assert "bug" not in book.events()
    assert book.exits == []
    call = book.call("GET", "/ping?device=witness", token=paired.token)
    command = [envelope for envelope in paired.phone.envelopes() if envelope["type"] == "bridge.command"][-1]
    paired.phone.reply(command["payload"], 200, {"alive": True})
    assert call.result.json == {"alive": True}


def check_refused(call: HttpCall) -> None:
    if call.answer is None:
        assert call.gone or not call.heard  # closed without an answer, or still reading
        return
    answer = call.answer
    if answer.headers.get(b"content-type") == b"text/plain; charset=utf-8":  # of a voice route
        assert 400 <= answer.status < 500
        assert answer.body.decode()
        return
    if answer.headers.get(b"content-type") == b"text/html; charset=utf-8":  # for the browser of an OAuth client
        assert answer.status in (200, 400, 404, 503)
        return
    allowed = ("phone_not_connected", "version_not_supported", "voice_unavailable", "unreachable")
    assert answer.status < 500 or answer.json["code"] in allowed, answer
    if answer.status >= 400 and answer.body:
        assert answer.json["ok"] is False
        assert isinstance(answer.json["error"], str)
        assert isinstance(answer.json["code"], str)


@given(st.sampled_from(HTTP_ROUTES), BODIES, HEADERS, SEGMENT, st.sampled_from(["here", "elsewhere", "paired"]))
def test_any_request_at_any_route(
    route: tuple[str, str], body: bytes, headers: list[tuple[bytes, bytes]], segment: str, caller: str
) -> None:
    book = RelayHarness()
    token = book.pair(device_id="caller").token if caller == "paired" else None
    paired, before = witness(book)
    path = route[1].replace("{token_prefix}", f"{segment}!")  # of no session
    sent = [] if token else [(name, value) for name, value in headers if value]
    peer = PEER if caller == "here" else REMOTE
    call = book.call(route[0], f"{path}?device={segment}", body, token=token, headers=sent, peer=peer)
    check_refused(call)
    assert token is None or route not in DEVICE_CONTROL or call.result.status in (400, 404)
    check_untouched(book, paired, before)


ECHOED = ("/pairing/register", "/pairing/approve", "/pairing/mint", "/oauth/register")  # answers repeat the request


@pytest.mark.unmeasured
@pytest.mark.parametrize("where", ["path", "query", "body", "nonsense", "field", "bearer"])
def test_misplaced_token_is_not_leaked(book: RelayHarness, where: str) -> None:
    caller, token = book.pair(device_id="d"), book.pair(device_id="other").token
    for method, path in HTTP_ROUTES:
        if path in ECHOED:
            continue
        filled = re.sub(r"{\w+}", f"{token}x" if where == "path" else "abcd", path)
        query = f"?secret={token}&device=d" if where == "query" else "?device=d"
        body: Any = {"text": "a", "x": 1, "y": 1}
        if where == "body":
            body |= {"token": token, "more": [{"Secret": token}]}
        elif where == "nonsense":
            body = f'{{"token": "{token}"'.encode()
        headers = [(b"x-api-key", token.encode()), (b"cookie", token.encode())] if where == "field" else []
        shown = f"{token}x" if where == "bearer" else caller.token
        book.call(method, filled + query, None if method == "GET" else body, token=shown, headers=headers, peer=REMOTE)
    for envelope in caller.phone.envelopes():
        if envelope["type"] == "bridge.command":
            caller.phone.reply(envelope["payload"], 403, {"password": token, "more": [{"Token": token}]})
    caller.phone.send("bridge", "bridge.status", {"device": {"token": token}, "more": [{"OTP": token}]})
    caller.phone.send("terminal", "terminal.input", {"token": token, "session_name": 5})
    inspected = ("/bridge/activity", "/bridge/devices", "/bridge/status", "/relay/info", "/media/inspect", "/metrics")
    shown_there = [path for path in (*inspected, "/sessions") if token.encode() in book.request("GET", path).body]
    logged = [repr(log) for log in book.logs if token in repr(log)]
    assert (shown_there, logged) == ([], [])


TOO_MUCH = "[" + "{}," * 100_000 + "0]"  # more than is parsed


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/pairing/register"),
        ("POST", "/clipboard/inbox"),
        ("POST", "/media/upload"),
        ("POST", "/tap"),
        ("POST", "/voice/synthesize"),
        ("PATCH", "/relay/security"),
    ],
)
def test_bodies_too_slow_to_parse_are_refused(book: RelayHarness, method: str, path: str) -> None:
    paired, before = witness(book)
    answer = book.call(method, path, TOO_MUCH.encode(), token=paired.token).result
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")
    check_untouched(book, paired, before)


def test_messages_too_slow_to_parse_are_refused(book: RelayHarness) -> None:
    paired, before = witness(book)
    phone = book.pair(device_id="other").phone
    phone.text(TOO_MUCH)
    assert phone.close_code == 1009
    check_untouched(book, paired, before)


def check_closed(phone: HttpCall) -> None:
    for event in phone.events:
        if isinstance(event, TextMessage):
            envelope = json.loads(event.text)
            assert {"channel", "type", "id", "payload"} == set(envelope)
            assert isinstance(envelope["id"], str)
            assert envelope["id"]


@given(st.lists(TEXTS | st.binary(max_size=20), max_size=4))
def test_any_message_before_authentication(messages: list[str | bytes]) -> None:
    book = RelayHarness()
    paired, before = witness(book)
    phone = book.websocket()
    for message in messages:
        if phone.is_open:
            phone.send_events(
                TextMessage(FIRST, message) if isinstance(message, str) else BinaryMessage(FIRST, message)
            )
    check_closed(phone)
    book.after(31)
    assert phone.close_code == 1000
    check_untouched(book, paired, before)


@given(st.lists(TEXTS | st.binary(max_size=20), max_size=6))
def test_any_message_after_authentication(messages: list[str | bytes]) -> None:
    book = RelayHarness()
    phone = book.pair(device_id="noisy").phone
    paired, before = witness(book)
    for message in messages:
        phone.send_events(TextMessage(FIRST, message) if isinstance(message, str) else BinaryMessage(FIRST, message))
    check_closed(phone)
    assert phone.is_open
    check_untouched(book, paired, before)


@given(OBJECTS | JSON)
def test_any_answer_of_a_phone(answer: object) -> None:
    book, noisy = paired_relay(device_id="noisy")
    paired, before = witness(book)
    call = book.call("GET", "/screen?device=noisy", token=noisy.token)
    command = noisy.phone.command()
    members = answer if isinstance(answer, dict) else {"result": answer}
    noisy.phone.send("bridge", "bridge.response", {**members, "request_id": command["request_id"]})
    assert 200 <= call.result.status <= 599
    if call.result.body:
        assert isinstance(call.result.json, dict | list)
    check_untouched(book, paired, before)
