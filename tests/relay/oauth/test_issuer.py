"""The issuer URL of the relay, the `WWW-Authenticate` field of `/mcp` that links to its metadata, and the root path."""

from typing import Any

from svc_proto.relay_config import RelayConfig
from tests.mcp.http_harness import fields, message
from tests.relay.harness import LOCAL, REMOTE, RelayHarness
from tests.relay.oauth_client import FORM, PLACE, OAuthTestClient, wrong


def test_refusals_link_to_the_metadata_of_the_https_issuer(book: RelayHarness, app: OAuthTestClient) -> None:
    def told(**options: Any) -> bytes | None:
        return app.call("POST", "/mcp", message("ping"), headers=fields(), **options).headers.get(b"www-authenticate")

    metadata = b'resource_metadata="https://home.example/.well-known/oauth-protected-resource/mcp"'
    assert told() == b"Bearer " + metadata
    assert told(token="guessed") == b'Bearer error="invalid_token", ' + metadata
    poor = book.pair(operator={"grants": {"bridge": False}})
    assert told(token=poor.token) == b'Bearer error="insufficient_scope", scope="bridge", ' + metadata
    assert told(tls=False) == b"Bearer"  # plain HTTP has no issuer
    for method, path in (("GET", "/.well-known/oauth-authorization-server"), ("POST", "/oauth/register")):
        assert app.call(method, path, tls=False).status == 400
    wrong(app.call("POST", "/oauth/token", b"a=b", headers=FORM, tls=False), "invalid_request")
    assert b"HTTPS is needed" in app.call("GET", "/oauth/authorize", tls=False).body
    page = app.wait()
    assert app.call("GET", page, tls=False).status == 404


def test_issuers_behind_a_proxy_with_a_path() -> None:
    book = RelayHarness(RelayConfig(root_path="/relay", trusted_proxies=("127.0.0.1",)))
    app = OAuthTestClient.__new__(OAuthTestClient)
    app.book = book
    proxied = {"peer": LOCAL, "tls": False, "headers": ((b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"::2"))}
    found = app.call("GET", "/relay/.well-known/oauth-protected-resource/mcp", **proxied).json
    assert found["resource"] == f"{PLACE}/relay/mcp"
    here = book.request("GET", "/.well-known/oauth-protected-resource/mcp").json
    assert here["resource"] == "http://127.0.0.1:8767/mcp"
    wrong(app.call("POST", "/relay/oauth/token", b"", **proxied), "invalid_request")
    book = RelayHarness(RelayConfig(root_path="/far/relay"))
    token = book.pair().token
    for path in ("/health", "/sessions", "/relay/security", "/bridge/devices", "/metrics", "/media/none", "/none"):
        for options in ({"peer": LOCAL}, {"peer": REMOTE}, {"peer": REMOTE, "token": token}):
            under, plain = (book.request("GET", prefix + path, **options) for prefix in ("/far/relay", ""))
            assert (under.status, under.json.keys() if under.status >= 400 else ()) == (
                plain.status,
                plain.json.keys() if plain.status >= 400 else (),
            )
    assert book.request("GET", "/far/relayhealth").status == 404
