from base64 import urlsafe_b64encode
from contextlib import nullcontext
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.schema import oauth
from svc_proto.schema.json_object import JsonObject


def registered(*redirects: object, name: object = "Agent") -> oauth.OAuthClient:
    return oauth.parse_client(JsonObject(client_name=name, redirect_uris=list(redirects)))


@pytest.mark.parametrize(
    "redirect",
    [
        *("https://agent.example", "https://agent.example:8443/cb?a=b", "http://127.0.0.1/cb"),
        *("http://localhost:3000/", "http://[::1]:1/x", f"https://agent.example/{'a' * 233}"),
    ],
)
def test_permitted_redirect_uris(redirect: str) -> None:
    assert registered(redirect).allows_redirect(redirect)


@pytest.mark.parametrize(
    "redirect",
    [
        *("javascript:alert(1)", "data:text/html,x", "cursor://agent/cb", "http://agent.example/cb"),
        *("http://127.0.0.1.evil.example/cb", "http://localhost@evil.example/", "http://2130706433/"),
        *("https://user:word@agent.example/", "https://agent.example/#fragment"),
        *("https://agent.example/\r\nset-cookie: a", "https://agent.example/ x", 'https://agent.example/"onload="'),
        *("https://ag\u0435nt.example/", "https://agent.example\\@evil.example/", "https:///cb", "//agent.example/cb"),
        *("https://agent.example/?code=mine", "https://agent.example/?a=b&iss=other"),
        *(f"https://agent.example/{'a' * 234}", "", 7),
    ],
)
def test_forbidden_redirect_uris(redirect: object) -> None:
    with pytest.raises(Refused) as caught:
        registered("https://agent.example/", redirect)
    assert (caught.value.status, caught.value.code) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("redirects", [None, "https://a.example", [], ["https://a.example"] * 9])
def test_invalid_lists_of_redirect_uris(redirects: object) -> None:
    with pytest.raises(Refused) as caught:
        oauth.parse_client(JsonObject(redirect_uris=redirects))
    assert (caught.value.status, caught.value.code) == (400, "invalid_redirect_uri")


def test_registrations_of_editors() -> None:
    pages = ("https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect")
    own = ("http://localhost/", "http://127.0.0.1/", "http://localhost:33418/", "http://127.0.0.1:33418/")
    client = registered(*pages, *own, name="Visual Studio Code")
    assert oauth.decode_client_id(client.identity) == client
    assert all(client.allows_redirect(each) for each in (*pages, *own))


def test_loopback_redirects_may_have_any_port() -> None:
    client = registered("http://127.0.0.1:1/cb", "http://localhost/cb?x", "https://agent.example/cb")
    assert client.allows_redirect("http://127.0.0.1:2/cb")
    assert client.allows_redirect("http://127.0.0.1/cb")
    assert client.allows_redirect("http://localhost:9/cb?x")
    for other in ("http://127.0.0.1:1/cb/", "http://localhost/cb", "http://[::1]/cb", "https://agent.example:444/cb"):
        assert not client.allows_redirect(other)
    assert oauth.is_loopback("http://[::1]:5/")
    assert not oauth.is_loopback("https://127.0.0.1/")


@pytest.mark.parametrize("name", ["Agent", "", None, 7, "a\u202eb\nc", "x" * 100, f"{'x' * 79} y", "\U0001f916" * 90])
def test_an_id_is_the_registration(name: object) -> None:
    client = registered(*(f"https://a{n}.example/{'b' * 230}" for n in range(8)), name=name)
    assert oauth.decode_client_id(client.identity) == client
    assert len(client.identity) <= oauth.MAX_ID
    assert len(client.name) <= 80
    assert client.name.isprintable()
    assert (client.name == oauth.UNNAMED_CLIENT) == (name in ("", None, 7))


