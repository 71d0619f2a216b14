"""OAuth at the relay: the flow from registration to revoked tokens, and attacks on it."""

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from svc_proto.basics.audit_event import OPERATOR
from svc_proto.commands import Level
from svc_proto.engine.router import BODY_LIMIT
from svc_proto.machines.oauth_tokens import REFRESH_GRACE
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import DeleteSession, SaveSession
from tests.mcp.http_harness import fields, message
from tests.relay.harness import REMOTE, RelayHarness
from tests.relay.oauth_client import FORM, HOST, PLACE, OAuthTestClient, oauth_relay, wrong
from tests.relay.test_audit import recorded

PING = message("ping")
LOOPBACK = "http://127.0.0.1:4000/cb"


def test_whole_oauth_flow_without_a_secret_in_the_log(book: RelayHarness, app: OAuthTestClient) -> None:
    page = app.wait()
    shown = app.call("GET", page)
    assert (shown.status, shown.headers.get(b"refresh")) == (200, b"2")
    word = app.word(page)
    asked = app.question(word.lower()).json
    assert (asked["client_name"], asked["answer_goes_to"]) == ("Claude Code", "agent.example")
    assert (asked["scope"], asked["address"], asked["expires_in"]) == ("bridge", REMOTE.host, 600)
    assert asked["answer_stays_there"] is False
    assert app.answer(word).json == {"ok": True, "allowed": True, "client_name": "Claude Code"}
    assert app.call("HEAD", page).status == 200  # a HEAD request does not use the page up
    back = app.back(page)
    book.secrets.add(back["code"])
    assert (back["state"], back["iss"]) == ("st&te", PLACE)
    assert app.call("GET", page).status == 404  # the page redirects once
    answer = app.trade(back["code"], resource=f"{PLACE}/mcp/")
    assert answer.headers.get(b"cache-control") == b"no-store"
    told = (app.tokens["token_type"], app.tokens["expires_in"], app.tokens["scope"])
    assert told == ("Bearer", 3600, "bridge")
    (allowed,) = [each for each in recorded(book) if each.event == "agent allowed"]
    assert (allowed.principal, allowed.about["scope"]) == (OPERATOR, "bridge")
    assert app.open().post(PING).status == 200
    app.refresh()
    assert app.mcp(PING).status == 400
    said = str(list(book.logs))
    assert [secret for secret in book.secrets if secret in said] == []


def test_refused_and_read_only_requests(app: OAuthTestClient) -> None:
    page = app.wait()
    assert app.answer(app.word(page), allow=False).json["allowed"] is False
    assert app.back(page) == {"error": "access_denied", "state": "st&te", "iss": PLACE}
    assert app.call("GET", page).status == 404
    word = app.word(app.wait(scope="bridge:read openid"))
    assert app.question(word).json["scope"] == "bridge:read"
    assert app.answer(word, scope="bridge").status == 400
    assert app.answer(word, scope="tui").status == 400


def test_access_tokens_last_an_hour_and_sessions_survive_a_restart(book: RelayHarness, app: OAuthTestClient) -> None:
    app.authorize()
    first = app.access
    book.after(3599)
    app.open()
    book.after(1)
    assert app.mcp(PING).status == 401
    assert app.refresh(scope="bridge:read").json["scope"] == "bridge"
    assert app.access != first
    app.open()
    second = app.access
    assert app.refresh().status == 200
    book.after(REFRESH_GRACE)
    assert app.mcp(PING, token=second).status == 401  # after the grace only one access token is valid
    book, app = oauth_relay()
    app.authorize(ttl_seconds=7200)
    (listed,) = book.sessions()
    assert (listed["device_name"], listed["client_surface"]) == ("MCP: Claude Code", "mcp")
    assert listed["grants"] == {"bridge": listed["expires_at"]}
    kept = json.dumps(list(book.store.values()))
    assert not [secret for secret in (app.access, *app.refresh_token.split(".")) if secret in kept]
    app.book = RelayHarness(records=book.store.values())
    assert app.open().post(PING).status == 200
    assert app.refresh().status == 200


def test_sessions_of_agents_end_with_the_chosen_time(book: RelayHarness, app: OAuthTestClient) -> None:
    app.authorize(ttl_seconds=60)
    assert app.tokens["expires_in"] == 60
    book.after(60)
    assert book.sessions() == []
    assert app.mcp(PING).status == 401
    wrong(app.refresh(), "invalid_grant")
    app = OAuthTestClient(RelayHarness())
    app.authorize(ttl_seconds=0)
    assert app.tokens["expires_in"] == 3600
    book = RelayHarness(RelayConfig(max_session_ttl=100.0))
    OAuthTestClient(book).authorize(ttl_seconds=0)
    (listed,) = book.sessions()
    assert listed["expires_at"] - listed["created_at"] == 100


