"""OAuth client on another host, its browser, and the owner of the phones; each step of the flow is a method."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.mcp.http_harness import McpHttpSession, fields
from tests.relay.harness import REMOTE, RelayHarness
from tests.support.http_codec import Response
from tests.support.http_harness import Fields

HOST = b"home.example"
PLACE = "https://home.example"
FORM = ((b"content-type", b"application/x-www-form-urlencoded"),)
REDIRECT = "https://agent.example/back"


class OAuthTestClient:
    """OAuth client with browser and owner; client and browser use TLS from another host."""

    def __init__(self, book: RelayHarness, name: str = "Claude Code", redirect: str = REDIRECT) -> None:
        self.book = book
        self.redirect = redirect
        self.verifier = "v" * 43
        wish = {"client_name": name, "redirect_uris": [redirect]}
        self.client = str(self.call("POST", "/oauth/register", wish).json["client_id"])
        self.tokens: dict[str, Any] = {}
        self.headers: Fields = ()  # of the browser

    @property
    def access(self) -> str:
        return str(self.tokens["access_token"])

    @property
    def refresh_token(self) -> str:
        return str(self.tokens["refresh_token"])

    def call(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        return self.book.request(method, path, body, **{"peer": REMOTE, "tls": True, "host": HOST, **options})

    def post(self, path: str, fields: Mapping[str, str | None]) -> Response:
        body = urlencode({name: value for name, value in fields.items() if value is not None})
        return self.call("POST", path, body.encode(), headers=FORM)

    # --- the browser ---

    def request_authorization(self, **fields: str | None) -> Response:
        """Send an authorization request and return the response; a field of None is omitted."""
        digest = sha256(self.verifier.encode()).digest()
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client,
            "redirect_uri": self.redirect,
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": "st&te",
            "resource": f"{PLACE}/mcp",
            **fields,
        }
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return self.call("GET", f"/oauth/authorize?{query}", headers=self.headers)

    def wait(self, **fields: str | None) -> str:
        """Request authorization and return the path of the waiting page."""
        answer = self.request_authorization(**fields)
        assert answer.status == 303, answer
        return f"/oauth/{_location(answer)}"

    def word(self, page: str) -> str:
        """Return the six characters on the waiting page by which the owner finds the consent request."""
        found = re.search(r'class="word">([A-Z0-9]{6})<', self.call("GET", page).body.decode())
        assert found is not None
        return found[1]

    def back(self, page: str) -> dict[str, str]:
        """Return the query fields of the redirect to the client."""
        answer = self.call("GET", page)
        assert answer.status == 303, answer
        place = urlsplit(_location(answer))
        assert f"{place.scheme}://{place.netloc}{place.path}" == self.redirect
        return {name: values[0] for name, values in parse_qs(place.query, strict_parsing=True).items()}

    # --- the owner, on the relay's host ---

    def question(self, word: str) -> Response:
        return self.book.request("GET", f"/mcp/questions/{word}")

    def answer(self, word: str, **said: object) -> Response:
        body = {"ballot": self.question(word).json["ballot"], "allow": True, **said}
        return self.book.request("POST", f"/mcp/questions/{word}", body)

    def code(self, allow: Mapping[str, object] | None = None, **fields: str | None) -> str:
        """Request authorization, let the owner allow it, and return the authorization code."""
        page = self.wait(**fields)
        assert self.answer(self.word(page), **(allow or {})).status == 200
        return self.back(page)["code"]

    # --- tokens ---

    def trade(self, code: str, **fields: str | None) -> Response:
        shown = {"code": code, "redirect_uri": self.redirect, "client_id": self.client, "code_verifier": self.verifier}
        answer = self.post("/oauth/token", {"grant_type": "authorization_code", **shown, **fields})
        return self._took(answer)

    def authorize(self, **allow: object) -> OAuthTestClient:
        """Request authorization, let the owner allow it, and exchange the code for tokens; return this client."""
        assert self.trade(self.code(allow)).status == 200
        return self

    def refresh(self, token: str | None = None, **fields: str | None) -> Response:
        shown = {"refresh_token": token or self.refresh_token, "client_id": self.client}
        return self._took(self.post("/oauth/token", {"grant_type": "refresh_token", **shown, **fields}))

    def revoke(self, token: str) -> Response:
        return self.post("/oauth/revoke", {"token": token})

    def _took(self, answer: Response) -> Response:
        if answer.status == 200:
            self.tokens = answer.json
            self.book.secrets |= {self.access, self.refresh_token}
        return answer

    # --- requests with the tokens ---

    def mcp(self, body: object, *, token: str | None = None) -> Response:
        return self.call("POST", "/mcp", body, token=token or self.access, headers=fields())

    def open(self) -> McpHttpSession:
        """Open an MCP session with the access token."""
        return McpHttpSession(self.book, token=self.access, peer=REMOTE, tls=True, host=HOST)


def oauth_relay() -> tuple[RelayHarness, OAuthTestClient]:
    """Return a new relay and an OAuth client of it."""
    book = RelayHarness()
    return book, OAuthTestClient(book)


def _location(answer: Response) -> str:
    return (answer.headers.get(b"location") or b"").decode()


def wrong(answer: Response, code: str, status: int = 400) -> None:
    """Require an error response in the form of RFC 6749 section 5.2, with this code and status."""
    assert (answer.status, answer.json["error"]) == (status, code), answer
    assert (answer.json["ok"], answer.json["code"]) == (False, code)
    assert not set(answer.json["error_description"]) & set('"\\')
