from tests.relay.harness import RelayHarness
from tests.relay.oauth_client import OAuthTestClient
from tests.support.openapi_validation import OpenApiValidator


def test_oauth_answers_match_the_document() -> None:
    book = RelayHarness()
    documented, app = OpenApiValidator.of(book.request("GET", "/openapi.json").body), OAuthTestClient(book)
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        documented.check(f"GET /.well-known/{path}", app.call("GET", f"/.well-known/{path}"))
    wish = {"client_name": "x", "redirect_uris": ["https://agent.example/back"]}
    documented.check("POST /oauth/register", app.call("POST", "/oauth/register", wish))
    documented.check("POST /oauth/register", app.call("POST", "/oauth/register", {}))
    documented.check("GET /oauth/authorize", app.request_authorization(client_id="none"))
    page = app.wait()
    documented.check("GET /oauth/wait/{ticket}", app.call("GET", page))
    word = app.word(page)
    documented.check("GET /mcp/questions/{code}", app.question(word))
    documented.check("GET /mcp/questions/{code}", app.question("ABSENT"))
    documented.check("POST /mcp/questions/{code}", app.answer(word))
    documented.check("POST /oauth/token", app.trade(app.back(page)["code"]))
    documented.check("POST /oauth/token", app.refresh())
    documented.check("POST /oauth/token", app.refresh("none.at all"))
    documented.check("GET /oauth/wait/{ticket}", app.call("GET", page))
    documented.check("POST /oauth/revoke", app.revoke(app.access))