def test_read_only_scope_permits_reading_only(book: RelayHarness, app: OAuthTestClient) -> None:
    phone = book.pair(device_name="Pixel").phone
    session = app.authorize(scope="bridge:read").open()
    assert app.tokens["scope"] == "bridge:read"
    assert [set(row["grants"]) for row in book.sessions() if row["client_surface"] == "mcp"] == [{"bridge:read"}]

    listed = session.request("tools/list")["tools"]
    assert {row["annotations"]["readOnlyHint"] for row in listed} == {True}
    assert "phone_screen" in {row["name"] for row in listed}
    refused = session.tool("phone_tap_text", text="Pay").result.json["result"]
    assert refused["isError"] is True
    assert "scope bridge:read" in refused["content"][0]["text"]
    looking = session.tool("phone_screen")
    command = phone.command()
    assert command["path"] == "/screen"
    phone.reply(command, 200, {"nodes": []})
    assert looking.result.json["result"]["isError"] is False
    assert app.refresh(scope="bridge:read").json["scope"] == "bridge:read"
    wrong(app.refresh(scope="bridge"), "invalid_scope")


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_revoked_tokens_end_the_session(book: RelayHarness, app: OAuthTestClient, which: str) -> None:
    session = app.authorize().open()
    assert app.revoke(app.tokens[which]).status == 200
    assert session.post(PING).status == 401
    assert (book.sessions(), book.store, len(book.relay.mcp.sessions)) == ([], {}, 0)
    wrong(app.refresh(), "invalid_grant")
    assert app.revoke("unknown").status == 200


def test_revocations_end_calls_and_hold_without_the_store(book: RelayHarness, app: OAuthTestClient) -> None:
    phone = book.pair(device_name="Pixel").phone
    session = app.authorize().open()
    call = session.tool("phone_ping")
    prefix = next(row["token_prefix"] for row in book.sessions() if row["client_surface"] == "mcp")
    assert book.request("DELETE", f"/sessions/{prefix}").status == 200
    assert call.result.status == 401
    assert session.post(PING).status == 401
    assert phone.command()["path"] == "/ping"
    assert session.tool("phone_ping").result.status == 401
    assert phone.envelopes() == []
    book, app = oauth_relay()
    app.authorize()
    book.refuse = (DeleteSession,)
    wrong(app.revoke(app.access), "temporarily_unavailable", 503)
    assert app.mcp(PING).status == 401


def test_reused_codes_revoke_the_session(book: RelayHarness, app: OAuthTestClient) -> None:
    code = app.code()
    assert app.trade(code).status == 200
    wrong(app.trade(code), "invalid_grant")
    assert book.sessions() == []
    assert app.mcp(PING).status == 401
    assert any("shown twice" in event for event in book.events(Level.WARNING))
    book, app = oauth_relay()
    fields = {"grant_type": "authorization_code", "code": app.code(), "code_verifier": app.verifier}
    body = urlencode({**fields, "redirect_uri": app.redirect, "client_id": app.client}).encode()
    book.hold = (SaveSession,)
    calls = [book.call("POST", "/oauth/token", body, headers=FORM, peer=REMOTE, tls=True, host=HOST) for _ in range(2)]
    book.hold = ()
    book.release()
    wrong(calls[1].result, "invalid_grant")
    assert book.sessions() == []


@pytest.mark.parametrize(
    "field",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": None},
        {"client_id": "other"},
        {"redirect_uri": "https://agent.example/other"},
    ],
)
def test_failed_trades_consume_the_code(book: RelayHarness, app: OAuthTestClient, field: dict[str, str | None]) -> None:
    code = app.code()
    wrong(app.trade(code, **field), "invalid_grant")
    wrong(app.trade(code), "invalid_grant")
    assert book.sessions() == []


def test_codes_are_bound_to_their_client_and_expire(app: OAuthTestClient, book: RelayHarness) -> None:
    assert app.trade(app.code(), redirect_uri=None).status == 200  # optional in OAuth 2.1
    book, app = oauth_relay()
    other = OAuthTestClient(book, "Evil")
    other.verifier = app.verifier
    wrong(other.trade(app.code()), "invalid_grant")
    code = app.code()
    book.after(60)
    wrong(app.trade(code), "invalid_grant")
    assert len(book.relay.oauth.consents) == 0


