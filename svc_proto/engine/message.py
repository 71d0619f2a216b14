"""Requests and responses as a route handler sees them: whole, parsed once, without a socket in sight."""

from __future__ import annotations

from typing import cast

from attrs import define, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.facts import Address
from svc_proto.wire.events import NO_HEADERS, Headers
from svc_proto.wire.urls import parse_query

__all__ = ["Request", "Response", "empty_response", "json_response", "refused_for"]

JSON = (b"content-type", b"application/json")
CODES = {
    408: "request_timeout",
    413: "body_too_large",
    431: "head_too_large",
    501: "not_implemented",
    505: "version_not_supported",
}


@define(eq=False)
class Request:
    """One request. `path` is decoded nowhere but in `params`; `principal` is what the access policy found."""

    method: str
    path: str
    raw_query: str
    headers: Headers
    peer: Address
    secure: bool
    params: dict[str, str]
    principal: object = None
    body: bytes = b""
    _query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """Query parameters, decoded; of a repeated name the first value."""
        if self._query is None:
            self._query = parse_query(self.raw_query) if self.raw_query else {}
        return self._query

    def json(self) -> object:
        """The body as JSON, whatever its Content-Type (wire core 0.2); refuses with 400 `invalid_json`."""
        try:
            return strict_json.loads(self.body)
        except strict_json.JsonError as error:
            raise Refused(400, "invalid_json", f"the body is not valid JSON: {error}") from None

    def json_object(self) -> dict[str, object]:
        """The body as a JSON object; refuses with 400 otherwise."""
        value = self.json()
        if not isinstance(value, dict):
            raise Refused(400, "invalid_body", "the body must be a JSON object")
        return cast("dict[str, object]", value)


@frozen
class Response:
    """One response with a body of known length; `content-length` and `date` are added when it is sent."""

    status: int
    headers: Headers = NO_HEADERS
    body: bytes = b""


def json_response(status: int, value: object, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """A JSON answer."""
    return Response(status, Headers((JSON, *headers)), strict_json.dumps_bytes(value))


def empty_response(status: int = 204) -> Response:
    """An answer without a body."""
    return Response(status)


def refused_for(error: RemoteProtocolError) -> Refused:
    """The refusal that a broken rule of the protocol deserves."""
    return Refused(error.status, CODES.get(error.status, "bad_request"), str(error))
