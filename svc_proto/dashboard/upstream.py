"""Calls to the servers behind the dashboard, and conversion of their answers for the browser (wire core 9).

| the server                          | the browser gets                                     |
|-------------------------------------|------------------------------------------------------|
| 2xx with JSON                       | the same                                             |
| 2xx without a body                  | 204                                                  |
| 3xx, or 401 of the API server       | 502                                                  |
| other 4xx                           | the same status; `detail` is its JSON, else its text |
| 5xx                                 | 502, with the status and the beginning of the body   |
| refuses, breaks off, is late        | 502, with the reason                                 |
| 2xx with any other body             | 502                                                  |
"""

from typing import TypeVar, cast

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.message import Response
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import json_value
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.service_client import JSON, ServiceCallError, ServiceClient
from svc_proto.wire.events import Headers
from svc_proto.wire.urls import parse_url

__all__ = ["PRIVATE", "Upstream"]

T = TypeVar("T")
MAX_BODY_CHARS = 200  # characters of a body that is not JSON, wire core 9
PRIVATE = (b"cache-control", b"no-store")
WRONG_KEY = "it does not know the key that the dashboard was given"
NO_KEY = "it asks for a key, and the dashboard was given none: set API_SERVER_KEY"
PICTURES = (b"image/png", b"image/jpeg", b"image/gif", b"image/webp")  # types that hold no script, unlike SVG


@frozen
class Upstream:
    """A server behind the dashboard.

    `patience` of its client `peer` is the limit in s for a whole answer, unless a call sets another.
    """

    peer: ServiceClient

    def call(
        self, engine: Engine, method: str, path: str, body: bytes = b"", *, until: float | None = None
    ) -> Flow[Response]:
        """Send one request, and convert its answer for the browser. Raises `Refused`.

        It must end by the monotonic second `until`; None: within the client's `patience`.
        """
        within = None if until is None else max(until - engine.now.mono, 0.0)
        return self.check_response(
            (yield from self.result_of(self.peer.request(engine, method, path, body, within=within)))
        )

    def picture(self, engine: Engine, path: str) -> Flow[Response]:
        """Return a picture of the server. Raises `Refused`: 415 for a file of any other kind.

        An answer other than 200 is converted as by `check_response`.
        """
        answer = yield from self.result_of(self.peer.request(engine, "GET", path))
        if answer.status != 200:
            return self.check_response(answer)
        kind = answer.headers.get(b"content-type") or b""
        if kind not in PICTURES:
            raise Refused(415, "no_picture", "this file is no picture")
        return Response(200, Headers(((b"content-type", kind), PRIVATE)), answer.body)

    def result_of(self, call: Flow[T]) -> Flow[T]:
        """Return the result of a call. Raises `Refused` 502 if it fails."""
        try:
            return (yield from call)
        except ServiceCallError as error:
            raise self.unreachable(self.reason(cast("Failure", error.failure))) from None

    def check_response(self, answer: HttpResult) -> Response:
        """Convert an answer for the browser by the module's table.

        Raises `Refused` for errors, and for a body that is not JSON.
        """
        value = json_value(answer.body, answer)
        if answer.status >= 500:
            raise self.unreachable(f"it answered {answer.status}: {_text(answer.body)}".rstrip(": "))
        if answer.status == 401 and isinstance(self.peer, ApiClient):
            raise self.unreachable(WRONG_KEY if self.peer.token else NO_KEY)
        if answer.status >= 400:
            said = _text(answer.body) or f"{self.peer.name} answered {answer.status}"
            detail = said if value is answer else value
            raise Refused(answer.status, "refused", f"{self.peer.name} refuses", extra={"detail": detail})
        if answer.status >= 300:
            raise self.unreachable(f"it answered {answer.status}")
        if not answer.body:
            return Response(204, Headers((PRIVATE,)))
        if value is answer:
            raise self.unreachable("it did not answer in JSON")
        return Response(answer.status, Headers((JSON, PRIVATE)), answer.body)

    def unreachable(self, reason: str) -> Refused:
        """Build a 502 whose text names the address and the cause."""
        where = parse_url(self.peer.url)
        host = f"[{where.host}]" if ":" in where.host else where.host
        return Refused(502, "unreachable", f"{self.peer.name} unreachable at {host}:{where.port}: {reason}")

    def reason(self, failure: Failure) -> str:
        """Describe a failed call in a few words; a timeout by the client's `patience`."""
        if failure.kind is FailureKind.TIMED_OUT:
            return f"no answer within {self.peer.patience:g} seconds"
        return failure.detail or failure.kind.value.replace("_", " ")


def _text(body: bytes) -> str:
    return " ".join(body[: 4 * MAX_BODY_CHARS].decode("utf-8", "replace").split())[:MAX_BODY_CHARS]
