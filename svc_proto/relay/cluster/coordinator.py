"""Coordination between the nodes of a clustered relay over Redis: see `local_coordinator` and `svc_proto.cluster`.

- **Codes** are Redis keys, see `codes`.
- **Sessions** are in the store that all nodes share, and each node broadcasts its changes of them, see `sessions`.
- **Phones** of other nodes are in `Relay.phones` beside our own, with negative numbers. A command waits at the node
  that received it, and is sent to the node of its phone, which sends the phone's answer back.
- **Files** without shared storage, and sessions of MCP and of voice, stay where they began, see `request_forwarding`.
- **Consent requests** to the owner are at one node, and move to the node that needs them.
- **The rate limiter** of each node receives the failures that others count.

| message     | to  |                                                        |
|-------------|-----|--------------------------------------------------------|
| `failed`, `succeeded`, `cleared` | all | see `replicated_auth_rate_limiter` |
| `saved`     | all | the record of a session, and when it was stored         |
| `ended`     | all | the hash of a revoked session                           |
| `invited`   | all | a code, and the hash of its invite's key; none: its earlier key is not valid any more |
| `came`      | all | a connected phone, with its last status                 |
| `said`      | all | the new status of a phone                               |
| `left`      | all | a phone that has disconnected; to one: a command's phone that cannot get it |
| `notified`  | all | a notification from a phone                             |
| `kept`      | all | an upload in the storage that all nodes share           |
| `gone`      | all | the token of an upload that was deleted before it expired |
| `active`    | all | the phone that commands go to unless one is named       |
| `command`   | one | a command for a phone of the receiver                   |
| `consent`   | one | a consent request, which is now the receiver's          |
| `answered`  | one | the answer of a phone to a command of the receiver      |
| `activity`  | one | request: the last commands that were sent from there    |
| `online`    | one | request: the sessions that have a socket there          |
| `leaving`   | one | request: to hold back commands for phones of the sender |
| `consent`   | one | request: to hand over a consent request                 |
| `has`       | one | request: the receiver's address, if it has a file, session or terminal |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Protocol, cast

from attrs import define

from svc_proto.basics.entropy import SECRET_LENGTH
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.metrics import MetricFamily
from svc_proto.basics.moment import Moment
from svc_proto.basics.recency_heap import RecencyHeap
from svc_proto.cluster.forwarding import is_forwarded
from svc_proto.cluster.metrics import cluster_metrics
from svc_proto.cluster.node import LEASE, Node, cluster_unavailable_error
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult
from svc_proto.engine.sync import Condition, gather
from svc_proto.facts import Failure
from svc_proto.machines.bridge_commands import RESPONSE_TIMEOUT
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.paired_session_registry import TOKEN_LENGTHS
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.machines.phone_registry import ConnectedPhone
from svc_proto.machines.replicated_auth_rate_limiter import ReplicatedAuthRateLimiter
from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS
from svc_proto.relay.cluster.codes import ClusterCodes, CodesPort
from svc_proto.relay.cluster.local_coordinator import CoordinatorPort, LocalCoordinator, PhoneRoute
from svc_proto.relay.cluster.phone_moves import PhoneMoves, RemotePhonesPort
from svc_proto.relay.cluster.request_forwarding import ForwardingPort, RequestForwarder
from svc_proto.relay.cluster.sessions import LOAD_TIMEOUT, UNKNOWN, ClusterSessions, ClusterSessionsPort, load_revision
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.envelope import parse_envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress

if TYPE_CHECKING:
    from svc_proto.relay.oauth.authorization_server import AuthorizationServer
    from svc_proto.relay.session_records import SessionRecords
    from svc_proto.schema.relay_types import CommandJson

__all__ = ["ClusterCoordinator"]

START_TIMEOUT = 2.0  # s for Redis and the sessions; the start does not wait longer for them
JOIN_TIMEOUT = 1.0  # s for the states of the other nodes; a hung node does not delay the start for longer
MAX_FORWARDED = 10_000  # commands of other nodes that wait for phones of ours; the oldest is dropped
MAX_LOOKUPS = 64  # concurrent lookups of consent requests at other nodes; a further one finds nothing
PROPAGATION_DELAY = 0.25  # s until a consent request that no node had is looked up again
MAX_NAME = 64  # characters of a name to look up elsewhere; ids are shorter
MEDIA_TOKEN_LENGTH = 22  # characters, wire core 0.1


class ClusterPort(CoordinatorPort, CodesPort, ClusterSessionsPort, ForwardingPort, RemotePhonesPort, Protocol):
    """Members of the relay that the coordination of several nodes uses."""

    config: RelayConfig
    keys: PairingApiKeys | None

    @property
    def oauth(self) -> AuthorizationServer:
        """Authorization server of MCP clients."""

    @property
    def open_oauth(self) -> AuthorizationServer | None:
        """Authorization server of MCP clients, if it is loaded."""


@define(eq=False)
class _RemotePhoneRoute:
    """Route to a phone of another node, which sends each message through that node; a `PhoneRoute`."""

    coordinator: ClusterCoordinator
    node: str
    socket: int  # number of the phone at its node

    def send_text(self, text: str) -> bool:
        return self.coordinator.node.send_to(self.node, "command", {"socket": self.socket, "text": text})


class ClusterCoordinator(LocalCoordinator):
    """Coordinator of a relay that runs as several nodes."""

    relay: ClusterPort
    # These four are set by `start`.
    node: Node
    sessions: ClusterSessions
    codes: ClusterCodes
    moves: PhoneMoves

    def __init__(self, relay: ClusterPort, where: RedisAddress) -> None:
        super().__init__(relay)
        self.limiter: ReplicatedAuthRateLimiter = ReplicatedAuthRateLimiter(self.broadcast)
        self._where = where
        self._elsewhere: dict[int, _RemotePhoneRoute] = {}
        self._numbers: dict[str, dict[int, int]] = {}  # negative, by node and by number there
        self._next = 0
        self._since: RecencyHeap[int] = RecencyHeap()  # every phone, by number, on Redis's clock
        self._seeking = 0
        self._revision = UNKNOWN  # of the store, before its sessions were read
        self._are_loaded = True
        self._active = ""  # device id of the last broadcast, connected or not
        self._active_since = 0.0
        self._joined: set[str] = set()  # nodes that have sent their state since the start
        self._joined_at = -inf  # monotonic s, when a node last sent its state
        # Node and socket that the answer belongs to.
        self._passing: ExpiringMap[str, tuple[str, int]] = ExpiringMap(MAX_FORWARDED)

    def load_sessions(self, records: SessionRecords) -> Flow[Failure | None]:
        """Load the tombstones at the start, or all sessions; return a `Failure` of the store, or None.

        All are loaded if an API server beside the relay needs all keys, or if the store did not report its revision.
        """
        self._revision = yield from load_revision(self.relay.engine)  # only later changes are read after the start
        if self.relay.keys is None and self._revision != UNKNOWN:
            self._are_loaded = False
            return (yield from records.load_tombstones())
        return (yield from records.load())

    def start(self) -> Flow[None]:
        """Join the cluster; wait, for limited times, for a reading of the sessions and the states of the other nodes.

        The states are needed since the first command may be for a phone of another node.
        """
        engine = self.relay.engine
        self._state_received = Condition(engine)
        self.node = Node(engine, self._where, self, url=self.relay.config.node_url, load=self._count_phones)
        self.sessions = ClusterSessions(self.relay, self.node, self._revision, are_loaded=self._are_loaded)
        for session in self.relay.sessions.tombstones():  # the other nodes may not have received these
            self.sessions.note_end(session.token_hash)
        self.codes = ClusterCodes(self.relay, self.node)
        self._intermediary = RequestForwarder(self.relay, self.node)
        self.moves = PhoneMoves(self.relay)
        yield from self.node.start()
        yield from self.sessions.caught_up(START_TIMEOUT)
        if not self.sessions.are_loaded:
            self.sessions.read_again()  # without Redis, too
        yield from self.flush_best_effort()  # until Redis has counted the nodes that receive our `hello`
        deadline = engine.now.mono + JOIN_TIMEOUT
        while len(self._joined) < self.node.greeted and engine.now.mono < deadline:
            yield from self._state_received.wait(deadline)

    def stop(self) -> Flow[None] | None:
        """Return a flow that moves the clients to other nodes and then leaves the cluster; None before `start`."""
        return self._stop() if hasattr(self, "node") else None

    def _stop(self) -> Flow[None]:
        yield from self.moves.move_all(
            lambda sockets: self._request_all("leaving", {"sockets": sockets}), self._unanswered
        )
        self.sessions.stop()
        self.node.stop()

    def _unanswered(self) -> Iterable[int]:
        """Return the sockets of our phones from which an answer to a command of another node is awaited."""
        self._passing.purge(self.relay.engine.now.mono)
        return (number for _, (_, number) in self._passing.items())

    def broadcast(self, topic: str, body: Mapping[str, object]) -> None:
        """Send a message to every other node."""
        self.node.broadcast(topic, body)

    # --- codes ---

    def register_code(self, code: str, meta: PairingMeta) -> Flow[None]:
        """Register the code in Redis. Raise `Refused` 400 or 503."""
        return self.codes.register(code, meta)

    def consume_code(self, code: str) -> Flow[PairingMeta | None]:
        """Consume the code in Redis and return its metadata; None if it is invalid, unknown or used.

        Raise `Refused` 503.
        """
        return self.codes.consume(code)

    # --- sessions ---

    def session_saved(self, session: PairedSession) -> None:
        """Broadcast the session's record."""
        at = self.node.cluster_time
        self.sessions.note_change(session.token_hash, at)
        self.broadcast("saved", {**session.to_record(), "at": at})

    def session_ended(self, session: PairedSession) -> None:
        """Broadcast that the session was revoked, so that other nodes close its connections."""
        self.sessions.note_end(session.token_hash)
        self.broadcast("ended", {"token_hash": session.token_hash})

    def lookup_session(self, token: str, *, agents: bool = False) -> Flow[object] | None:
        """Return a flow that looks up a token's session in the store, if the text is ASCII of a session token's length.

        With `agents`, return a flow that waits until all sessions are loaded, if they are not and the text is as long
        as an OAuth access token. Return None otherwise. Both flows raise `Refused` 503.
        """
        if len(token) in TOKEN_LENGTHS and token.isascii():
            return self.sessions.lookup(token)
        waits = agents and len(token) == SECRET_LENGTH and not self.sessions.are_loaded
        return self.sessions.wait_until_loaded() if waits else None

    def wait_until_loaded(self, within: float = LOAD_TIMEOUT) -> Flow[None]:
        """Wait until all stored sessions are loaded at this node. Raise `Refused` 503 after `within` seconds."""
        return self.sessions.wait_until_loaded(within)

    def flush(self) -> Flow[None]:
        """Wait until Redis has received all messages of this connection. Raise `Refused` 503 if it does not answer."""
        if isinstance((yield from self.node.redis.execute("PING")), Failure):
            text = "it is done here, but the other nodes were not told and may go on as before: try again"
            raise Refused(503, "cluster_unavailable", text)

    def flush_best_effort(self) -> Flow[None]:
        """Wait as `flush` does, but ignore a failure."""
        yield from self.node.redis.execute("PING")

    def sync_sessions(self) -> Flow[None]:
        """Read the changed sessions from the store; wait at most `CATCH_UP_TIMEOUT` for them."""
        yield from self.sessions.catch_up()

    # --- phones ---

    def phone_connected(self, socket: int, replaced: int | None) -> None:
        """Broadcast the phone to the other nodes; select it unless another connected phone is selected."""
        self._forget(replaced)
        phone = self.relay.phones.find_by_socket(socket)
        assert phone is not None  # it has just been registered
        self._since.put(socket, self.node.cluster_time)
        self.broadcast("came", self._entry(phone))
        self.moves.end(phone.device_id)
        if self.relay.phones.find_by_device_id(self._active) in (None, phone):
            self._select(phone.device_id)
        self._prefer()

    def phone_status_changed(self, socket: int) -> None:
        """Broadcast the phone's new status."""
        phone = self.relay.phones.find_by_socket(socket)
        assert phone is not None  # its status has just been recorded
        self.broadcast("said", {"socket": socket, "status": phone.status})

    def phone_disconnected(self, socket: int) -> None:
        """Broadcast the end of a phone, if it is of this node, so that others fail the commands that wait for it."""
        if socket not in self._elsewhere:
            self.broadcast("left", {"socket": socket})
        self._forget(socket)
        self._prefer()

    def phone_selected(self) -> None:
        """Broadcast which phone is selected, so that all nodes send commands to the same phone by default."""
        self._select(self.relay.phones.active or "")

    def notification_received(self, source: str, payload: Mapping[str, object]) -> None:
        """Broadcast the notification, so that all nodes store it."""
        self.broadcast("notified", {"source": source, "posted": payload})

    def route_to_phone(self, socket: int) -> PhoneRoute | None:
        """Return the route to a phone of another node, through that node; None for any other phone."""
        return self._elsewhere.get(socket)

    def wait_for_phone(self, selector: str | None) -> Flow[None]:
        """Wait for the phone of a command if it moves from a stopping node to another one."""
        return self.moves.wait(selector, self._active)

    def explain_missing_phone(self, refused: Refused) -> Refused:
        """Replace a refusal 404 or 503 by 503 `cluster_unavailable` while this node is not connected to Redis."""
        if self.node.is_up or refused.status not in (404, 503):
            return refused
        return cluster_unavailable_error("which phone is where")

    def forward_answer(self, socket: int, payload: Mapping[str, object]) -> None:
        """Send the answer to the node that sent the command, if this phone's answer to it is still awaited."""
        request_id = JsonObject.of(payload).text("request_id")
        node, number = self._passing.get(request_id, self.relay.engine.now.mono) or ("", 0)
        if number == socket:
            self._passing.discard(request_id)
            self.node.send_to(node, "answered", {"socket": number, "payload": dict(payload)})

    def activity(self, limit: int) -> Flow[list[CommandJson]]:
        """Return the last `limit` commands of this node and of nodes that answer before the timeout, newest first."""
        records = self.relay.bridge.records(limit)
        for answer in (yield from self._request_all("activity", {"limit": limit})):
            records += cast("list[CommandJson]", answer.objects("records"))
        return sorted(records, key=_sent_at, reverse=True)[:limit]

    def online_sessions(self) -> Flow[frozenset[str]]:
        """Return the token hashes of sessions with a socket here or at a node that answers before the timeout."""
        found = self.relay.online()
        for answer in (yield from self._request_all("online", {})):
            found |= frozenset(answer.texts("hashes"))
        return found

    def forward_request(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None] | None:
        """Return a flow that forwards the request to the node that has the object: see `RequestForwarder.answer`.

        Return None without a flow for an invalid name, and for a request that was forwarded to this node. Raise
        `Refused` 503 for a file while this node is disconnected; the flow raises it at the limits.
        """
        media = what == "media"
        if is_forwarded(request) or not 0 < len(name) <= MAX_NAME or (media and len(name) != MEDIA_TOKEN_LENGTH):
            return None
        if media and not self.node.is_up:
            raise cluster_unavailable_error("which node has the file")
        return self._intermediary.answer(what, name, request)

    def terminal_owner_url(self, terminal: str) -> Flow[str]:
        """Return the address of a node that has this terminal, of those that answer in time; empty without one."""
        answers = yield from self._request_all("has", {"what": "terminal", "name": terminal})
        return next((url for answer in answers if (url := answer.text("url"))), "")

    def lookup_consent(self, by: str, value: str) -> Flow[None] | None:
        """Return a flow that fetches a consent request from other nodes; None without such nodes or at the limit."""
        return self._lookup_consent(by, value) if self.node.members and self._seeking < MAX_LOOKUPS else None

    def _lookup_consent(self, by: str, value: str) -> Flow[None]:
        """Query the other nodes; if none had the request, query them again, since it may have been in transit."""
        self._seeking += 1
        try:
            yield from self._request_all("consent", {"by": by, "value": value})
            if self.relay.oauth.consents.find(by, value, self.relay.engine.now) is None:
                yield from sleep(self.relay.engine, PROPAGATION_DELAY)
                yield from self._request_all("consent", {"by": by, "value": value})
        finally:
            self._seeking -= 1

    def _request_all(self, topic: str, body: Mapping[str, object]) -> Flow[list[JsonObject]]:
        """Send a request to all other nodes and return the answers that arrive before the timeout."""
        requests = [self.node.request(node, topic, body) for node in self.node.members]
        answers = yield from gather(self.relay.engine, requests)
        return [answer for answer in answers if not isinstance(answer, Failure)]

    def metrics(self) -> list[MetricFamily]:
        """Return the metrics of the connection to Redis and of each node, with its number of phones."""
        return cluster_metrics(self.node, "phones")

    def _count_phones(self) -> int:
        return len(self._since) - len(self._elsewhere)

    def _entry(self, phone: ConnectedPhone) -> dict[str, object]:
        now = self.relay.engine.now.mono
        return {
            "socket": phone.socket,
            "device_id": phone.device_id,
            "name": phone.name,
            "surface": phone.surface,
            "form_factor": phone.form_factor,
            "session_prefix": phone.session_prefix,
            "since": self._since.since(phone.socket),
            "status": phone.status,
            "age": None if phone.reported_at is None else now - phone.reported_at,
        }

    # --- `NodeHandler`: node events ---

    def export_state(self) -> dict[str, object]:
        """Return this node's state for another node that requests it.

        These are its phones, the selection, ended sessions, codes with API keys, moving phones and shared uploads.
        """
        phones = self.relay.phones
        mine = [phone for phone in phones.connected() if phone.socket not in self._elsewhere]
        return {
            "phones": [self._entry(phone) for phone in mine],
            "active": self._active,
            "active_since": self._active_since,
            "ended": self.sessions.ended,
            **self.codes.state(),
            **self.moves.state(),
            **({"uploads": uploads} if (uploads := self.relay.media.uploads.records()) else {}),
        }

    def apply_state(self, node: str, state: JsonObject) -> None:
        """Apply another node's state: its phones, moving phones, ended sessions, codes, uploads and selected phone."""
        self._joined_at = self.relay.engine.now.mono
        self._joined.add(node)
        self._state_received.notify_all()
        for token_hash in state.texts("ended"):
            self.sessions.end_local(token_hash)
        entries = state.objects("phones")
        connected = {entry.integer("socket"): None for entry in entries}
        for socket, number in list(self._numbers.get(node, {}).items()):
            if socket not in connected:
                self.relay.remove_phone(number)
        for entry in sorted(entries, key=_since):
            self._phone_connected(node, entry)
        self.codes.apply_state(state.objects("invites"))
        self.moves.apply_state(
            state.objects("leaving"), lambda socket: socket in self._elsewhere and self._elsewhere[socket].node == node
        )
        self.relay.media.apply_state(node, state.objects("uploads"))
        self._selected(JsonObject({"device_id": state.get("active"), "since": state.get("active_since")}))

    def on_message(self, node: str, topic: str, body: JsonObject) -> None:
        """Apply a message of another node; ignore an unknown topic, and an event or answer of an unknown phone."""
        now = self.relay.engine.now
        match topic:
            case "failed" | "succeeded" | "cleared":
                self.limiter.apply_remote(topic, body.text("address"), now)
            case "saved":
                self.sessions.apply_record(body, body.number("at") or self.node.cluster_time)
            case "ended":
                self.sessions.end_local(body.text("token_hash"))
            case "came":
                self._phone_connected(node, body)
            case "said" if (number := self._number(node, body)) is not None:
                self.relay.phones.status(number, body.get("status"), now)
                self.relay.changes.notify(DEVICES)
            case "left" if (number := self._number(node, body)) is not None:
                self.relay.remove_phone(number)
            case "notified" if self.relay.notifications.post(body.text("source"), body.get_object("posted")):
                self.relay.changes.notify(NOTIFICATIONS)
            case "kept" | "gone" | "consent" | "invited":
                self._on_object_message(node, topic, body)
            case "active":
                self._selected(body)
            case "command":
                self._command(node, body)
            case "answered" if (number := self._number(node, body)) is not None:
                payload = body.get_object("payload")
                self.relay.bridge.answer(payload.get("request_id"), number, payload, now)
            case _:
                pass  # about a phone that has disconnected, or of a later version

    def _on_object_message(self, node: str, topic: str, body: JsonObject) -> None:
        """Apply a message about an upload, an invite or a consent request."""
        match topic:
            case "kept":
                self.relay.media.adopt(node, body)
            case "gone":
                self.relay.media.forget(body.text("token"))
            case "invited":
                self.codes.key_issued(body.text("code"), body.text("key_hash"), 0.0)
            case _:
                self.relay.oauth.adopt_consent(body)

    def on_request(self, node: str, topic: str, body: JsonObject) -> dict[str, object]:
        """Perform a request of another node and return the answer; {} if there is nothing to report."""
        match topic:
            case "activity":
                return {"records": self.relay.bridge.records(body.integer("limit", 1) or 1)}
            case "consent" if (oauth := self.relay.open_oauth) is not None:
                oauth.release_consent(body.text("by"), body.text("value"), partial(self.node.send_to, node, "consent"))
                return {}
            case "leaving":
                self._hold_commands(node, body)
                return {}
            case "online":
                return {"hashes": sorted(self.relay.online())}
            case "has" if self.relay.owns_locally(body.text("what"), body.text("name")):
                return {"url": self.relay.config.node_url, **self.relay.media.uploads.answer(body)}
            case _:
                return {}

    def on_messages_missed(self) -> None:
        """Start to read the changed sessions from the store, and to compare the codes with API keys with Redis."""
        self.sessions.read_again()
        self.codes.resync()

    def on_node_lost(self, node: str) -> None:
        """Remove the phones of the node and mark its uploads as orphaned."""
        for number in list(self._numbers.get(node, {}).values()):
            self.relay.remove_phone(number)
        unheard = self._joined_at > self.relay.engine.now.mono - LEASE  # a joining node may have missed this loss
        self.relay.media.uploads.mark_orphaned(node, tell=unheard)

    def _number(self, node: str, body: JsonObject) -> int | None:
        return self._numbers.get(node, {}).get(body.integer("socket") or 0)

    def _phone_connected(self, node: str, entry: JsonObject) -> None:
        relay, socket = self.relay, entry.integer("socket")
        device_id, since = entry.text("device_id"), _since(entry)
        if socket is None or not device_id or node not in self.node.members:
            return
        if device_id == f"socket-{socket}":
            # The device has no id of its own, and the number means another phone here.
            device_id = f"{node}-{device_id}"
        before = relay.phones.find_by_device_id(device_id)
        if before is not None and self._since.since(before.socket) > since:
            return
        numbers = self._numbers.setdefault(node, {})
        number = numbers.get(socket)
        if number is None:
            self._next -= 1
            number = numbers[socket] = self._next
        self._elsewhere[number] = _RemotePhoneRoute(self, node, socket)
        self._since.put(number, since)
        if before is None or before.socket != number or before.name != entry.text("name"):
            replaced = relay.register_phone(
                number,
                device_id=device_id,
                name=entry.text("name"),
                surface=entry.text("surface"),
                form_factor=entry.text("form_factor"),
                session_prefix=entry.text("session_prefix") or None,
            )
            self._forget(replaced)
            self._prefer()
            self.moves.end(device_id)
        age, now = entry.number("age", 0.0), relay.engine.now
        if age is not None:
            relay.phones.status(number, entry.get("status"), Moment(now.mono - age, now.wall))

    def _hold_commands(self, node: str, body: JsonObject) -> None:
        for socket in body.array("sockets"):
            numbers = self._numbers.get(node, {})
            phone = self.relay.phones.find_by_socket(numbers.get(socket, 0)) if isinstance(socket, int) else None
            if phone is not None:
                self.moves.begin(phone)

    def _forget(self, socket: int | None) -> None:
        """Remove a phone from this coordinator's tables of connected and of remote phones; None is ignored."""
        if socket is None:
            return
        self._since.discard(socket)
        elsewhere = self._elsewhere.pop(socket, None)
        if elsewhere is not None:
            numbers = self._numbers[elsewhere.node]
            del numbers[elsewhere.socket]
            if not numbers:
                del self._numbers[elsewhere.node]

    def _select(self, device_id: str) -> None:
        self._active, self._active_since = device_id, self.node.cluster_time
        self.broadcast("active", {"device_id": device_id, "since": self._active_since})

    def _prefer(self) -> None:
        """Set the default phone by the rule of all nodes: the selected phone, else the one that connected last."""
        phones = self.relay.phones
        phone = phones.find_by_socket(self._since.last or 0)
        phones.set_preferred(active=self._active, most_recent=None if phone is None else phone.device_id)

    def _selected(self, body: JsonObject) -> None:
        since = _since(body)
        if since >= self._active_since:
            self._active, self._active_since = body.text("device_id"), since
            self._prefer()
            self.relay.changes.notify(DEVICES)

    def _command(self, node: str, body: JsonObject) -> None:
        """Send a command of another node to a phone of this node; report a phone that cannot get it as disconnected."""
        number, text = body.integer("socket"), body.text("text")
        client = None if number is None else self.relay.clients.get(number)
        envelope = parse_envelope(text)
        is_sent = False
        if client is not None and envelope is not None and client.has_grant("bridge"):
            deadline = self.relay.engine.now.mono + RESPONSE_TIMEOUT
            self._passing.put(envelope.id, (node, client.number), deadline)
            is_sent = client.socket.send_text(text)
        if not is_sent:
            self.node.send_to(node, "left", {"socket": number})


def _since(entry: JsonObject) -> float:
    return entry.number("since") or 0.0


def _sent_at(record: Mapping[str, object]) -> float:
    return JsonObject.of(record).number("sent_at") or 0.0
