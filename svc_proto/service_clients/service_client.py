"""A server of this system that is called: its address, what lets us in, and the one error of all that goes wrong.

    found = yield from peer.json(engine, "GET", "/sessions")               # `JsonObject`, or `ServiceCallError`
    answer = yield from peer.request(engine, "GET", "/media/x")            # whatever its status is
    socket = yield from peer.socket(engine, "/ws", handler, within=10.0)

`ServiceCallError` says what sort of failure it is, as data. Whoever talks to somebody makes the sentence of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from attrs import define, field

from svc_proto.basics import strict_json
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch, websocket_upgrade
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, json_value
from svc_proto.service_clients.local_secret import secret_headers
from svc_proto.wire.multipart import Part, encode_multipart

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["JSON", "Fields", "ServiceClient", "ServiceCallError", "ServiceFault", "error_message_in"]

Fields = tuple[tuple[bytes, bytes], ...]
T = TypeVar("T")
TIMEOUT = 10.0  # s, wire terminal-voice 6.7
JSON = (b"content-type", b"application/json")


class ServiceFault(Enum):
    """The sorts of failure."""

    UNREACHABLE = "unreachable"  # there is no answer
    CONNECTION_LOST = "cut"  # an answer that began broke off, or fell silent
    UNAUTHORIZED = "unauthorized"  # 401
    FORBIDDEN = "forbidden"  # 403
    NOT_FOUND = "not found"  # 404
    CONFLICT = "conflict"  # 409
    BLOCKED = "blocked"  # 429
    REFUSED = "refused"  # any other status than what was wanted
    REJECTED = "rejected"  # `auth.fail`: the credential will not get better
    NO_JSON = "no json"
    NO_OBJECT = "no object"  # JSON, and no object
    SERVER_ERROR = "ill"  # it is there, and does not say that it is well
    UNAVAILABLE = "lacking"  # an answer without what matters (`lacks`)


_BY_STATUS = {
    401: ServiceFault.UNAUTHORIZED,
    403: ServiceFault.FORBIDDEN,
    404: ServiceFault.NOT_FOUND,
    409: ServiceFault.CONFLICT,
    429: ServiceFault.BLOCKED,
}


class ServiceCallError(Exception):
    """Nothing came of a call. `failure` is there when no whole answer is, else `answer`; no secret is in its text."""

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
        """An answer with another status than was wanted."""
        return cls(peer, _BY_STATUS.get(answer.status, ServiceFault.REFUSED), answer)

    @property
    def status(self) -> int:
        """The status of the answer; 0 without one."""
        return 0 if self.answer is None else self.answer.status

    @property
    def why(self) -> str:
        """Why there is no answer, in a word or in the host's own; empty where there is one."""
        return "" if self.failure is None else self.failure.detail or self.failure.kind.value

    @property
    def brief(self) -> str:
        """What sort of failure there is, or the status, in a word: `unreachable`, `status 404`."""
        return f"status {self.status}" if self.failure is None else self.failure.kind.value

    @property
    def server_message(self) -> str:
        """What the server says is wrong, as it says it, in any of the shapes of wire core 0.4 and wire api 2.1."""
        return "" if self.answer is None else error_message_in(self.answer.body)


@define(eq=False)
class ServiceClient:
    """What people call it, its http(s) address without a slash at the end, and what lets us in.

    A token that is refused or missing is asked for where it can be found (`find_token`, given the one that was shown).
    """

    name: str
    url: str
    token: str = field(default="", repr=False)
    patience: float = TIMEOUT  # s for a call, unless it says otherwise
    remedy: str = ""  # what people can do when it cannot be reached
    local: bool = False  # the relay on this host: it is shown the local secret, if there is one
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
        """Make one request, to be over in `within` seconds. Raises `ServiceCallError` when there is no answer at
        all."""
        until = engine.now.mono + (self.patience if within is None else within)
        secret = (yield from secret_headers(engine)) if self.local else ()
        data = body if isinstance(body, bytes) else strict_json.dumps_bytes(body)
        anew = False
        while True:
            shown = self.token
            answer = yield from fetch(
                engine,
                method,
                self.url + path,
                into=into,
                headers=(*fields, *bearer_header(shown), *secret),
                body=data,
                within=max(until - engine.now.mono, 0.0),
                connect_within=connect_within,
            )
            if isinstance(answer, Failure):
                raise ServiceCallError(self, ServiceFault.UNREACHABLE, answer)
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
        """The object that it answers with. Raises `ServiceCallError` for any other answer, and from status 300 on."""
        return self.json_object((yield from self.success(self.request(engine, method, path, body, within=within))))

    def upload(self, engine: Engine, path: str, part: Part, *, within: float) -> Flow[HttpResult]:
        """Send a file as a form has it (RFC 7578). Raises `ServiceCallError`, from status 300 on as well."""
        boundary = engine.entropy(16).hex()
        kind = (b"content-type", f"multipart/form-data; boundary={boundary}".encode("ascii"))
        body = encode_multipart((part,), boundary)
        return (yield from self.success(self.request(engine, "POST", path, body, fields=(kind,), within=within)))

    def socket(
        self, engine: Engine, path: str, handler: WebSocketHandler, *, within: float
    ) -> Flow[WebSocketConnection]:
        """Open a WebSocket. Raises `ServiceCallError`."""
        into = websocket_upgrade(handler)
        opened = yield from self.request(engine, "GET", path, into=into, fields=(), within=within)
        if isinstance(opened, HttpResult):
            raise ServiceCallError.by_status(self, opened)
        return opened

    def success(self, request: Flow[HttpResult]) -> Flow[HttpResult]:
        """The answer to a request, if it is a success. Raises `ServiceCallError` for any other."""
        return self.check((yield from request))

    def check(self, answer: HttpResult) -> HttpResult:
        """An answer that is a success. Raises `ServiceCallError` for any other."""
        if answer.status >= 300:
            raise ServiceCallError.by_status(self, answer)
        return answer

    def json_object(self, answer: HttpResult) -> JsonObject:
        """The object in an answer. Raises `ServiceCallError`."""
        found = JsonObject.of_or_none(self.json_value(answer))
        if found is None:
            raise ServiceCallError(self, ServiceFault.NO_OBJECT, answer)
        return found

    def json_value(self, answer: HttpResult) -> object:
        """The JSON in an answer. Raises `ServiceCallError`."""
        try:
            return strict_json.loads(answer.body)
        except strict_json.JsonError as error:
            raise ServiceCallError(self, ServiceFault.NO_JSON, answer) from error


def error_message_in(body: bytes, *, other: bool = False) -> str:
    """What the body of a refusal says is wrong; of one without JSON nothing, or all of it."""
    found = JsonObject({"error": json_value(body, body.decode("utf-8", "replace") if other else "")})
    told = found.get_object("error")
    return found.text("error") or told.text("error", "detail") or told.get_object("error").text("message")