@pytest.mark.parametrize("who", ["itself", "another client"])
def test_reused_refresh_token_revokes_the_session(book: RelayHarness, app: OAuthTestClient, who: str) -> None:
    app.authorize()
    old = app.refresh_token
    assert app.refresh().status == 200
    book.after(REFRESH_GRACE)
    wrong(app.refresh(old, **({} if who == "itself" else {"client_id": "thief"})), "invalid_grant")
    assert app.mcp(PING).status == 401
    wrong(app.refresh(), "invalid_grant")
    assert book.sessions() == []


def test_programs_that_share_a_refresh_token_stay_signed_in(book: RelayHarness, app: OAuthTestClient) -> None:
    app.authorize()
    shared, oldest = app.refresh_token, app.access
    programs = []
    for seconds in (0.0, 30.0, REFRESH_GRACE - 30.1):
        book.after(seconds)
        assert app.refresh(shared).status == 200
        programs.append((app.access, app.refresh_token))
    wrong(app.refresh(shared, client_id="thief"), "invalid_grant")
    for access in (oldest, *(access for access, _ in programs)):
        assert app.mcp(PING, token=access).status == 400  # the token is accepted, and the session id is missing
    book.after(0.1)
    assert app.mcp(PING, token=oldest).status == 401
    for _, refresh in programs:  # each has a chain of its own
        assert app.refresh(refresh).status == 200
        app.open()
    wrong(app.refresh(shared), "invalid_grant")
    assert book.sessions() == []


def test_refresh_is_bound_to_the_client_and_its_stored_session(app: OAuthTestClient, book: RelayHarness) -> None:
    app.authorize()
    wrong(app.refresh(client_id="other"), "invalid_grant")
    assert app.refresh().status == 200
    book.store.clear()
    wrong(app.refresh(), "invalid_grant")
    assert not book.store
    assert app.mcp(PING).status == 401
    book, app = oauth_relay()
    book.refuse = (SaveSession,)
    app.authorize()
    book.refuse = ()
    assert app.refresh().status == 200  # the session was never stored, so it was not revoked elsewhere
    assert len(book.store) == 1


def test_access_token_opens_only_mcp(book: RelayHarness, app: OAuthTestClient) -> None:
    app.authorize()
    family = app.refresh_token.partition(".")[0]
    for token in (app.access, family, app.refresh_token):
        for method, path in (("GET", "/screen"), ("GET", "/sessions"), ("POST", "/clipboard/inbox")):
            assert app.call(method, path, token=token).status == 401
        phone = book.websocket()
        assert phone.auth(session_token=token)["type"] == "auth.fail"
    assert app.mcp(PING, token=family).status == 401
    assert app.mcp(PING, token=app.refresh_token).status == 401
    in_query = app.call("POST", f"/mcp?access_token={app.access}", PING, headers=fields())
    assert in_query.status == 401  # MCP: "Access tokens MUST NOT be included in the URI query string"


@pytest.mark.parametrize("resource", ["https://other.example/mcp", f"{PLACE}/", "", "x"])
def test_foreign_resource_is_refused(app: OAuthTestClient, resource: str) -> None:
    assert app.request_authorization(resource=resource).status == 400
    wrong(app.trade(app.code(), resource=resource), "invalid_target")
    assert app.trade(app.code(resource=None)).status == 200


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"scope": "terminal"}, "invalid_scope"),
        ({"resource": "https://other.example/"}, "invalid_target"),
    ],
)
def test_request_errors_redirect_to_loopback_only(
    book: RelayHarness, app: OAuthTestClient, fields: dict[str, str | None], error: str
) -> None:
    assert app.request_authorization(**fields).status == 400  # no open redirect: any client may register any address
    here = OAuthTestClient(book, redirect=LOOPBACK).request_authorization(**fields)
    place = urlsplit((here.headers.get(b"location") or b"").decode())
    told = {name: values[0] for name, values in parse_qs(place.query).items()}
    assert (here.status, place.netloc, told["error"]) == (303, "127.0.0.1:4000", error)
    assert (told["state"], told["iss"]) == ("st&te", PLACE)


