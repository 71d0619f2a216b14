"""Environment of a test in this folder: a relay, peers and phones on some loop, or in the simulator.

`tests.loops.live_environment` is the real one, `tests.loops.simulated_environment` the simulated one.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from clients.phone.emulator import EmulatedPhone
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import Level, Notify
from svc_proto.engine.core import Service
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.clients import PATIENCE, ByteConnection, Declined, HttpClient, PairsIn, WebSocketTestClient
from tests.support.http_codec import Response

LOOPBACK = "127.0.0.1"
REMOTE = "remote"  # a peer that is not loopback: another host, or a source address that the relay treats as one
# A user that armed Device Control and allows every command.
TRUSTING = SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW)
MakePhone = Callable[[PhoneConfig], Service]
MakeService = Callable[[int, str], Service]
RELAY_PORT, API_PORT = 8767, 8642
API_VARIABLES = {  # environment variables of members of `ApiConfig`
    "key": "API_SERVER_KEY",
    "model_base_url": "SVC_MODEL_BASE_URL",
    "model": "SVC_MODEL",
    "model_api_key": "SVC_MODEL_API_KEY",
    "relay_url": "SVC_RELAY_URL",
    "relay_token": "SVC_RELAY_TOKEN",
}


@frozen
class ProgramLogLine:
    level: int
    event: str
    fields: Mapping[str, object]


@frozen
class ServiceLaunch:
    """A service to run: `make` builds it from its port and its home folder."""

    name: str
    make: MakeService
    port: int  # real loops select it themselves
    tls: bool = False
    ipv6: bool = False
    durable: bool = False  # its stored data outlives it
    apart: bool = False  # on its own host, where a simulation has others than the relay's
    rooms: tuple[str, ...] = ()  # see `runtimes.host.host.Services`


class ProgramHandle(ABC):
    """Handle of a program that was started in an environment: its logs, its stop and its exit code."""

    @property
    @abstractmethod
    def logs(self) -> list[ProgramLogLine]:
        """Return the records that the program logged since its last start; none of a process of its own."""

    @abstractmethod
    def begin_stop(self, grace: float = 5.0) -> None:
        """Request a stop, which may take `grace` seconds, and return at once.

        A process of its own gets SIGTERM and keeps its own limit; without `grace` it is killed.
        """

    @abstractmethod
    def exit_code(self, timeout: float = PATIENCE) -> int:
        """Wait until the program has ended, and return its exit code."""

    def stop(self, grace: float = 5.0) -> int:
        self.begin_stop(grace)
        return self.exit_code(grace + PATIENCE)


class RelayHandle(ProgramHandle):
    """Handle of a server, such as a relay, that was ready when the handle was created."""

    port: int

    @abstractmethod
    def kill(self) -> None:
        """End the process without cleanup, as `kill -9` does. Raise NotImplementedError for a server in a thread."""

    @abstractmethod
    def restart(self) -> None:
        """Start the ended server again at the same port, with its stored data if these outlive it."""


class PhoneHandle(ProgramHandle):
    """Handle of a phone's program; `news` has its notifications, oldest first."""

    news: list[Notify]

    @property
    def token(self) -> str:
        """Return the token in the newest notification that has one."""
        return str(next(news for news in reversed(self.news) if "token" in news.fields).fields["token"])

    def count(self, event: str) -> int:
        return sum(news.event == event for news in self.news)


class ServedProgram:
    """A server that was started in an environment, with requests to it; `server` is its handle."""

    def __init__(self, world: Environment, server: RelayHandle) -> None:
        self._world = world
        self.server = server

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def headers(self) -> dict[str, str]:
        """Return the header fields of requests without their own: none here."""
        return {}

    def client(self, peer: str = LOOPBACK) -> HttpClient:
        """Open a connection from `peer` to the server, for several requests."""
        wire = self._world.connect(peer, port=self.port)
        return HttpClient(wire, f"127.0.0.1:{self.port}", self._world.entropy)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: PairsIn = None,
        peer: str = LOOPBACK,
        timeout: float = PATIENCE,
    ) -> Response:
        shown = self.headers if headers is None else headers
        return self.client(peer).ask_once(method, path, body, headers=shown, timeout=timeout)