def encoded(text: bytes) -> str:
    return urlsafe_b64encode(text).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "identity",
    [
        *("", "a", "\u0430", "====", "a" * (oauth.MAX_ID + 1), encoded(b"{}"), encoded(b"[]"), encoded(b"7")),
        encoded(b'["Agent"]'),
        encoded(b'["Agent", "https://a.example"]'),  # another spelling of the same
        encoded(b'["Agent","javascript:alert(1)"]'),
        encoded(b'["a\\u202eb","https://a.example"]'),
    ],
)
def test_invalid_client_ids(identity: str) -> None:
    assert oauth.decode_client_id(identity) is None
    assert oauth.decode_client_id(encoded(b'["Agent","https://a.example"]')) is not None


def test_effective_scopes() -> None:
    client = registered("https://a.example")
    asked = {"response_type": "code", "code_challenge": "c" * 43, "code_challenge_method": "S256"}
    for scope, found in (("bridge bridge:read", "bridge"), ("openid bridge:read", "bridge:read"), ("", "bridge")):
        question = oauth.parse_authorization_request(
            {**asked, "scope": scope, "redirect_uri": "https://a.example"}, client, "r"
        )
        assert (question.scope, question.redirect_host, question.is_loopback_redirect) == (found, "a.example", False)
    with pytest.raises(Refused) as refused:
        oauth.parse_authorization_request({**asked, "resource": "https://other.example/mcp"}, client, "r")
    assert (refused.value.status, refused.value.code) == (400, "invalid_target")


def test_the_length_of_a_state_is_limited() -> None:
    client = registered("https://a.example")
    asked = {"response_type": "code", "code_challenge": "c" * 43, "code_challenge_method": "S256"}
    for length, taken in ((oauth.MAX_STATE, True), (oauth.MAX_STATE + 1, False)):
        state = "s" * length
        with nullcontext() if taken else pytest.raises(Refused) as refusal:
            assert oauth.parse_authorization_request({**asked, "state": state}, client, "r").state == state
        if refusal is not None:
            assert (refusal.value.status, refusal.value.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("wanted", "good"),
    [
        (None, True),
        ("https://home.example/mcp", True),
        ("https://home.example/mcp/", True),
        ("https://home.example/mcp//", False),
        ("https://home.example/", False),
        ("https://other.example/mcp", False),
    ],
)
def test_check_resource(wanted: str | None, good: bool) -> None:
    with nullcontext() if good else pytest.raises(Refused, match="its own /mcp alone"):
        oauth.check_resource(wanted, "https://home.example/mcp")


def test_a_verifier() -> None:
    # RFC 7636 appendix B
    verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert oauth.verifier_matches(verifier, challenge)
    assert not oauth.verifier_matches(verifier[:-1] + "l", challenge)
    assert not oauth.verifier_matches(challenge, challenge)
    assert not oauth.verifier_matches("short", challenge)
    assert not oauth.verifier_matches("short", urlsafe_b64encode(sha256(b"short").digest()).rstrip(b"=").decode())
    assert not oauth.verifier_matches("\u00e9" * 43, challenge)
    assert not oauth.verifier_matches("v" * 129, challenge)


def test_add_query_fields() -> None:
    assert (
        oauth.add_query_fields("https://a.example/?b=c", code="x&y", state=None) == "https://a.example/?b=c&code=x%26y"
    )
    assert oauth.add_query_fields("https://a.example", state="") == "https://a.example?"
    with pytest.raises(Refused) as refused:
        oauth.parse_form([("a", "1"), ("a", "1")])
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")


@given(st.text(max_size=200), st.text(st.characters(codec="utf-8"), max_size=100))
def test_client_ids_round_trip(identity: str, name: str) -> None:
    assert oauth.decode_client_id(identity) is None or identity == getattr(
        oauth.decode_client_id(identity), "identity", ""
    )
    client = registered("https://agent.example/", name=name)
    assert oauth.decode_client_id(client.identity) == client