@pytest.mark.parametrize(
    "fields",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/back"},
        {"redirect_uri": "https://agent.example/back/more"},
        {"redirect_uri": None},
        {"state": "s" * 513},
    ],
)
def test_unregistered_redirect_is_not_followed(app: OAuthTestClient, fields: dict[str, str | None]) -> None:
    answer = app.request_authorization(**fields)
    assert (answer.status, answer.headers.get(b"location")) == (400, None)
    assert b"evil" not in answer.body


@pytest.mark.parametrize(("dest", "status"), [(b"image", 400), (b"iframe", 400), (b"empty", 400), (b"document", 303)])
def test_authorization_is_a_navigation(book: RelayHarness, app: OAuthTestClient, dest: bytes, status: int) -> None:
    app.headers = ((b"sec-fetch-dest", dest),)
    assert app.request_authorization().status == status
    assert len(book.relay.oauth.consents) == (status == 303)


def test_bad_requests_at_the_oauth_routes(app: OAuthTestClient, book: RelayHarness) -> None:
    twice = urlencode({"client_id": app.client}) + "&client_id=other"
    assert app.call("GET", f"/oauth/authorize?{twice}").status == 400
    wrong(app.call("POST", "/oauth/token", b"code=1&code=2", headers=FORM), "invalid_request")
    kind = [(b"content-type", b"Application/X-WWW-Form-URLEncoded; charset=UTF-8")]
    answer = app.call("POST", "/oauth/token", b"grant_type=other", headers=kind)
    assert answer.json["error"] == "unsupported_grant_type"
    wrong(app.call("POST", "/oauth/token", {"grant_type": "x"}), "invalid_request")
    wrong(app.call("POST", "/oauth/revoke", b"{}"), "invalid_request")
    wrong(app.call("POST", "/oauth/register", b"no JSON"), "invalid_client_metadata")
    wrong(app.call("POST", "/oauth/register", {}), "invalid_redirect_uri")
    wrong(app.call("POST", "/oauth/register", b" " * (BODY_LIMIT // 64)), "body_too_large", 413)
    wrong(app.call("GET", "/oauth/token"), "method_not_allowed", 405)
    wish = {"client_name": "flood", "redirect_uris": ["https://a.example/"]}
    names = {app.call("POST", "/oauth/register", {**wish, "software_id": str(n)}).json["client_id"] for n in range(9)}
    assert len(names) == 1
    assert (len(book.relay.oauth.consents), book.sessions()) == (0, [])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"a=b", "invalid_request"),
        (b"grant_type=password&username=a&password=b", "unsupported_grant_type"),
        (b"grant_type=authorization_code", "invalid_grant"),
        (b"grant_type=refresh_token", "invalid_grant"),
        (b"grant_type=refresh_token&refresh_token=.", "invalid_grant"),
        (b"\xff\xfe", "invalid_request"),
    ],
)
def test_bad_input_at_the_token_endpoint(app: OAuthTestClient, body: bytes, error: str) -> None:
    wrong(app.call("POST", "/oauth/token", body, headers=FORM), error)


def test_consent_requests_are_limited_per_address_and_logged_when_full(
    book: RelayHarness, app: OAuthTestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [app.wait() for _ in range(8)]
    assert app.request_authorization().status == 429
    assert app.call("GET", pages[0]).status == 200
    book.after(600)
    assert len(book.relay.oauth.consents) == 0
    assert app.call("GET", pages[0]).status == 404
    app.wait()
    book, app = oauth_relay()
    monkeypatch.setattr("svc_proto.machines.oauth_consent.MAX_CONSENTS", 1)
    for _ in range(3):
        app.wait()
    assert book.events(Level.WARNING) == ["too many sign-ins of agents wait for an answer"]


def test_only_the_owner_answers(book: RelayHarness, app: OAuthTestClient) -> None:
    word = app.word(app.wait())
    for method in ("GET", "POST"):
        assert app.call(method, f"/mcp/questions/{word}", {"allow": True}).status == 403
        assert app.call(method, f"/mcp/questions/{word}", {"allow": True}, token=book.pair().token).status == 403
        page = ((b"origin", b"https://evil.example"),)
        assert book.request(method, f"/mcp/questions/{word}", {"allow": True}, headers=page).status == 403
    assert book.request("GET", "/mcp/questions/QQQQQQ").status == 404
    assert app.answer(word, ballot="wrong").json["code"] == "wrong_ballot"
    assert app.answer(word, allow="yes").status == 400
    assert app.answer(word).status == 200
    assert app.question(word).status == 404  # a consent request is answered once
