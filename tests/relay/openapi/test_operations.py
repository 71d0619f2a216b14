"""The relay's document has exactly the relay's routes, and the responses to the requests of these tests match it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.machines.owner_messages import MAX_WAIT
from svc_proto.openapi.profile_operations import PROFILE_OPERATIONS
from svc_proto.relay.openapi.operations import API_DOC
from tests.relay.harness import RelayHarness
from tests.relay.routes.voice_harness import VoiceRoutesHarness
from tests.support.http_codec import Response
from tests.support.http_harness import as_json
from tests.support.openapi_validation import OpenApiValidator, answer_differences, queries
from tests.support.routes_page import RELAY, assert_shown

BOOK = VoiceRoutesHarness()
DOCUMENTED = OpenApiValidator.of(BOOK.request("GET", "/openapi.json").body)
PAIRED = BOOK.pair(device_id="pixel-9", device_name="Pixel 9")
PNG = "iVBORw0KGgoAAAA="
KNOWN = {"provider_id": "stub", "token_prefix": PAIRED.prefix}
CONTEXT = {"enabled": True, "blocks": list[object]()}
UNTYPED = [  # forwarded answers, and messages of JSON-RPC
    "POST /mcp",
    *(label for label in PROFILE_OPERATIONS if not label.endswith("/avatar")),
    "GET /context/injected",
    "GET /chat/image-activity",
]
OPERATOR = "/relay/", "/bridge/", "/pairing", "/media/inspect", "/media/register", "/metrics", "/sessions"


def asked(book: RelayHarness, method: str, path: str, body: object = None) -> Response:
    """Send a request and return its response.

    Paths of `OPERATOR` are requested without a token, all others as the paired device, whose phone answers a command.
    A request for replies gets none and ends after its longest wait.
    """
    book.http = lambda asked: as_json(CONTEXT) if asked.path.endswith("/context") else (404, b"")
    token = None if path.startswith(OPERATOR) else PAIRED.token
    call = book.call(method, path, body, token=token)
    if call.answer is None and path.startswith("/phone/replies"):
        book.after(MAX_WAIT)
    elif call.answer is None:
        PAIRED.phone.reply(PAIRED.phone.command(), 200, {"ok": True, "value": [1]})
    return call.result


def get(path: str) -> Response:
    return asked(BOOK, "GET", path)


def test_document_has_exactly_the_routes_and_their_types() -> None:
    DOCUMENTED.expect_routes(BOOK.relay.router.routes)
    assert answer_differences(BOOK.relay.router.routes, API_DOC) == UNTYPED
    assert_shown(RELAY, DOCUMENTED.document)


@pytest.mark.parametrize("path", DOCUMENTED.gets())
def test_get_answers_match_the_document(path: str) -> None:
    PAIRED.phone.envelopes()
    assert DOCUMENTED.get_and_check(get, path, KNOWN).status in (200, 400, 404, 406)
    assert DOCUMENTED.get_and_check(get, path, {}).status in (200, 400, 404, 406)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_get_with_any_query_matches_the_document(data: st.DataObject) -> None:
    PAIRED.phone.envelopes()
    path, query = data.draw(queries(DOCUMENTED))
    assert DOCUMENTED.get_and_check(get, path, KNOWN, query).status < 500


@pytest.mark.parametrize(
    ("label", "path", "body", "status"),
    [
        ("POST /pairing", "/pairing", None, 200),
        ("POST /pairing/register", "/pairing/register", {"code": "ABC123", "endpoints": [], "own_key": True}, 200),
        ("POST /pairing/register", "/pairing/register", {"code": "A"}, 400),
        ("POST /pairing/approve", "/pairing/approve", {"code": "ABC124"}, 200),
        ("POST /pairing/mint", "/pairing/mint", {"host": "192.168.1.5", "dashboard_url": "http://x"}, 200),
        ("PATCH /relay/security", "/relay/security", {"allow_insecure_api_bearer": False}, 200),
        ("POST /bridge/select-active", "/bridge/select-active", {"device": "pixel-9"}, 200),
        ("POST /bridge/select-active", "/bridge/select-active", {"device": "absent"}, 404),
        ("PATCH /sessions/{token_prefix}", f"/sessions/{PAIRED.prefix}", {"ttl_seconds": 86_400}, 200),
        ("DELETE /sessions/{token_prefix}", "/sessions/unknown0", None, 404),
        ("POST /tap", "/tap", {"x": 1, "y": 2}, 200),
        ("POST /tap", "/tap", {}, 400),
        ("POST /media/upload", "/media/upload", {"content_type": "image/png", "content": PNG}, 200),
        ("POST /media/register", "/media/register", {"path": "x", "content_type": "image/png"}, 400),
        ("POST /clipboard/inbox", "/clipboard/inbox", {"format": "png", "bytes_base64": PNG}, 200),
        ("POST /mcp", "/mcp", {}, 415),
        ("PATCH /voice/output/config", "/voice/output/config", {"enabled": True}, 200),
        ("PATCH /voice/realtime-agent/config", "/voice/realtime-agent/config", {"promote_after_ms": 10}, 200),
        ("POST /voice/output/providers/{provider_id}/validate", "/voice/output/providers/stub/validate", {}, 200),
        ("POST /voice/output/session", "/voice/output/session", {"provider": "stub"}, 200),
        ("POST /voice/realtime/session", "/voice/realtime/session", {"provider": "stub"}, 200),
        ("POST /voice/realtime-agent/session", "/voice/realtime-agent/session", {"provider": "stub"}, 200),
        ("POST /voice/output/session", "/voice/output/session", {"provider": "absent"}, 400),
        ("POST /voice/synthesize", "/voice/synthesize", {}, 400),
    ],
)
def test_answers_to_changes_match_the_document(label: str, path: str, body: Any, status: int) -> None:
    PAIRED.phone.envelopes()
    answer = asked(BOOK, label.partition(" ")[0], path, body)
    assert answer.status == status, answer
    DOCUMENTED.check(label, answer)


def test_no_phone() -> None:
    book = VoiceRoutesHarness()
    for path in ("/bridge/status", "/bridge/devices", "/bridge/activity"):
        DOCUMENTED.check(f"GET {path}", book.request("GET", path))
    answer = book.request("GET", "/ping", token=book.pair(client_surface="desktop").token)
    assert answer.status == 503
    DOCUMENTED.check("GET /ping", answer)
