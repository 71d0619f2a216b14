"""OAuth messages: client registration, authorization request, and the metadata of this server.

A client's registration is its id (decision 152): the name and the redirect URIs, as base64url. An id proves no more
than a registration, so each one is read as strictly, and nothing is stored for clients. Errors have the codes of RFC
6749, RFC 7591 and RFC 8707, with texts without quotes and backslashes (RFC 6749 section 5.2).
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema.oauth_types import ClientMetadataJson, ResourceMetadataJson, Scope, ServerMetadataJson

__all__ = [
    "SCOPE_ACT",
    "SCOPE_READ",
    "SCOPES",
    "OAuthClient",
    "AuthorizationRequest",
    "check_resource",
    "client_metadata",
    "parse_form",
    "is_loopback",
    "parse_client",
    "parse_authorization_request",
    "verifier_matches",
    "decode_client_id",
    "resource_metadata",
    "server_metadata",
    "add_query_fields",
]

SCOPE_ACT: Final = "bridge"  # act on the phone, which includes reading
SCOPE_READ: Final = "bridge:read"  # read only: the tools that are marked read-only
SCOPES: Final[tuple[Scope, ...]] = (SCOPE_ACT, SCOPE_READ)
MAX_NAME = 80  # characters of a client's name: the rest is cut
MAX_REDIRECTS = 8  # of one client: VS Code registers six
MAX_REDIRECT = 255  # characters of each
MAX_ID = 3_300  # characters: more than the largest registration has
MAX_STATE = 512  # characters
UNNAMED_CLIENT = "an agent that gives no name"
# Parameters that a response adds to a redirect URI.
RESPONSE_PARAMETERS = ("code", "state", "iss", "error", "error_description")
_REST = r"(?:[/?][A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*)?"
_LOOPBACK = re.compile(rf"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{{1,5}})?({_REST})")
_HTTPS = re.compile(rf"https://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{{1,5}})?{_REST}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # a SHA-256 as base64url, RFC 7636 section 4.2
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")  # RFC 7636 section 4.1


@fast_frozen
class OAuthClient:
    """A client: a name, which is unverified, and its redirect URIs."""

    name: str
    redirects: tuple[str, ...]

    @property
    def identity(self) -> str:
        """The `client_id`: the name and the redirect URIs as base64url."""
        text = strict_json.dumps_bytes([self.name, *self.redirects])
        return urlsafe_b64encode(text).rstrip(b"=").decode("ascii")

    def allows_redirect(self, redirect: str) -> bool:
        """Report whether a redirect URI is registered; on loopback any port is accepted (RFC 8252 section 7.3)."""
        if redirect in self.redirects:
            return True
        found = _LOOPBACK.fullmatch(redirect)
        return found is not None and found.groups() in (
            known.groups() for known in map(_LOOPBACK.fullmatch, self.redirects) if known is not None
        )


@fast_frozen(kw_only=True)
class AuthorizationRequest:
    """A client's request for the owner's consent."""

    client: OAuthClient
    redirect: str
    scope: Scope
    challenge: str  # of PKCE, S256
    state: str | None

    @property
    def redirect_host(self) -> str:
        """Host that receives the response, for people."""
        return urlsplit(self.redirect).netloc

    @property
    def is_loopback_redirect(self) -> bool:
        """Report whether the response goes to a program on the computer of the browser."""
        return is_loopback(self.redirect)


# --- registration (RFC 7591) ---


def parse_client(members: JsonObject) -> OAuthClient:
    """Parse a registration. Raise `Refused` 400 if the redirect URIs are invalid."""
    redirects = members.get("redirect_uris")
    if not isinstance(redirects, list) or not 1 <= len(redirects) <= MAX_REDIRECTS:
        raise Refused(400, "invalid_redirect_uri", f"redirect_uris must be a list of 1 to {MAX_REDIRECTS}")
    for redirect in redirects:
        if not isinstance(redirect, str) or not _is_redirect(redirect):
            text = "a redirect URI is https, or http on the loopback of the client, without a fragment"
            raise Refused(400, "invalid_redirect_uri", f"{text}, of at most {MAX_REDIRECT} characters")
    return OAuthClient(sanitize_line(members.text("client_name"), MAX_NAME).strip() or UNNAMED_CLIENT, tuple(redirects))


def decode_client_id(identity: str) -> OAuthClient | None:
    """Return the client whose registration this id is; None for an id that no registration can have."""
    if len(identity) > MAX_ID:
        return None
    try:
        found = strict_json.loads(urlsafe_b64decode(identity + "=" * (-len(identity) % 4)))
        if not isinstance(found, list):
            return None
        client = parse_client(JsonObject(client_name=found[0] if found else None, redirect_uris=found[1:]))
    except (ValueError, Refused):  # the former of JSON, too
        return None
    return client if client.identity == identity else None


def client_metadata(client: OAuthClient) -> ClientMetadataJson:
    """Return the response to a registration: always a public client."""
    return {
        "client_id": client.identity,
        "client_name": client.name,
        "redirect_uris": list(client.redirects),
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }


# --- a request for authorisation (RFC 6749 section 4.1.1, RFC 7636, RFC 8707) ---


def parse_authorization_request(query: Mapping[str, str], client: OAuthClient, resource: str) -> AuthorizationRequest:
    """Parse the authorization request of a client. Raise `Refused` 400 with the reason.

    The redirect URI is not checked here. Without a scope, `SCOPE_ACT` is requested.
    """
    if query.get("response_type") != "code":
        raise Refused(400, "unsupported_response_type", "response_type must be code")
    challenge = query.get("code_challenge", "")
    if query.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        raise Refused(400, "invalid_request", "a code_challenge with code_challenge_method S256 is needed")
    check_resource(query.get("resource"), resource)
    asked = query.get("scope", "").split()
    known = [scope for scope in SCOPES if scope in asked]
    if asked and not known:
        raise Refused(400, "invalid_scope", f"scope must be one of {' '.join(SCOPES)}")
    state = query.get("state")
    if state is not None and len(state) > MAX_STATE:
        raise Refused(400, "invalid_request", f"state must have at most {MAX_STATE} characters")
    return AuthorizationRequest(
        client=client,
        redirect=query.get("redirect_uri", ""),
        scope=known[0] if known else SCOPE_ACT,
        challenge=challenge,
        state=state,
    )


def check_resource(wanted: str | None, resource: str) -> None:
    """Raise `Refused` 400 if `wanted` is another resource (RFC 8707 section 2); None and a final slash are accepted."""
    if wanted is not None and wanted.removesuffix("/") != resource:
        raise Refused(400, "invalid_target", "tokens of this server are for its own /mcp alone")


def verifier_matches(verifier: str, challenge: str) -> bool:
    """Report whether a verifier matches a challenge, S256."""
    if not _VERIFIER.fullmatch(verifier):
        return False
    digest = sha256(verifier.encode("ascii")).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode("ascii") == challenge


def parse_form(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by name. Raises `Refused` 400 if a name occurs twice (RFC 6749 section 3.1)."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise Refused(400, "invalid_request", "a parameter is there twice")
    return dict(pairs)


def is_loopback(redirect: str) -> bool:
    """Report whether a redirect URI leads only to the browser's own computer."""
    return _LOOPBACK.fullmatch(redirect) is not None


def add_query_fields(url: str, **fields: str | None) -> str:
    """Return a redirect URI with response parameters in its query; those that are None or empty are left out."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode({name: text for name, text in fields.items() if text})}"


# --- metadata ---


def resource_metadata(base: str, path: str) -> ResourceMetadataJson:
    """Return the metadata of the resource at a path (RFC 9728 section 2); `base` has no final slash."""
    return {
        "resource": base + path,
        "authorization_servers": [base],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "Phone",
    }


def server_metadata(base: str) -> ServerMetadataJson:
    """Return the metadata of the authorization server (RFC 8414 section 2)."""
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def _is_redirect(text: str) -> bool:
    if len(text) > MAX_REDIRECT or not (_HTTPS.fullmatch(text) or _LOOPBACK.fullmatch(text)):
        return False
    # Response parameters in the URI itself would forge a response.
    return not {name for name, _ in parse_qsl(urlsplit(text).query, keep_blank_values=True)} & set(RESPONSE_PARAMETERS)
