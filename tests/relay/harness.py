"""A started relay with clients in memory: bytes pass both ways, and `after` advances the clock.

    book = RelayHarness()
    answer = book.request("GET", "/health")
    phone = book.pair().phone
    call = book.call("GET", "/ping", token=...)      # waits for the phone
    phone.reply(phone.command(), 200, {"ok": True})
    assert call.answer.status == 200

`tests.support.core_harness` has the base class.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from attrs import frozen

from runtimes.failures import HostError
from svc_proto.facts import Address, FailureKind, Started
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.limits import Limits
from tests.relay.phone_client import PhoneClient
from tests.support.core_harness import HOME, SECRET, SPOOL
from tests.support.http_harness import FIRST, Fields, HttpCall, HttpHarness
from tests.support.playbook import LOCAL, PATIENT, PEER, REMOTE, START

__all__ = [
    "FIRST", "HOME", "HOST", "LOCAL", "PEER", "REMOTE", "SECRET", "SPOOL", "START", "HttpCall", "PairedPhone",
    "PhoneClient", "RelayHarness", "paired_relay",
]  # fmt: skip

HOST = b"127.0.0.1:8767"


@frozen
class PairedPhone:
    """Client right after its pairing, a phone by default."""

    phone: PhoneClient
    token: str
    ok: dict[str, Any]  # payload of auth.ok

    @property
    def prefix(self) -> str:
        return self.token[:8]


class RelayHarness(HttpHarness):
    """Harness of a relay, its host and its peers."""

    host_name = HOST

    def __init__(
        self,
        config: RelayConfig | None = None,
        *,
        records: Iterable[Mapping[str, object]] = (),
        files: Mapping[str, bytes | str] | None = None,
        entropy: Callable[[int], bytes] | None = None,
        limits: Limits = PATIENT,
        keys: PairingApiKeys | None = None,
        started: bool = True,
    ) -> None:
        config = config or RelayConfig(home=HOME, config_path=f"{HOME}/config.yaml")
        self.relay = Relay(config, limits=limits, keys=keys)
        super().__init__(self.relay, files=files, entropy=entropy)
        self.store = {cast("str", record["token_hash"]): record for record in records}
        self.profile_folders: list[str] = []
        self.engines: dict[str, object] = {}  # installed speech engines
        self.host.compute |= {
            "voice.engines": lambda: self.engines,
            "list_folders": lambda path: tuple(self.profile_folders),
            "which": _nowhere,
        }
        if started:
            self.feed(Started())
            assert self.ready

    @property
    def store(self) -> dict[str, Any]:
        """Return the records of sessions by the hash of their token."""
        return self.host.store.sessions

    @store.setter
    def store(self, records: dict[str, Any]) -> None:
        self.host.store.sessions = records

    @property
    def uploads(self) -> list[str]:
        """Return the paths in the spool folder."""
        return self.host.disk.paths(SPOOL)

    # --- clients ---

    def open_websocket(
        self, path: str = "/ws", *, peer: Address = REMOTE, headers: Fields = (), tls: bool = False, host: bytes = HOST
    ) -> PhoneClient:
        """Request a WebSocket, which may be refused."""
        phone = self.connect_http1(PhoneClient, peer, tls=tls)
        phone.send_events(RequestHead(FIRST, "GET", path, Headers([(b"host", host), *headers]), websocket=True))
        return phone

    def websocket(
        self, path: str = "/ws", *, peer: Address = REMOTE, headers: Fields = (), tls: bool = False
    ) -> PhoneClient:
        """Open a WebSocket, and require that it is accepted."""
        phone = self.open_websocket(path, peer=peer, headers=headers, tls=tls)
        assert phone.is_open, phone.events
        return phone

    def register(self, code: str = "Q7M2ZK", meta: Mapping[str, object] | None = None) -> str:
        """Register a pairing code as the operator does, and return it."""
        assert self.request("POST", "/pairing/register", {"code": code, **(meta or {})}).status == 200
        self.secrets.add(code)
        return code

    def pair(
        self, *, operator: Mapping[str, object] | None = None, peer: Address = REMOTE, **device: object
    ) -> PairedPhone:
        """Register a code and pair a client over a new WebSocket, by default an Android phone.

        `operator` adds members to the registration; `device` adds or replaces members of `system/auth`.
        """
        code = self.register(meta=operator)
        payload = {"client_surface": "android", "device_form_factor": "phone", **device}
        phone = self.websocket(peer=peer)
        answer = phone.auth(pairing_code=code, **payload)
        assert answer["type"] == "auth.ok", answer
        ok = answer["payload"]
        self.secrets.add(ok["session_token"])
        return PairedPhone(phone, ok["session_token"], ok)

    def reconnect(self, token: str, *, peer: Address = REMOTE) -> PhoneClient:
        """Authenticate a new WebSocket with a session token."""
        phone = self.websocket(peer=peer)
        assert phone.auth(session_token=token)["type"] == "auth.ok"
        return phone

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions as the operator's route lists them."""
        return cast("list[dict[str, Any]]", self.request("GET", "/sessions").json["sessions"])

    def activity(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self.request("GET", "/bridge/activity").json["activity"])


def paired_relay(**terms: Any) -> tuple[RelayHarness, PairedPhone]:
    """Return a new relay and the client that it has paired; `terms` are the arguments of `RelayHarness.pair`."""
    book = RelayHarness()
    return book, book.pair(**terms)


def _nowhere(name: str) -> object:
    raise HostError(FailureKind.NOT_FOUND)
