"""A service of your own on the engine: notes are posted over HTTP and sent to listeners on WebSockets.

  python -m examples.own_service 8080
  curl -d '{"text": "hello"}' http://127.0.0.1:8080/notes
  curl http://127.0.0.1:8080/notes

The engine implements HTTP/1.1, HTTP/2 and WebSockets with limits, deadlines, backpressure and an orderly stop. The
service defines its routes (`router`), their handlers, and the access to them (`authorize`). It runs on any loop.
"""

from __future__ import annotations

import os
import sys
from enum import Enum

from runtimes.host.host import Program
from runtimes.net.listener import bind
from runtimes.run import run
from svc_proto import Accepted, Ready, Refused
from svc_proto.engine import (
    ANONYMOUS,
    AdmissionControl,
    Channel,
    Engine,
    Flow,
    Request,
    Response,
    Route,
    RouteKind,
    Router,
    WebSocketConnection,
    empty_response,
    json_response,
    sleep,
)
from svc_proto.wire import DEFAULT_LIMITS, RequestHead

MOST = 100  # kept notes; the oldest is dropped
PAUSE = 1.0  # s that `/slow` takes


class Access(Enum):
    """Access policies of the routes; here every client has access."""

    PUBLIC = "public"


class Notes:
    """The service: `svc_proto.engine.Service` and `HttpApp` in one."""

    engine: Engine

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._listeners: list[Listening] = []
        public = Access.PUBLIC
        self.router = Router(
            [
                Route(method="GET", pattern="/notes", access=public, handler=self._list, body_limit=0),
                Route(method="POST", pattern="/notes", access=public, handler=self._add, body_limit=4096),
                Route(method="GET", pattern="/notes/{number}", access=public, handler=self._one, body_limit=0),
                Route(method="GET", pattern="/slow", access=public, handler=self._slow, body_limit=0),
                Route(method="GET", pattern="/live", access=public, handler=self._listen, kind=RouteKind.WEBSOCKET),
            ]
        )

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine: time, entropy, timers and commands come from it."""
        self.engine = engine
        self._admission = AdmissionControl(engine, self, DEFAULT_LIMITS)

    def on_started(self) -> None:
        """Start accepting: there is nothing to load."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Serve a connection, or refuse it beyond the limit."""
        return self._admission.admit(fact)

    def on_stopping(self) -> None:
        """Do nothing: the engine closes WebSockets with 1001, and connections after their responses."""

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        """Return the principal of a request: all clients are anonymous."""
        return ANONYMOUS

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return a refusal as JSON, also for a violation of the protocol."""
        return json_response(refused.status, {"error": refused.code, "message": refused.message}, refused.headers)

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header fields of every response."""
        return ((b"cache-control", b"no-store"),)

    # --- routes ---

    def _list(self, request: Request) -> Response:
        return json_response(200, {"notes": self._notes})

    def _add(self, request: Request) -> Response:
        text = request.json_object().get("text")
        if not isinstance(text, str) or not text:
            raise Refused(400, "invalid_field", "text must be there")
        self._notes = [*self._notes, text][-MOST:]
        for listener in self._listeners:
            listener.tell(text)
        return json_response(201, {"notes": len(self._notes)})

    def _one(self, request: Request) -> Response:
        number = request.params["number"]
        if not number.isdecimal() or int(number) >= len(self._notes):
            raise Refused(404, "not_found", "there is no such note")
        return json_response(200, {"text": self._notes[int(number)]})

    def _slow(self, request: Request) -> Flow[Response]:
        """Wait as a flow, without a thread; the flow is cancelled when its client disconnects."""
        yield from sleep(self.engine, PAUSE)
        return empty_response()

    def _listen(self, request: Request) -> Listening:
        return Listening(self._listeners)


class Listening:
    """A WebSocket of a listener, see `svc_proto.engine.WebSocketHandler`."""

    socket: WebSocketConnection

    def __init__(self, listeners: list[Listening]) -> None:
        self._listeners = listeners

    def tell(self, text: str) -> None:
        """Send a new note. A listener that does not read misses it, because memory is limited."""
        if self.socket.writable:
            self.socket.send_text(text)

    def on_open(self, socket: WebSocketConnection) -> None:
        """Register the listener."""
        self.socket = socket
        self._listeners.append(self)

    def on_text(self, text: str) -> None:
        """Ignore a message."""

    def on_binary(self, data: bytes) -> None:
        """Ignore a message."""

    def on_writable(self) -> None:
        """Do nothing: missed notes are not sent again."""

    def on_closed(self, code: int, reason: str) -> None:
        """Unregister the listener, whatever the reason of the end."""
        self._listeners.remove(self)


def main(port: int, runtime: str = "threads") -> int:
    """Serve until Ctrl-C; return the exit code."""
    listener = bind("127.0.0.1", port)
    print(f"http://{listener.address.host}:{listener.address.port}/notes", flush=True)
    with listener.sock:
        return run(Program(core=Engine(Notes(), entropy=os.urandom), listeners=[listener]), runtime)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), *sys.argv[2:]))
