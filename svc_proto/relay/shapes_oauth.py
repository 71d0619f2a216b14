"""What an OAuth client of `/mcp` is sent and answers, as types: for the relay's document (`relay.says`)."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from svc_proto.relay.shapes import Natural, Span

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
    """RFC 6749 section 5.2, with what the relay's other refusals have."""

    ok: Literal[False]
    error: Annotated[str, "for programs"]
    error_description: Annotated[str, "for people"]
    code: str


class ResourceMetadata(TypedDict):
    """RFC 9728."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[Scope]
    bearer_methods_supported: list[str]
    resource_name: str


class ServerMetadata(TypedDict):
    """RFC 8414."""

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
    """RFC 7591."""

    client_name: str
    redirect_uris: Required[Annotated[list[str], "https, or http on the client's loopback"]]


class ClientMetadata(TypedDict):
    """A public client, whatever it asked to be."""

    client_id: str
    client_name: str
    redirect_uris: list[str]
    token_endpoint_auth_method: Literal["none"]
    grant_types: list[str]
    response_types: list[str]


class Authorisation(TypedDict, total=False):
    """RFC 6749 section 4.1.1 and RFC 7636."""

    client_id: Required[str]
    redirect_uri: Required[str]
    response_type: Required[Literal["code"]]
    code_challenge: Required[str]
    code_challenge_method: Required[Literal["S256"]]
    resource: str
    scope: str
    state: str


class TokenRequest(TypedDict, total=False):
    """RFC 6749 sections 4.1.3 and 6."""

    grant_type: Required[Literal["authorization_code", "refresh_token"]]
    client_id: Required[str]
    code: str
    code_verifier: str
    redirect_uri: str
    refresh_token: str
    resource: str
    scope: str


class Tokens(TypedDict):
    """RFC 6749 section 5.1."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: Natural
    refresh_token: str
    scope: Scope


class Revocation(TypedDict):
    """RFC 7009."""

    token: Annotated[str, "either"]


class OwnersQuestion(TypedDict):
    """What an owner is asked of an agent that waits."""

    ok: Literal[True]
    code: str
    ballot: Annotated[str, "goes back with the answer"]
    client_name: Annotated[str, "its own claim"]
    answer_goes_to: str
    answer_stays_there: Annotated[bool, "with a program on the computer that asks"]
    address: str
    scope: Scope
    expires_in: Annotated[Natural, "s"]


class OwnersAnswer(TypedDict, total=False):
    """Yes or no."""

    ballot: Required[str]
    allow: Required[bool]
    scope: Scope
    ttl_seconds: Span


class Taken(TypedDict):
    """It was heard."""

    ok: Literal[True]
    allowed: bool
    client_name: str
