"""OAuth responses for a client, its browser and the owner match the relay's document."""

from __future__ import annotations

from tests.relay.harness import RelayHarness
from tests.relay.oauth_client import OAuthTestClient
from tests.support.openapi_validation import OpenApiValidator


def test_oauth_answers_match_the_document() -> None:
    book = RelayHarness()
    documented, guest = OpenApiValidator.of(book.request("GET", "/openapi.json").body), OAuthTestClient(book)
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        documented.check(f"GET /.well-known/{path}", guest.call("GET", f"/.well-known/{path}"))
    wish = {"client_name": "x", "redirect_uris": ["https://agent.example/back"]}
    documented.check("POST /oauth/register", guest.call("POST", "/oauth/register", wish))
    documented.check("POST /oauth/register", guest.call("POST", "/oauth/register", {}))
    documented.check("GET /oauth/authorize", guest.request_authorization(client_id="none"))
    page = guest.wait()
    documented.check("GET /oauth/wait/{ticket}", guest.call("GET", page))
    word = guest.word(page)
    documented.check("GET /mcp/questions/{code}", guest.question(word))
    documented.check("GET /mcp/questions/{code}", guest.question("NOBODY"))
    documented.check("POST /mcp/questions/{code}", guest.answer(word))
    documented.check("POST /oauth/token", guest.trade(guest.back(page)["code"]))
    documented.check("POST /oauth/token", guest.refresh())
    documented.check("POST /oauth/token", guest.refresh("none.at all"))
    documented.check("GET /oauth/wait/{ticket}", guest.call("GET", page))
    documented.check("POST /oauth/revoke", guest.revoke(guest.access))
