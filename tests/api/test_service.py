from svc_proto.api.access import ApiAccess
from svc_proto.api.chat.store_requests import CreateChat, ListChats
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import BODY_LIMIT
from tests.api.harness import KEY, PEER, ApiHarness

SECRETS = ApiConfig(key=KEY, model_api_key="sk-model-1", relay_token="relay-token-1", model_base_url="http://h:1/v1")


def test_the_start() -> None:
    book = ApiHarness(SECRETS, started=False)
    assert not book.ready
    book = ApiHarness(SECRETS)
    assert book.events() == ["ready"]
    assert book.logs[0].fields == {"service": "api", "port": 8642, "key": True}
    assert book.api.started == book.now
    assert not book.leaks()
    for secret in book.secrets:
        assert secret not in repr(book.config)


def test_silent_store_gives_503() -> None:
    book = ApiHarness()
    book.hold = (ListChats,)
    call = book.call("GET", "/api/sessions")
    book.after(29.0)
    assert call.answer is None
    book.after(1.0)
    assert call.result.status == 503
    assert call.result.json["error"]["code"] == "session_db_unavailable"
    assert book.logs[-2].fields == {"request": "ListChats", "problem": "timed_out", "why": "no answer in time"}


def test_the_stop() -> None:
    """Close idle connections within half a second, and answer a request in progress before the exit."""
    book = ApiHarness()
    book.hold = (CreateChat,)
    call = book.call("POST", "/api/sessions", {})
    idle = book.connect_http1(book.caller, PEER)
    book.stop()
    book.after(0.5)  # for a request that is on its way
    assert idle.gone
    assert not book.exits
    book.hold = ()
    book.release()
    assert call.result.status == 201
    assert call.result.headers.get(b"connection") == b"close"
    book.after(5.0)
    assert [each.code for each in book.exits] == [0]


def test_read_only_routes_accept_no_body() -> None:
    """GET, HEAD and public routes accept no body; all others accept none, or up to `BODY_LIMIT` bytes."""
    routes = ApiHarness().api.router.routes
    assert {route.body_limit for route in routes if route.method in ("GET", "HEAD")} == {0}
    assert {route.body_limit for route in routes if route.access is ApiAccess.PUBLIC} == {0}
    assert {route.body_limit for route in routes} == {0, BODY_LIMIT}
