"""Client of another server of this system: its address, our credential, and one error class for all failures.

    found = yield from peer.json(engine, "GET", "/sessions")               # `JsonObject`, or `ServiceCallError`
    answer = yield from peer.request(engine, "GET", "/media/x")            # whatever its status is
    socket = yield from peer.socket(engine, "/ws", handler, within=10.0)

`ServiceCallError` has the kind of failure as data. The caller makes a text for its user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeVar

from attrs import define, field

from svc_proto.basics import strict_json
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch, websocket_upgrade
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, json_value
from svc_proto.service_clients.local_secret import secret_headers
from svc_proto.wire.multipart import Part, encode_multipart

__all__ = ["JSON", "Fields", "ServiceClient", "ServiceCallError", "ServiceFault", "error_message_in"]

Fields = tuple[tuple[bytes, bytes], ...]
T = TypeVar("T")
TIMEOUT = 10.0  # s, wire terminal-voice 6.7
JSON = (b"content-type", b"application/json")


class ServiceFault(Enum):
    """Kind of failure of a call."""

    UNREACHABLE = "unreachable"  # no response
    CONNECTION_LOST = "connection lost"  # a response that broke off or stalled
    UNAUTHORIZED = "unauthorized"  # 401
    FORBIDDEN = "forbidden"  # 403
    NOT_FOUND = "not found"  # 404
    CONFLICT = "conflict"  # 409
    BLOCKED = "blocked"  # 429
    REFUSED = "refused"  # any other status than the wanted one
    REJECTED = "rejected"  # `auth.fail`: a retry with this credential is useless
    NO_JSON = "no json"
    NO_OBJECT = "no object"  # JSON, but no object
    SERVER_ERROR = "server error"  # the server responds, but does not report good health
    UNAVAILABLE = "unavailable"  # a response without an essential part (`lacks`)


SECRET_REFUSED = (401, 403)  # 401: of a route that also has a bearer token
_BY_STATUS = {
    401: ServiceFault.UNAUTHORIZED,
    403: ServiceFault.FORBIDDEN,
    404: ServiceFault.NOT_FOUND,
    409: ServiceFault.CONFLICT,
    429: ServiceFault.BLOCKED,
}


class ServiceCallError(Exception):
    """Failure of a call: a `failure` of the connection or of `system/auth`, else the HTTP response as `answer`."""

    def __init__(
        self, peer: ServiceClient, fault: ServiceFault, what: Failure | HttpResult, *, lacks: str = ""
    ) -> None:
        self.peer = peer
        self.fault = fault
        self.lacks = lacks
        self.failure = what if isinstance(what, Failure) else None
        self.answer = what if isinstance(what, HttpResult) else None
        super().__init__(f"{peer.name}: {fault.value}, {self.brief}")

    @classmethod
    def by_status(cls, peer: ServiceClient, answer: HttpResult) -> ServiceCallError:
        """Return the error for a response with an unwanted status."""
        return cls(peer, _BY_STATUS.get(answer.status, ServiceFault.REFUSED), answer)

    @property
    def status(self) -> int:
        """Status of the response; 0 without one."""
        return 0 if self.answer is None else self.answer.status

    @property
    def why(self) -> str:
        """Reason in `failure`: its detail, else its kind; empty if there is no `failure`."""
        return "" if self.failure is None else self.failure.detail or self.failure.kind.value

    @property
    def brief(self) -> str:
        """Kind of failure, or the status, in short: `unreachable`, `status 404`."""
        return f"status {self.status}" if self.failure is None else self.failure.kind.value

    @property
    def server_message(self) -> str:
        """Error message of the server, in any of the shapes of wire core 0.4 and wire api 2.1; empty without one."""
        return "" if self.answer is None else error_message_in(self.answer.body)


@define(eq=False)
class ServiceClient:
    """Client of a server: its name for users, its URL (http or ws, or with TLS) without a final slash, our credential.

    After the first 401 of a request, `find_token`, if set, is called with the refused token; it returns the next one.
    """

    name: str
    url: str
    token: str = field(default="", repr=False)
    patience: float = TIMEOUT  # s; default timeout of a call
    remedy: str = ""  # advice for users if the server is unreachable
    local: bool = False  # the relay on this host: requests show the local secret, if there is one
    extra: Fields = ()  # header fields of every request
    find_token: Callable[[str], Flow[str]] | None = field(default=None, repr=False)

    def request(
        self,
        engine: Engine,
        method: str,
        path: str,
        body: Mapping[str, object] | bytes = b"",
        *,
        into: ResponseMode[T] | None = None,
        fields: Fields = (JSON,),
        within: float | None = None,
        connect_within: float | None = None,
    ) -> Flow[T | HttpResult]:
        """Send a request and wait at most `within` seconds, by default `patience`, for the response.

        It is sent again, once for each reason, after a 401 if `find_token` returns another token, and after a 401 or
        403 of a `local` client if the local secret has changed. Raises `ServiceCallError` without a response.
        """
        until = engine.now.mono + (self.patience if within is None else within)
        secret = (yield from secret_headers(engine)) if self.local else ()
        data = body if isinstance(body, bytes) else strict_json.dumps_bytes(body)
        anew, may_be_stale = False, self.local
        while True:
            shown = self.token
            answer = yield from fetch(
                engine,
                method,
                self.url + path,
                into=into,
                headers=(*fields, *self.extra, *bearer_header(shown), *secret),
                body=data,
                within=max(until - engine.now.mono, 0.0),
                connect_within=connect_within,
            )
            if isinstance(answer, Failure):
                raise ServiceCallError(self, ServiceFault.UNREACHABLE, answer)
            if may_be_stale and isinstance(answer, HttpResult) and answer.status in SECRET_REFUSED:
                # a relay that has just started created a new secret after the old one, or none, was read
                may_be_stale, shown_secret, secret = False, secret, (yield from secret_headers(engine))
                if secret != shown_secret:
                    continue
            if anew or self.find_token is None or not isinstance(answer, HttpResult) or answer.status != 401:
                return answer
            self.token, anew = (yield from self.find_token(shown)), True
            if self.token == shown:
                return answer

    def json(
        self,
        engine: Engine,
        method: str,
        path: str,
        body: Mapping[str, object] | bytes = b"",
        *,
        within: float | None = None,
    ) -> Flow[JsonObject]:
        """Send a request and return the JSON object of the response.

        Raises `ServiceCallError` without one, and from status 300 on.
        """
        return self.json_object((yield from self.success(self.request(engine, method, path, body, within=within))))

    def upload(self, engine: Engine, path: str, part: Part, *, within: float) -> Flow[HttpResult]:
        """Upload a file as a form (RFC 7578). Raises `ServiceCallError` without a response, and from status 300 on."""
        boundary = engine.entropy(16).hex()
        kind = (b"content-type", f"multipart/form-data; boundary={boundary}".encode("ascii"))
        body = encode_multipart((part,), boundary)
        return (yield from self.success(self.request(engine, "POST", path, body, fields=(kind,), within=within)))

    def socket(
        self, engine: Engine, path: str, handler: WebSocketHandler, *, within: float
    ) -> Flow[WebSocketConnection]:
        """Open a WebSocket. Raises `ServiceCallError` without a response, or if the server refuses."""
        into = websocket_upgrade(handler)
        opened = yield from self.request(engine, "GET", path, into=into, fields=(), within=within)
        if isinstance(opened, HttpResult):
            raise ServiceCallError.by_status(self, opened)
        return opened

    def success(self, request: Flow[HttpResult]) -> Flow[HttpResult]:
        """Return the response to a request if its status is below 300. Raises `ServiceCallError` for any other."""
        return self.check((yield from request))

    def check(self, answer: HttpResult) -> HttpResult:
        """Return the response if its status is below 300. Raises `ServiceCallError` for any other."""
        if answer.status >= 300:
            raise ServiceCallError.by_status(self, answer)
        return answer

    def json_object(self, answer: HttpResult) -> JsonObject:
        """Return the JSON object of a response. Raises `ServiceCallError` if the body is none."""
        found = JsonObject.of_or_none(self.json_value(answer))
        if found is None:
            raise ServiceCallError(self, ServiceFault.NO_OBJECT, answer)
        return found

    def json_value(self, answer: HttpResult) -> object:
        """Return the JSON value of a response. Raises `ServiceCallError` if the body is no JSON."""
        try:
            return strict_json.loads(answer.body)
        except strict_json.JsonError as error:
            raise ServiceCallError(self, ServiceFault.NO_JSON, answer) from error


def error_message_in(body: bytes, *, other: bool = False) -> str:
    """Return the error message in the body of a refusal; empty if there is none.

    With `other`, a body that is no JSON is the message.
    """
    found = JsonObject({"error": json_value(body, body.decode("utf-8", "replace") if other else "")})
    told = found.get_object("error")
    return found.text("error") or told.text("error", "detail") or told.get_object("error").text("message")
