"""Context of a check: one client that acts alone in a simulated deployment after its script.

All faults are over and all actors but the reference phone have disconnected, so each response is predictable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, TypeAlias

from fuzz.simulation.actors.actor_context import ActorContext, no_further_checks
from fuzz.simulation.deployment import API, API_KEY, LOCAL, REMOTE, Deployment
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import violated
from runtimes.sim.host import SimHost
from tests.support.sim_http import RequestClient, ServerAddress, WebSocketClient

LATEST = 60.0  # s that any answer may take, by default
SHOWN = 600  # characters of actual and expected value in a message
COMING_UP = 120.0  # s in which a stopped program is restarted

Kind: TypeAlias = "Callable[[CheckContext], None]"


class SocketClient:
    """WebSocket of the relay, or of a voice session; `heard` has the unread messages, except `profiles.updated`."""

    def __init__(self, context: CheckContext, host: SimHost, path: str, headers: Mapping[str, str]) -> None:
        self.heard: list[dict[str, Any]] = []
        self.profiles: list[dict[str, Any]] = []  # messages that may arrive at any time
        self.opened = False
        self.host = host
        self._context = context
        world = context.world
        self.talker = WebSocketClient(
            world.connection_for(host, REMOTE, fresh=True),
            REMOTE,
            path=path,
            headers=headers,
            on_open=lambda talker: setattr(self, "opened", True),
            on_message=lambda talker, message: self._on_message(message),
            on_end=self._on_end,
        )
        if not self.talker.is_closed:
            world.add_client(self.talker)

    def _on_end(self, talker: WebSocketClient) -> None:
        self._context.world.lines.pop(talker, None)

    def _on_message(self, message: dict[str, Any]) -> None:
        if message.get("type") == "profiles.updated":
            self.profiles.append(message)
            return
        self.heard.append(message)

    @property
    def is_closed(self) -> bool:
        """Report whether the WebSocket has ended."""
        return self.talker.is_closed

    def send_envelope(self, channel: str, kind: str, payload: object, identity: str = "i") -> None:
        """Send an envelope with channel, type, payload and id."""
        self.talker.send_envelope(channel, kind, payload, identity)

    def answer_command(self, command: Mapping[str, Any], result: object, status: int = 200) -> None:
        """Answer a bridge command as a phone, with `result` and `status`."""
        self.send_envelope(
            "bridge", "bridge.response", {"request_id": command["request_id"], "status": status, "result": result}
        )

    def answer_next_command(self, result: object, status: int = 200) -> dict[str, Any]:
        """Wait for the next command, answer it as a phone, and return it."""
        command: dict[str, Any] = self.next_message()["payload"]
        self.answer_command(command, result, status)
        return command

    def next_message(self, within: float = LATEST) -> dict[str, Any]:
        """Return the next unread message other than `profiles.updated`.

        Fail if none arrives within `within` seconds or before the WebSocket ends.
        """
        self._context.wait_until(lambda: bool(self.heard) or self.is_closed, within, "nothing is said")
        if not self.heard:
            so = f"{self.talker.status}, {self.talker.close_code}"
            self._context.fail(f"a socket ended with {so}, and something was to be said")
        return self.heard.pop(0)

    def disconnect(self) -> None:
        """Disconnect from the server."""
        self.talker.disconnect()

    def expect_close(self, code: int, about: str, within: float = 10.0) -> None:
        """Check that the server closes the WebSocket within `within` seconds with this code."""
        self._context.wait_closed(self, within, f"{about} does not come")
        self._context.expect_equal(self.talker.close_code, code, about)


class CheckContext:
    """Client that performs one check: requests, waits and expectations."""

    def __init__(
        self, crowd: ActorContext, name: str, pass_until: Callable[[float], None], supervise: Callable[[], None]
    ) -> None:
        self.crowd = crowd
        self.world: Deployment = crowd.world
        self.name = name
        self.rng = Random(f"audit {name} {crowd.world.script.seed}")
        self._pass_until = pass_until
        self._supervise = supervise
        self._hosts = 0

    # --- time ---

    @property
    def now(self) -> float:
        """Return the monotonic time in seconds."""
        return self.world.sim.now

    def sleep(self, seconds: float) -> None:
        """Advance the simulation by some seconds."""
        self._pass_until(self.now + seconds)

    def wait_until(self, so: Callable[[], bool], within: float = LATEST, why: str = "it is not so") -> None:
        """Run the simulation until the condition holds, checked after each event.

        Fail after `within` seconds, or if no event is left.
        """
        sim, until = self.world.sim, self.now + within
        while not so():
            if sim.now >= until or not sim.step():
                self.fail(f"{why}, after {within:.0f} s")

    def wait_closed(self, what: RequestClient | SocketClient, within: float, why: str) -> None:
        """Wait until a request or WebSocket has ended; fail after `within` seconds."""
        self.wait_until(lambda: what.is_closed, within, why)

    def restart(self, name: str, *, kill: bool = False) -> None:
        """Stop or kill the program `name` (`relay` or `api`), and wait until it runs again."""
        world, before = self.world, getattr(self.world, name)
        world.stop_program(name, 0.5, kill=kill)
        self.wait_until(lambda: not before.alive, COMING_UP, f"the {name} does not stop")
        self.wait_started()

    def wait_started(self) -> None:
        """Wait until relay and API run; fail after `COMING_UP` seconds."""
        world, until = self.world, self.now + COMING_UP
        self._supervise()
        while not world.are_programs_up:
            if self.now > until:
                self.fail("a program does not come back")
            world.sim.run_for(0.2)
            self._supervise()
        self.sleep(1.0)  # until all disconnected clients have reacted

    # --- requests ---

    def new_host(self) -> SimHost:
        """Return a new host, with an address that no other host has."""
        self._hosts += 1
        number = len(self.world.sim.hosts)
        return self.world.sim.host(f"{self.name}-{self._hosts}", f"10.0.{9 + number // 200}.{1 + number % 200}")

    def start_request(
        self,
        where: tuple[SimHost, ServerAddress],
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        piece: Callable[[bytes], None] | None = None,
    ) -> RequestClient:
        """Send a request without waiting for its response, and return the request."""
        host, target = where
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = headers or {}
        return self.world.request(
            host, target, method, path, headers=fields, body=data, done=no_further_checks, piece=piece
        )

    def wait_response(self, caller: RequestClient, within: float = LATEST) -> RequestClient:
        """Run the simulation until the response to a request is complete, and return the request.

        Fail without a response within `within` seconds.
        """
        self.wait_until(lambda: caller.is_closed, within, f"{caller.method} {caller.path} has no answer")
        if not caller.status:
            self.fail(f"{caller.method} {caller.path} has no answer, and nothing is broken")
        return caller

    def request_locally(self, method: str, path: str, body: object = None, **headers: str) -> RequestClient:
        """Send a request of an operator's program to the relay, wait for its response, and return the request."""
        fields = {**self.local_headers(), **_fields(headers)}
        return self.wait_response(self.start_request((self.world.home, LOCAL), method, path, body, fields))

    def local_headers(self) -> dict[str, str]:
        """Return the authentication headers of an operator's program."""
        return self.world.local_headers()

    def request(self, token: str, method: str, path: str, body: object = None, **headers: str) -> RequestClient:
        """Send a remote agent's request to the relay, with a token unless it is empty; return the answered request."""
        return self.wait_response(self.start_request_as(token, method, path, body, **headers))

    def start_request_as(
        self, token: str, method: str, path: str, body: object = None, **headers: str
    ) -> RequestClient:
        """Send a remote agent's request to the relay with a token, if any, without waiting; return the request."""
        fields = {**({"authorization": f"Bearer {token}"} if token else {}), **_fields(headers)}
        return self.start_request((self.world.agent, REMOTE), method, path, body, fields)

    def request_api(self, method: str, path: str, body: object = None, **headers: str) -> RequestClient:
        """Send a request with the API's key to the API, wait for its response, and return the request."""
        return self.wait_response(self.start_api_request(method, path, body, None, **headers), 600.0)

    def start_api_request(
        self, method: str, path: str, body: object = None, piece: Callable[[bytes], None] | None = None, **headers: str
    ) -> RequestClient:
        """Send a request to the API without waiting for its response, and return the request."""
        fields = {"authorization": f"Bearer {API_KEY}", **_fields(headers)}
        return self.start_request((self.world.home, API), method, path, body, fields, piece)

    def open_socket(self, host: SimHost, path: str = "/ws", **headers: str) -> SocketClient:
        """Open a WebSocket, and wait until it is open, or refused."""
        seat = SocketClient(self, host, path, _fields(headers))
        self.wait_until(lambda: seat.opened or seat.is_closed, why="a socket is neither opened nor refused")
        return seat

    def expect_refused(self, host: SimHost, path: str, token: str, status: int, about: str) -> None:
        """Check that a WebSocket with that token is refused with `status`."""
        seat = self.open_socket(host, path, authorization=f"Bearer {token}")
        self.expect_equal((seat.is_closed, seat.talker.status), (True, status), about)

    @property
    def child_processes(self) -> list[int]:
        """Return the process ids of the child processes on the relay's host."""
        return [child.pid for child in self.world.home.children]

    # --- expectations ---

    def fail(self, detail: str) -> None:
        """Raise a violation with `detail`."""
        violated(Invariant.AS_PREDICTED, f"{self.name}: {detail}")

    def expect_equal(self, told: object, is_: object, about: str) -> None:
        """Check that the actual value equals the expected one."""
        if told != is_:
            self.fail(
                f"{about}: told is {_short(self.difference(told, is_))}, and it is {_short(self.difference(is_, told))}"
            )

    @classmethod
    def difference(cls, one: object, other: object) -> object:
        """Return the parts of `one` that differ from `other`: by member of objects, by index of equally long lists.

        For other values, return `one`.
        """
        if isinstance(one, dict) and isinstance(other, dict):
            keys = [key for key in one if key not in other or one[key] != other[key]]
            return {key: cls.difference(one[key], other.get(key)) for key in keys}
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            return [(place, cls.difference(a, b)) for place, (a, b) in pairs if a != b]
        return one

    def expect_status(self, caller: RequestClient, status: int, code: str | None = None, about: str = "") -> Any:
        """Check the status of a response, and its error code if `code` is given; return its JSON body."""
        told = caller.answer.json
        error = told.get("error") if isinstance(told, dict) else None
        named = error.get("code") if isinstance(error, dict) else told.get("code") if isinstance(told, dict) else None
        if caller.status != status or (code is not None and named != code):
            so = f"{caller.status} {caller.answer.body!r:.300}"
            self.fail(f"{about or 'it'} is answered {status} {code or ''}: {caller.method} {caller.path}: {so}")
        return told

    def chance(self, probability: float) -> bool:
        """Return True with this probability, else False."""
        return self.rng.random() < probability

    def pick(self, choices: Iterable[Any]) -> Any:
        """Return one of the choices, at random."""
        return self.rng.choice([*choices])

    def new_word(self) -> str:
        """Return a new word, which no other client of the simulation uses."""
        return f"audit{self.crowd.next_number()}x"


def header(caller: RequestClient, name: str) -> str:
    """Return a header field of a response; empty if it is missing."""
    return (caller.answer.headers.get(name.encode()) or b"").decode()


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
