"""The world that a test of this folder runs in: a relay, peers and phones on some loop, or in the simulator.

`tests.loops.live_environment` is the real one (sockets on 127.0.0.1, the relay and each phone in a thread of their own
with their own loop), `tests.loops.simulated_environment` the simulated one. Tests use nothing but this interface, so
they are the same for all.
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
from tests.support.http_client import Response

LOOPBACK = "127.0.0.1"
REMOTE = "remote"  # a peer that is not loopback: another host, or a source address that the relay takes for one
TRUSTING = SafetySettings(
    armed=True, answers=ConfirmationPolicy.ALLOW
)  # a person who turned Device Control on and allows all
MakePhone = Callable[[PhoneConfig], Service]
MakeService = Callable[[int, str], Service]
RELAY_PORT, API_PORT = 8767, 8642
API_VARIABLES = {  # of members of `ApiConfig`
    "key": "API_SERVER_KEY",
    "model_base_url": "SVC_MODEL_BASE_URL",
    "model": "SVC_MODEL",
    "model_api_key": "SVC_MODEL_API_KEY",
    "relay_url": "SVC_RELAY_URL",
    "relay_token": "SVC_RELAY_TOKEN",
}


@frozen
class ProgramLogLine:
    """A log record of a program."""

    level: int
    event: str
    fields: Mapping[str, object]


@frozen
class ServiceLaunch:
    """A service as it is to run: `make` gets its port and its home folder."""

    name: str
    make: MakeService
    port: int  # real loops pick it themselves
    tls: bool = False
    ipv6: bool = False
    durable: bool = False  # what it stores outlives it
    apart: bool = False  # it has a host of its own, where only a simulation has another than the relay's
    rooms: tuple[str, ...] = ()  # see `runtimes.host.host.Services`


class ProgramHandle(ABC):
    """A program that was started."""

    @property
    @abstractmethod
    def logs(self) -> list[ProgramLogLine]:
        """What it has logged since it was started last."""

    @abstractmethod
    def begin_stop(self, grace: float = 5.0) -> None:
        """Ask it to stop, and go on."""

    @abstractmethod
    def exit_code(self, timeout: float = PATIENCE) -> int:
        """Wait for its end."""

    def stop(self, grace: float = 5.0) -> int:
        """Ask it to stop and wait for it."""
        self.begin_stop(grace)
        return self.exit_code(grace + PATIENCE)


class RelayHandle(ProgramHandle):
    """A relay, or another server. It is ready when its port takes connections."""

    port: int
    api_port = 0  # of the API in the same process, if it is there

    @abstractmethod
    def kill(self) -> None:
        """End it without a word, as `kill -9` does."""

    @abstractmethod
    def reload(self) -> None:
        """Have it read its certificates again, as SIGHUP does."""

    @abstractmethod
    def restart(self) -> None:
        """Start it again, at the same port and with the same store; it has ended before."""


class PhoneHandle(ProgramHandle):
    """The reference phone as a program of its own. `news` is what it told, oldest first."""

    news: list[Notify]

    @property
    def token(self) -> str:
        """The token that it got last."""
        return str(next(news for news in reversed(self.news) if "token" in news.fields).fields["token"])

    def count(self, event: str) -> int:
        """How often it told so."""
        return sum(news.event == event for news in self.news)


class ServedProgram:
    """A server that was started in a world, and whoever asks it; `server` is its process."""

    def __init__(self, world: Environment, server: RelayHandle) -> None:
        self._world = world
        self.server = server

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.api_port or self.server.port

    @property
    def headers(self) -> dict[str, str]:
        """What is sent by who says nothing else."""
        return {}

    def client(self, peer: str = LOOPBACK) -> HttpClient:
        """A connection for several requests."""
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
        """One request on a connection of its own."""
        shown = self.headers if headers is None else headers
        return self.client(peer).ask_once(method, path, body, headers=shown, timeout=timeout)


class ApiHandle(ServedProgram):
    """An API server, asked with its key if it has one."""

    def __init__(self, world: Environment, server: RelayHandle, key: str) -> None:
        super().__init__(world, server)
        self._key = key

    @property
    def headers(self) -> dict[str, str]:
        return bearer(self._key) if self._key else {}

    def session(self, **fields: object) -> str:
        """A new session; its id."""
        answer = self.request("POST", "/api/sessions", fields)
        assert answer.status == 201, answer
        return str(json.loads(answer.body)["id"])

    def turn(self, session: str, message: str, **fields: object) -> list[tuple[str, dict[str, Any]]]:
        """One turn: the events of its stream, from the first to `done`."""
        answer = self.request("POST", f"/api/sessions/{session}/chat/stream", {"message": message, **fields})
        assert answer.status == 200, answer
        events = EventStreamDecoder().receive_data(answer.body)
        return [(event.event, json.loads(event.data)) for event in events]

    def messages(self, session: str) -> list[dict[str, Any]]:
        """What is stored of a session."""
        answer = self.request("GET", f"/api/sessions/{session}/messages")
        assert answer.status == 200, answer
        rows: list[dict[str, Any]] = json.loads(answer.body)["messages"]
        return rows


class Environment(ABC):
    """See the module."""

    name: str
    virtual_time: bool
    entropy: Entropy
    relay: RelayHandle
    home: str  # of services, on the relay's host
    peer_host: str  # where `peer` starts its servers

    def __init__(self) -> None:
        self.expected_errors: set[str] = set()
        self._codes = (f"C{number:05}" for number in itertools.count())
        self._relays: list[RelayHandle] = []  # and other servers, as they were started
        self._phones: list[PhoneHandle] = []

    # --- the world's part ---

    @abstractmethod
    def launch(self, service: ServiceLaunch) -> RelayHandle:
        """Start a service, on the relay's host and with its store if it is not apart."""

    @abstractmethod
    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        """Start a service that can be killed: as a process of its own on real loops, where it has no `make`."""

    @abstractmethod
    def start_servers(self, *, key: str) -> RelayHandle:
        """Start relay and API as one process, as `python -m servers` does; the API's main key is `key`.

        Both can be killed, and what they store outlives them.
        """

    @abstractmethod
    def renew_certificate(self, *, usable: bool = True) -> None:
        """Put another certificate where the relay's TLS has it from, or one that does not fit its key."""

    @abstractmethod
    def write_home(self, name: str, text: str) -> None:
        """Put a file into the service home."""

    @abstractmethod
    def contents(self, path: str) -> bytes:
        """Of a file on the relay's host; empty when there is none yet. On a real one only its owner may read it."""

    @abstractmethod
    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> ByteConnection:
        """A connection to the relay from `LOOPBACK`, `REMOTE`, or where the relay listens on it `::1`.

        `port` is that of another service on its host.
        """

    @abstractmethod
    def start_phone(self, config: PhoneConfig, make_phone: MakePhone) -> PhoneHandle:
        """Start a phone; see `phone`."""

    @abstractmethod
    def phone_url(self, *, tls: bool = False) -> str:
        """Where phones find the relay."""

    @abstractmethod
    def wait_until(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait for something that a program told or logged; TimeoutError."""

    # --- for all of them ---

    def close(self) -> None:
        """End everything; fails if a program has logged an error that was not expected."""
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
        """Write `.env` of the service home, where keys and addresses of providers may be."""
        self.write_home(".env", "".join(f"{name}={value}\n" for name, value in variables.items()))

    def authority(self, peer: str = LOOPBACK) -> str:
        """The `Host` that a peer writes."""
        host = {LOOPBACK: "127.0.0.1", "::1": "[::1]"}.get(peer, "relay.example")
        return f"{host}:{self.relay.port}"

    def client(self, peer: str = LOOPBACK, *, tls: bool = False) -> HttpClient:
        """A connection for several requests."""
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
        """One request on a connection of its own."""
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
        """Start the relay; `config` are members of `RelayConfig`. Its sessions outlive it only if `durable`.

        `killable` makes it a process of its own on real loops, with the limits and the configuration of the program.
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
        """The configuration of a relay."""
        return RelayConfig(port=port, home=home, config_path=f"{home}/config.yaml", **config)

    def start_service(self, name: str, make: MakeService, *, port: int) -> RelayHandle:
        """Start any other service; real loops pick the port themselves."""
        return self.launch(ServiceLaunch(name, make, port))

    def api(
        self, *, limits: Limits = DEFAULT_LIMITS, durable: bool = False, killable: bool = False, **config: Any
    ) -> ApiHandle:
        """Start the API server, beside the relay if there is one; `config` are members of `ApiConfig`.

        Its sessions outlive it only if `durable` or `killable`; a killable one takes text members alone. With a
        `cluster` it is one of its nodes.
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
        """The configuration of an API server."""
        node_url = f"http://127.0.0.1:{port}" if config.get("cluster") else ""
        return ApiConfig(port=port, node_url=node_url, home=home, config_path=f"{home}/config.yaml", **config)

    def peer(self, service: Service, *, port: int = 9000) -> str:
        """Start a scripted server on another host, and say where the others find it: `http://…`."""
        server = self.launch(ServiceLaunch("peer", lambda port, home: service, port, apart=True))
        return f"http://{self.peer_host}:{server.port}"

    def clients(self) -> int:
        """How many sockets have signed in at the relay."""
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
        """Open a WebSocket; `Declined` when the relay answers otherwise."""
        wire = self.connect(peer, tls=tls)
        try:
            client = HttpClient(wire, self.authority(peer), self.entropy, deflate=deflate)
            return WebSocketTestClient(client, path=path, headers=headers)
        except Declined:
            wire.close()  # a stop would wait for it
            raise

    def register(self, code: str | None = None, *, tls: bool = False, **meta: object) -> str:
        """Register a pairing code."""
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
        """A paired WebSocket; `token` is on it. `meta` is attached to the code."""
        code = self.register(tls=tls, **meta)
        ws = self.websocket(peer=peer, deflate=deflate, tls=tls)
        identity = {"device_name": name, "device_id": f"id of {name}", "client_surface": surface}
        message = ws.sign_in(pairing_code=code, **identity)
        assert message["type"] == "auth.ok", message
        return ws

    def fake_phone(self, name: str = "Tablet", **options: Any) -> WebSocketTestClient:
        """A paired WebSocket that commands are sent to, for the test to answer."""
        return self.pair(name, surface="android", **options)

    def phone(
        self,
        *,
        code: str | None = None,
        token: str | None = None,
        handset: EmulatedPhone | None = None,
        safety: SafetySettings = TRUSTING,
        make: MakePhone | None = None,
        name: str = "Reference phone",
        wait: bool = True,
        tls: bool = False,
    ) -> PhoneHandle:
        """The reference phone; with neither a code nor a token it gets a fresh code. It is online, if `wait`.

        `make` gives the service in place of a plain `Phone` with this handset and these settings.
        """
        if code is None and token is None:
            code = self.register()
        config = PhoneConfig(
            remote=self.phone_url(tls=tls), code=code, token=token, device_name=name, device_id=f"id of {name}"
        )
        device = handset or EmulatedPhone(name=name)
        phone = self.start_phone(config, make or (lambda config: Phone(config, device, safety)))
        if wait:
            self.wait_until(lambda: bool(phone.count("paired") + phone.count("online")))
        return phone

    def eventually(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait for something that no program tells: what is on a disk, among the processes, or in a peer."""
        deadline = self.clock() + timeout
        while not so():
            if self.clock() > deadline:
                raise TimeoutError(f"still not so after {timeout} s")
            self.pause()

    @abstractmethod
    def pause(self) -> None:
        """Let a moment pass, before looking again."""

    @abstractmethod
    def clock(self) -> float:
        """Monotonic seconds of this world."""


def bearer(token: str) -> dict[str, str]:
    """The header that a session token travels in."""
    return {"authorization": f"Bearer {token}"}