class ApiHandle(ServedProgram):
    """A started API server; requests without their own header fields have its key, if it has one."""

    def __init__(self, world: Environment, server: RelayHandle, key: str) -> None:
        super().__init__(world, server)
        self._key = key

    @property
    def headers(self) -> dict[str, str]:
        return bearer(self._key) if self._key else {}

    def session(self, **fields: object) -> str:
        """Create a session and return its id."""
        answer = self.request("POST", "/api/sessions", fields)
        assert answer.status == 201, answer
        return str(json.loads(answer.body)["id"])

    def turn(self, session: str, message: str, **fields: object) -> list[tuple[str, dict[str, Any]]]:
        """Run a turn, and return the events of its stream."""
        answer = self.request("POST", f"/api/sessions/{session}/chat/stream", {"message": message, **fields})
        assert answer.status == 200, answer
        events = EventStreamDecoder().receive_data(answer.body)
        return [(event.event, json.loads(event.data)) for event in events]

    def messages(self, session: str) -> list[dict[str, Any]]:
        answer = self.request("GET", f"/api/sessions/{session}/messages")
        assert answer.status == 200, answer
        rows: list[dict[str, Any]] = json.loads(answer.body)["messages"]
        return rows


class Environment(ABC):
    """Environment in which a test runs services and their peers: a real host or a simulated network."""

    name: str
    virtual_time: bool
    entropy: Entropy
    relay: RelayHandle
    home: str  # of services, on the relay's host
    peer_host: str  # host of the servers that `peer` starts

    def __init__(self) -> None:
        self.expected_errors: set[str] = set()
        self._codes = (f"C{number:05}" for number in itertools.count())
        self._relays: list[RelayHandle] = []  # and other servers, in the order of their start
        self._phones: list[PhoneHandle] = []

    # --- implemented by each world ---

    @abstractmethod
    def launch(self, service: ServiceLaunch) -> RelayHandle:
        """Start a service: in the simulator on the relay's host with its store, or on another host if it is `apart`."""

    @abstractmethod
    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        """Start a server that can be killed: by `make` in the simulator, else as a process that runs `module`."""

    @abstractmethod
    def write_home(self, name: str, text: str) -> None:
        """Write a text file into the service home."""

    @abstractmethod
    def contents(self, path: str) -> bytes:
        """Return the bytes of a file on the relay's host, empty if there is none.

        On a real disk, assert that its mode is 600.
        """

    @abstractmethod
    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> ByteConnection:
        """Open a connection to the relay from `LOOPBACK`, `REMOTE` or, on real loops, `::1` if the relay listens there.

        `port` selects another service on the relay's host.
        """

    @abstractmethod
    def start_phone(self, config: PhoneConfig, make_phone: MakePhone) -> PhoneHandle:
        """Start the program of a phone with the service that `make_phone` builds."""

    @abstractmethod
    def phone_url(self, *, tls: bool = False) -> str:
        """Return the URL of the relay for phones."""

    @abstractmethod
    def wait_until(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait until `so()` is true; on real loops it is called at first, and after each notification or log record.

        Processes of their own give neither.

        Raise TimeoutError after `timeout` seconds.
        """

    # --- common to all worlds ---

    def close(self) -> None:
        """Stop all programs at once; assert that the `logs` of their handles have no error but `expected_errors`."""
        programs: list[ProgramHandle] = [*self._phones, *self._relays]
        for program in programs:
            program.begin_stop(0.0)
        for program in programs:
            program.exit_code()
        for program in programs:
            logs = program.logs
            errors = [line for line in logs if line.level >= Level.ERROR and line.event not in self.expected_errors]
            assert not errors, f"{type(program).__name__}: {errors}"

    def set_variables(self, **variables: str) -> None:
        """Replace `.env` of the service home by these variables, such as keys and addresses of providers."""
        self.write_home(".env", "".join(f"{name}={value}\n" for name, value in variables.items()))

    def authority(self, peer: str = LOOPBACK) -> str:
        """Return the value of `Host` that a peer at this address sends to the relay."""
        host = {LOOPBACK: "127.0.0.1", "::1": "[::1]"}.get(peer, "relay.example")
        return f"{host}:{self.relay.port}"

    def client(self, peer: str = LOOPBACK, *, tls: bool = False) -> HttpClient:
        """Open a connection from `peer` to the relay, for several requests."""
        return HttpClient(self.connect(peer, tls=tls), self.authority(peer), self.entropy)

    def http(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: PairsIn = None,
        peer: str = LOOPBACK,
        timeout: float = PATIENCE,
    ) -> Response:
        """Send one request to the relay on a connection of its own, and return the response."""
        return self.client(peer).ask_once(method, path, body, headers=headers, timeout=timeout)

    def start_relay(
        self,
        *,
        limits: Limits = DEFAULT_LIMITS,
        tls: bool = False,
        ipv6: bool = False,
        durable: bool = False,
        killable: bool = False,
        **config: Any,
    ) -> RelayHandle:
        """Start the relay; `config` has members of `RelayConfig`. Its sessions outlive it if `durable` or `killable`.

        With `killable` it can be killed; on real loops it is then a process with the configuration of the program, for
        which the other arguments do not count.
        """
        if ipv6:
            config["host"] = "::1"

        def make(port: int, home: str) -> Service:
            return Relay(self.relay_config(port, home, **config), limits=limits)

        if killable:
            self.relay = self.start_program("servers.relay", {}, make, port=RELAY_PORT)
        else:
            rooms = self.relay_config(RELAY_PORT, self.home, **config).voice.folders
            service = ServiceLaunch("relay", make, RELAY_PORT, tls=tls, ipv6=ipv6, durable=durable, rooms=rooms)
            self.relay = self.launch(service)
        return self.relay

    def relay_config(self, port: int, home: str, **config: Any) -> RelayConfig:
        """Return the configuration of a relay in this environment; `config` has further members."""
        return RelayConfig(port=port, home=home, config_path=f"{home}/config.yaml", **config)

    def start_service(self, name: str, make: MakeService, *, port: int) -> RelayHandle:
        return self.launch(ServiceLaunch(name, make, port))

    def api(
        self, *, limits: Limits = DEFAULT_LIMITS, durable: bool = False, killable: bool = False, **config: Any
    ) -> ApiHandle:
        """Start an API server, which uses the relay if there is one; `config` has members of `ApiConfig`.

        Its sessions outlive it if `durable` or `killable`; a killable one accepts the members of `API_VARIABLES` only.
        With a `cluster` it is one of the cluster's nodes.
        """
        relay = getattr(self, "relay", None)
        if relay is not None:
            config.setdefault("relay_url", f"http://127.0.0.1:{relay.port}")

        def make(port: int, home: str) -> Service:
            settings = self.api_config(port, home, **config)
            return Api(settings, limits=limits)

        if killable:
            env = {API_VARIABLES[name]: str(value) for name, value in config.items()}
            server = self.start_program("servers.api", env, make, port=API_PORT)
        else:
            server = self.launch(ServiceLaunch("api", make, API_PORT, durable=durable))
        return ApiHandle(self, server, str(config.get("key", "")))

    def api_config(self, port: int, home: str, **config: Any) -> ApiConfig:
        """Return the configuration of an API server in this environment; `config` has further members."""
        node_url = f"http://127.0.0.1:{port}" if config.get("cluster") else ""
        return ApiConfig(port=port, node_url=node_url, home=home, config_path=f"{home}/config.yaml", **config)

    def peer(self, service: Service, *, port: int = 9000) -> str:
        """Start a scripted server and return its URL, `http://…`; in the simulator it is not on the relay's host."""
        server = self.launch(ServiceLaunch("peer", lambda port, home: service, port, apart=True))
        return f"http://{self.peer_host}:{server.port}"

    def clients(self) -> int:
        """Return the number of WebSockets that have signed in at the relay, from `/health`."""
        count = self.http("GET", "/health").json["clients"]
        assert isinstance(count, int)
        return count

    def websocket(
        self,
        path: str = "/ws",
        *,
        peer: str = LOOPBACK,
        headers: PairsIn = None,
        deflate: bool = True,
        tls: bool = False,
    ) -> WebSocketTestClient:
        """Open a WebSocket to the relay. Raise `Declined` if the relay refuses."""
        wire = self.connect(peer, tls=tls)
        try:
            client = HttpClient(wire, self.authority(peer), self.entropy, deflate=deflate)
            return WebSocketTestClient(client, path=path, headers=headers)
        except Declined:
            wire.close()  # else a stop would wait for it
            raise

    def register(self, code: str | None = None, *, tls: bool = False, **meta: object) -> str:
        """Register a pairing code at the relay and return it; without `code`, a new one."""
        code = code or next(self._codes)
        answer = self.client(tls=tls).ask_once("POST", "/pairing/register", {"code": code, **meta})
        assert answer.status == 200, answer
        return code

    def pair(
        self,
        name: str = "Tablet",
        *,
        surface: str = "desktop",
        deflate: bool = True,
        peer: str = LOOPBACK,
        tls: bool = False,
        **meta: Any,
    ) -> WebSocketTestClient:
        """Return a new WebSocket that has paired, with its `token`. `meta` is registered with its pairing code."""
        code = self.register(tls=tls, **meta)
        ws = self.websocket(peer=peer, deflate=deflate, tls=tls)
        identity = {"device_name": name, "device_id": f"id of {name}", "client_surface": surface}
        message = ws.sign_in(pairing_code=code, **identity)
        assert message["type"] == "auth.ok", message
        return ws

    def fake_phone(self, name: str = "Tablet", **options: Any) -> WebSocketTestClient:
        """Return a WebSocket that has paired as a phone; the test answers its bridge commands."""
        return self.pair(name, surface="android", **options)

    def phone(
        self,
        *,
        code: str | None = None,
        token: str | None = None,
        backend: EmulatedPhone | None = None,
        safety: SafetySettings = TRUSTING,
        make: MakePhone | None = None,
        name: str = "Reference phone",
        wait: bool = True,
        tls: bool = False,
    ) -> PhoneHandle:
        """Start the reference phone; with neither code nor token, it gets a new code. With `wait`, it is online.

        `make` builds the service in place of a `Phone` with this backend and these settings.
        """
        if code is None and token is None:
            code = self.register()
        config = PhoneConfig(
            remote=self.phone_url(tls=tls), code=code, token=token, device_name=name, device_id=f"id of {name}"
        )
        device = backend or EmulatedPhone(name=name)
        phone = self.start_phone(config, make or (lambda config: Phone(config, device, safety)))
        if wait:
            self.wait_until(lambda: bool(phone.count("paired") + phone.count("online")))
        return phone

    def eventually(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait until `so()` is true, by repeated calls. Raise TimeoutError after `timeout` seconds.

        It is for changes without notification: on a disk, among processes, or in a peer.
        """
        deadline = self.clock() + timeout
        while not so():
            if self.clock() > deadline:
                raise TimeoutError(f"still not so after {timeout} s")
            self.pause()

    @abstractmethod
    def pause(self) -> None:
        """Wait shortly between two calls of a condition."""

    @abstractmethod
    def clock(self) -> float:
        """Return the time of this environment in monotonic seconds."""


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
