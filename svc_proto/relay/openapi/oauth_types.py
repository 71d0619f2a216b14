"""What an OAuth client of `/mcp` is sent and answers, as types: for the relay's document (`relay.says`)."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from svc_proto.relay.openapi.types import Natural, Span

__all__ = [
    "Authorisation",
    "ClientMetadata",
    "OAuthRefusal",
    "OwnersAnswer",
    "OwnersQuestion",
    "ClientRegistration",
    "ResourceMetadata",
    "Revocation",
    "ServerMetadata",
    "Taken",
    "TokenRequest",
    "Tokens",
]

Scope: TypeAlias = Literal["bridge", "bridge:read"]


class OAuthRefusal(TypedDict):
    """Error answer of RFC 6749 section 5.2, with the members of other refusals of the relay."""

    ok: Literal[False]
    error: Annotated[str, "stable code for programs"]
    error_description: Annotated[str, "text for people"]
    code: str


class ResourceMetadata(TypedDict):
    """Protected resource metadata, RFC 9728."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[Scope]
    bearer_methods_supported: list[str]
    resource_name: str


class ServerMetadata(TypedDict):
    """Authorization server metadata, RFC 8414."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes_supported: list[Scope]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    authorization_response_iss_parameter_supported: bool


class ClientRegistration(TypedDict, total=False):
    """Client registration request, RFC 7591."""

    client_name: str
    redirect_uris: Required[Annotated[list[str], "https, or http on the client's loopback interface"]]


class ClientMetadata(TypedDict):
    """A registered client, which is always a public one (RFC 7591)."""

    client_id: str
    client_name: str
    redirect_uris: list[str]
    token_endpoint_auth_method: Literal["none"]
    grant_types: list[str]
    response_types: list[str]


class Authorisation(TypedDict, total=False):
    """Authorization request, RFC 6749 section 4.1.1 and RFC 7636."""

    client_id: Required[str]
    redirect_uri: Required[str]
    response_type: Required[Literal["code"]]
    code_challenge: Required[str]
    code_challenge_method: Required[Literal["S256"]]
    resource: str
    scope: str
    state: str


class TokenRequest(TypedDict, total=False):
    """Token request, RFC 6749 sections 4.1.3 and 6."""

    grant_type: Required[Literal["authorization_code", "refresh_token"]]
    client_id: Required[str]
    code: str
    code_verifier: str
    redirect_uri: str
    refresh_token: str
    resource: str
    scope: str


class Tokens(TypedDict):
    """Access token answer, RFC 6749 section 5.1."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: Natural
    refresh_token: str
    scope: Scope


class Revocation(TypedDict):
    """Token revocation request, RFC 7009."""

    token: Annotated[str, "access token or refresh token"]


class OwnersQuestion(TypedDict):
    """A request for access that waits for the owner."""

    ok: Literal[True]
    code: str
    ballot: Annotated[str, "value to send back with the decision"]
    client_name: Annotated[str, "name that the client gives itself, not verified"]
    answer_goes_to: str
    answer_stays_there: Annotated[bool, "whether the answer goes to a program on the computer of the client"]
    address: str
    scope: Scope
    expires_in: Annotated[Natural, "seconds"]


class OwnersAnswer(TypedDict, total=False):
    """The owner's decision."""

    ballot: Required[str]
    allow: Required[bool]
    scope: Scope
    ttl_seconds: Span


class Taken(TypedDict):
    """The decision was recorded."""

    ok: Literal[True]
    allowed: bool
    client_name: str
