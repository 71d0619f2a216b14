"""One call to a server beside the dashboard, and what the browser is told of how it went (wire core 9).

| the server                          | the browser gets                                     |
|-------------------------------------|------------------------------------------------------|
| 2xx with JSON, or without a body    | the same                                             |
| 4xx                                 | the same status; `detail` is its JSON, else its text |
| 5xx                                 | 502, with the status and the beginning of the body   |
| refuses, breaks off, is late        | 502, with the reason                                 |
| answers in anything but JSON        | 502                                                  |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attrs import define, field

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.engine.client import Fetched, bearer, fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.local_secret import secret_fields
from svc_proto.engine.message import Response
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers
from svc_proto.wire.urls import parse_url

__all__ = ["PRIVATE", "Upstream"]

T = TypeVar("T")
Fields = tuple[tuple[bytes, bytes], ...]
MOST_SHOWN = 200  # characters of a body that is no JSON, wire core 9
JSON = (b"content-type", b"application/json")
PRIVATE = (b"cache-control", b"no-store")
PICTURES = (b"image/png", b"image/jpeg", b"image/gif", b"image/webp")  # what can hold no script, as SVG can


@define
class Upstream:
    """A server: what people call it, where it is, the bearer it wants, and how long it may take (s).

    Where it does not know the bearer `find_key` is asked for another, given the one that was shown.
    """

    name: str
    url: str
    patience: float
    key: str = field(default="", repr=False)
    local: bool = False  # show it the local secret
    find_key: Callable[[str], Flow[str]] | None = None

    @property
    def fields(self) -> Fields:
        """The headers of a request to it. Nothing of the browser's is passed on."""
        return (JSON, *bearer(self.key))

    def show_key(self, ask: Callable[[Fields], Flow[T]]) -> Flow[T]:
        """Ask with these headers, and once more if the key was replaced meanwhile."""
        shown = self.key
        answer = yield from ask(self.fields)
        if self.find_key is None or not shown or not isinstance(answer, Fetched) or answer.status != 401:
            return answer
        self.key = yield from self.find_key(shown)
        return answer if self.key == shown else (yield from ask(self.fields))

    def call(
        self, engine: Engine, method: str, path: str, body: bytes = b"", *, until: float | None = None
    ) -> Flow[Response]:
        """Make one request, to be over at the monotonic second `until`. Raises `Refused`."""
        return self.judge((yield from self._ask(engine, method, path, body, until=until)))

    def picture(self, engine: Engine, path: str) -> Flow[Response]:
        """A picture that the server has. Raises `Refused`, for a file of any other kind as well."""
        answer = yield from self._ask(engine, "GET", path)
        if answer.status != 200:
            return self.judge(answer)
        kind = answer.headers.get(b"content-type") or b""
        if kind not in PICTURES:
            raise Refused(415, "no_picture", "this file is no picture")
        return Response(200, Headers(((b"content-type", kind), PRIVATE)), answer.body)

    def _ask(
        self, engine: Engine, method: str, path: str, body: bytes = b"", *, until: float | None = None
    ) -> Flow[Fetched]:
        until = engine.now.mono + self.patience if until is None else until
        secret = (yield from secret_fields(engine)) if self.local else ()

        def ask(fields: Fields) -> Flow[Fetched | Failure]:
            within = max(until - engine.now.mono, 0.0)
            return fetch(engine, method, self.url + path, headers=(*fields, *secret), body=body, within=within)

        answer = yield from self.show_key(ask)
        if isinstance(answer, Failure):
            raise self.unreachable(self.reason(answer))
        return answer

    def judge(self, answer: Fetched) -> Response:
        """The answer for the browser. Raises `Refused`."""
        value, is_json = _json(answer.body)
        if answer.status >= 500:
            raise self.unreachable(f"it answered {answer.status}: {_text(answer.body)}".rstrip(": "))
        if answer.status == 401 and self.key:
            raise self.unreachable("it does not know the key that the dashboard was given")
        if answer.status >= 400:
            detail = value if is_json else _text(answer.body) or f"{self.name} answered {answer.status}"
            raise Refused(answer.status, "refused", f"{self.name} refuses", extra={"detail": detail})
        if answer.status >= 300:
            raise self.unreachable(f"it answered {answer.status}")
        if not answer.body:
            return Response(204, Headers((PRIVATE,)))
        if not is_json:
            raise self.unreachable("it did not answer in JSON")
        return Response(answer.status, Headers((JSON, PRIVATE)), answer.body)

    def unreachable(self, reason: str) -> Refused:
        """502. The text names the place and the cause."""
        where = parse_url(self.url)
        host = f"[{where.host}]" if ":" in where.host else where.host
        return Refused(502, "unreachable", f"{self.name} unreachable at {host}:{where.port}: {reason}")

    def reason(self, failure: Failure) -> str:
        """A failed call in a few words."""
        if failure.kind is FailureKind.TIMED_OUT:
            return f"no answer within {self.patience:g} seconds"
        return failure.detail or failure.kind.value.replace("_", " ")


def _json(body: bytes) -> tuple[object, bool]:
    try:
        return strict_json.loads(body), True
    except strict_json.JsonError:
        return None, False


def _text(body: bytes) -> str:
    return " ".join(body[: 4 * MOST_SHOWN].decode("utf-8", "replace").split())[:MOST_SHOWN]
