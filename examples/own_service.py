"""A service of your own on the engine: notes that are written over HTTP and told to whoever listens on a WebSocket.

  python -m examples.own_service 8080
  curl -d '{"text": "hello"}' http://127.0.0.1:8080/notes
  curl http://127.0.0.1:8080/notes

The engine brings HTTP/1.1, HTTP/2 and WebSockets with their limits, deadlines, backpressure and an orderly stop; the
service says what it serves (`router`), how, and to whom (`authorize`). It runs on any loop.
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

MOST = 100  # notes that are kept; the oldest goes
PAUSE = 1.0  # s that `/slow` takes


class Access(Enum):
    """Who may call a route; here: everybody."""

    ANYBODY = "anybody"


class Notes:
    """The service: `svc_proto.engine.Service` and `HttpApp` in one."""

    engine: Engine

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._listeners: list[Listening] = []
        anybody = Access.ANYBODY
        self.router = Router(
            [
                Route(method="GET", pattern="/notes", access=anybody, handler=self._list, body_limit=0),
                Route(method="POST", pattern="/notes", access=anybody, handler=self._add, body_limit=4096),
                Route(method="GET", pattern="/notes/{number}", access=anybody, handler=self._one, body_limit=0),
                Route(method="GET", pattern="/slow", access=anybody, handler=self._slow, body_limit=0),
                Route(method="GET", pattern="/live", access=anybody, handler=self._listen, kind=RouteKind.WEBSOCKET),
            ]
        )

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Keep the engine: time, entropy, timers and commands come from it."""
        self.engine = engine
        self._door = AdmissionControl(engine, self, DEFAULT_LIMITS)

    def on_started(self) -> None:
        """There is nothing to load: let peers in."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Serve a connection; one too many is turned away."""
        return self._door.admit(fact)

    def on_stopping(self) -> None:
        """What is open is ended by the engine: sockets with 1001, requests when they are answered."""

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        """The principal of a request, or `Refused`."""
        return ANONYMOUS

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Every refusal as JSON, those of the protocol included."""
        return json_response(refused.status, {"error": refused.code, "message": refused.message}, refused.headers)

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Of every answer."""
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
        """A flow waits without a thread, and is dropped when its caller goes away."""
        yield from sleep(self.engine, PAUSE)
        return empty_response()

    def _listen(self, request: Request) -> Listening:
        return Listening(self._listeners)


class Listening:
    """One WebSocket: `svc_proto.engine.WebSocketHandler`."""

    socket: WebSocketConnection

    def __init__(self, listeners: list[Listening]) -> None:
        self._listeners = listeners

    def tell(self, text: str) -> None:
        """A note was written. Who reads nothing misses it: memory has a bound."""
        if self.socket.writable:
            self.socket.send_text(text)

    def on_open(self, socket: WebSocketConnection) -> None:
        """Listen from now on."""
        self.socket = socket
        self._listeners.append(self)

    def on_text(self, text: str) -> None:
        """Listeners only listen."""

    def on_binary(self, data: bytes) -> None:
        """Nothing, as above."""

    def on_writable(self) -> None:
        """It reads again."""

    def on_closed(self, code: int, reason: str) -> None:
        """It is gone, however that came."""
        self._listeners.remove(self)


def main(port: int, runtime: str = "threads") -> int:
    """Serve until Ctrl-C; the exit code."""
    listener = bind("127.0.0.1", port)
    print(f"http://{listener.address.host}:{listener.address.port}/notes", flush=True)
    with listener.sock:
        return run(Program(core=Engine(Notes(), entropy=os.urandom), listeners=[listener]), runtime)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), *sys.argv[2:]))
