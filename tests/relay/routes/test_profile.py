"""The profile inspector of paired phones: requests forwarded to the host's API server, answers, errors and access."""

import pytest

from svc_proto.basics.audit_event import EVENT_NAMES
from svc_proto.facts import Failure, FailureKind
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import HOME, REMOTE, RelayHarness
from tests.relay.test_audit import recorded
from tests.support.http_codec import Response
from tests.support.http_harness import Reply, as_json

KEY = "the-api-key"
SOUL = "/api/profiles/default/soul"


def ask(
    reply: Reply, method: str = "GET", path: str = SOUL, body: dict[str, str] | None = None
) -> tuple[RelayHarness, Response]:
    """Send a request of a paired phone while the API server gives this reply; return the relay and its response."""
    book = RelayHarness(RelayConfig(home=HOME, config_path=f"{HOME}/config.yaml", api_key=KEY))
    book.http = lambda asked: reply
    return book, book.call(method, path, body, token=book.pair().token, peer=REMOTE).result


@pytest.mark.parametrize(
    ("path", "forwarded"),
    [
        (SOUL, SOUL),
        ("/api/profiles/a%2Fb/memory", "/api/profiles/a%2Fb/memory"),
        ("/context/injected", "/api/profiles/default/context"),
        (
            "/chat/image-activity?profile=my%20own&session_id=a%2Fb&since=17.5&x=y",
            "/api/sessions/a%2Fb/image-activity?profile=my%20own&since=17.5",
        ),
        ("/chat/image-activity?session_id=x", "/api/sessions/x/image-activity"),
    ],
)
def test_requests_are_forwarded_with_the_key_of_the_host(path: str, forwarded: str) -> None:
    book, answer = ask(as_json({"ok": True}), path=path)
    assert (answer.status, answer.json) == (200, {"ok": True})
    (asked,) = book.asked
    assert (asked.method, asked.path) == ("GET", forwarded)
    assert asked.headers.get(b"authorization") == f"Bearer {KEY}".encode()


def test_changes_are_recorded_and_need_the_right_manage(book: RelayHarness) -> None:
    book, answer = ask(as_json({"ok": True}), "PUT", SOUL, {"content": "Be kind."})
    assert answer.status == 200
    assert b"Be kind." in book.asked[0].body
    event = recorded(book)[-1]
    assert (event.event, event.principal[9:]) == ("profile changed", "Unknown device")
    assert dict(event.about) == {"path": SOUL}
    assert event.event in EVENT_NAMES
    token = book.pair(operator={"grants": {"terminal": False}}).token
    assert book.request("GET", SOUL, token=token, peer=REMOTE).status == 403


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (as_json({"error": "it is too long"}, 400), 400, "it is too long"),
        ((404, b""), 404, "the API server answered 404"),
        (as_json({"error": "wrong key"}, 401), 502, "wrong key"),
        (Failure(FailureKind.UNREACHABLE), 502, "the API server is unreachable"),
    ],
)
def test_an_api_server_that_refuses(reply: Reply, status: int, error: str) -> None:
    book, answer = ask(reply, "PUT", SOUL, {"content": "Be kind."})
    assert (answer.status, answer.json["error"], answer.json["ok"]) == (status, error, False)
    assert "profile changed" not in [event.event for event in recorded(book)]
