"""Types of the requests and answers of OAuth clients, for the relay's OpenAPI document (`relay.openapi.operations`)."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from svc_proto.schema.common_types import NonNegativeInt
from svc_proto.schema.relay_types import DurationSeconds

Scope: TypeAlias = Literal["bridge", "bridge:read"]


class OAuthRefusalJson(TypedDict):
    """Error answer of RFC 6749 section 5.2, with the members of other refusals of the relay."""

    ok: Literal[False]
    error: Annotated[str, "stable code for programs"]
    error_description: Annotated[str, "text for people"]
    code: str


class ResourceMetadataJson(TypedDict):
    """Protected resource metadata, RFC 9728."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[Scope]
    bearer_methods_supported: list[str]
    resource_name: str


class ServerMetadataJson(TypedDict):
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


class ClientRegistrationJson(TypedDict, total=False):
    """Client registration request, RFC 7591."""

    client_name: str
    redirect_uris: Required[Annotated[list[str], "https, or http on the client's loopback interface"]]


class ClientMetadataJson(TypedDict):
    """A registered client, which is always a public one (RFC 7591)."""

    client_id: str
    client_name: str
    redirect_uris: list[str]
    token_endpoint_auth_method: Literal["none"]
    grant_types: list[str]
    response_types: list[str]


class TokenRequestJson(TypedDict, total=False):
    """Token request, RFC 6749 sections 4.1.3 and 6."""

    grant_type: Required[Literal["authorization_code", "refresh_token"]]
    client_id: Required[str]
    code: str
    code_verifier: str
    redirect_uri: str
    refresh_token: str
    resource: str
    scope: str


class TokensJson(TypedDict):
    """Access token answer, RFC 6749 section 5.1."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: NonNegativeInt
    refresh_token: str
    scope: Scope


class RevocationJson(TypedDict):
    """Token revocation request, RFC 7009."""

    token: Annotated[str, "access token or refresh token"]


class ConsentQuestionJson(TypedDict):
    """A request for access that waits for the owner."""

    ok: Literal[True]
    code: str
    ballot: Annotated[str, "value to send back with the decision"]
    client_name: Annotated[str, "name that the client gives itself, not verified"]
    answer_goes_to: str
    answer_stays_there: Annotated[bool, "whether the answer goes to a program on the computer of the client"]
    address: str
    scope: Scope
    expires_in: Annotated[NonNegativeInt, "seconds"]


class ConsentAnswerJson(TypedDict, total=False):
    """The owner's decision."""

    ballot: Required[str]
    allow: Required[bool]
    scope: Scope
    ttl_seconds: DurationSeconds


class ConsentAnsweredJson(TypedDict):
    """The decision was recorded."""

    ok: Literal[True]
    allowed: bool
    client_name: str
