"""Requests and responses as a route handler receives them: parsed, and independent of sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from attrs import define, field

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.events import NO_HEADERS, Headers
from svc_proto.wire.urls import parse_query
from svc_proto.wire.websocket_handshake import WEBSOCKET_VERSION

if TYPE_CHECKING:
    from svc_proto.engine.body_streams import BodyStream, FilePart, ResponseWriter

__all__ = [
    "JSON_ALONE",
    "ANONYMOUS",
    "Request",
    "JsonResponse",
    "Response",
    "AnonymousType",
    "StreamedResponse",
    "empty_response",
    "json_response",
    "parse_json",
    "refusal_of",
    "too_large_refusal",
]

JSON = (b"content-type", b"application/json")
JSON_ALONE = Headers((JSON,))
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HALF_CLOSE = b"half-close"  # preference of a client that closes its end and still reads the answer
CODES = {
    408: "request_timeout",
    413: "body_too_large",
    431: "head_too_large",
    501: "not_implemented",
    505: "version_not_supported",
}

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AnonymousType(Enum):
    """Type of `ANONYMOUS`: the principal of a caller that a policy admitted without a credential."""

    ANONYMOUS = "anonymous"


ANONYMOUS = AnonymousType.ANONYMOUS
"""Principal of an unidentified caller: the result of a policy that admits all callers."""


@define(eq=False)
class Request:
    """A request. `path` and `raw_query` are not decoded; `params` are the decoded path parameters.

    `path` lacks the prefix under which a proxy serves the routes, and repeated slashes at its start (`Router.split`).
    `principal` is the result of the access policy. The policy may set `credential_id`; when that credential is revoked
    (`Engine.revocables`), the request ends.
    """

    method: str
    path: str
    raw_query: str
    headers: Headers
    peer: Address
    secure: bool
    params: dict[str, str]
    http_version: str = "1.1"
    own_user: bool | None = None  # of the peer, see `Accepted`
    principal: object = None
    credential_id: str = ""
    body: bytes = b""  # of a route that is not `streamed`
    half_closed: bool = False  # the client has closed its end
    stops_with_client: bool = False  # as of a route: cancelled when the client closes its end unanswered
    _query: dict[str, str] | None = None
    stream: BodyStream = field(init=False)  # the body, if the route is `streamed`

    @property
    def query(self) -> dict[str, str]:
        """Query parameters, decoded; of a repeated name the first value."""
        if self._query is None:
            self._query = parse_query(self.raw_query) if self.raw_query else {}
        return self._query

    @property
    def fields(self) -> Mapping[bytes, bytes]:
        """Header fields by name; of a repeated name the first value."""
        return self.headers.by_name

    def stop_with_client(self) -> None:
        """Have this request cancelled when the client closes its end; do nothing after `Prefer: half-close` (RFC 7240).

        Raise `Refused` 400 if `half_closed` is set already and that preference was not sent.
        """
        if HALF_CLOSE in (self.headers.get(b"prefer") or b"").lower():
            return
        if self.half_closed:
            text = "the connection was closed at the client's end before the answer: send Prefer: half-close to get it"
            raise Refused(400, "bad_request", text)
        self.stops_with_client = True

    def json(self) -> object:
        """Return the body as JSON, whatever its Content-Type (wire core 0.2).

        Raise `Refused` (400 `invalid_json`, or 413 if parsing would take too long).
        """
        try:
            return parse_json(self.body)
        except strict_json.JsonError as error:
            raise Refused(400, "invalid_json", f"the body is not valid JSON: {error}") from None

    def json_object(self) -> JsonObject:
        """Return the body as a JSON object. Raise `Refused` (400) if it is none, 413 as `json`."""
        found = JsonObject.of_or_none(self.json())
        if found is None:
            raise Refused(400, "invalid_body", "the body must be a JSON object")
        return found


@fast_frozen
class Response:
    """A response with a body of known length; `date`, and `content-length` unless the status forbids a body, are added.

    The body is `body`, or the `file`, which over HTTP/1.1 does not pass through the core. A handler that returns a file
    transfers its handle: it is released when the response is over, however it ends. A response with
    `only_these_headers` is sent without the common header fields (`HttpApp.response_headers`).
    """

    status: int
    headers: Headers = NO_HEADERS
    body: bytes = b""
    file: FilePart | None = None
    only_these_headers: bool = False


@fast_frozen
class JsonResponse(Response, Generic[T_co]):
    """A JSON response; the type argument is the type of the body, for type checkers and the OpenAPI document."""


@fast_frozen
class StreamedResponse:
    """A response of unknown length: `producer` writes the body, and the producer's end is the end of the response.

    The producer is cancelled when the client disconnects, and not started for HEAD. If the producer returns False, the
    body is incomplete: the connection, or the HTTP/2 stream, is cut then, since an orderly end could look like the end
    of the body.
    """

    only_these_headers: ClassVar[bool] = False

    status: int
    headers: Headers
    producer: Callable[[ResponseWriter], Flow[None] | Flow[bool]]


def parse_json(body: bytes) -> object:
    """Parse a body as JSON; a byte order mark before it is ignored (RFC 8259 section 8.1).

    Raise `JsonError`, or `Refused` (413) if parsing would take too long.
    """
    try:
        return strict_json.loads(body.removeprefix(BYTE_ORDER_MARK))
    except strict_json.JsonTooLarge as error:
        raise too_large_refusal(error) from None


def too_large_refusal(error: Exception) -> Refused:
    """Return the refusal of a body that would take too long to parse."""
    return Refused(413, "body_too_large", f"the body is too large: {error}")


def json_response(status: int, value: T, headers: tuple[tuple[bytes, bytes], ...] = ()) -> JsonResponse[T]:
    """Return a response with `value` encoded as JSON."""
    return JsonResponse(status, Headers((JSON, *headers)) if headers else JSON_ALONE, strict_json.dumps_bytes(value))


def empty_response(status: int = 204) -> Response:
    """Return a response without a body."""
    return Response(status)


def refusal_of(error: RemoteProtocolError) -> Refused:
    """Return the refusal that answers a protocol error."""
    headers = (WEBSOCKET_VERSION,) if error.status == HTTPStatus.UPGRADE_REQUIRED else ()
    return Refused(error.status, error.code or CODES.get(error.status, "bad_request"), str(error), headers=headers)
