"""What a relay shares with the other nodes of its service, by way of the cluster: see `commons`, `svc_proto.cluster`.

- **Codes** are keys of Redis: SET with ten minutes to live, GETDEL by whoever is shown one. Only one of two gets it. Of
  one whose invite holds a key each node knows that it is there: the key is good at once, see `fellow_codes`.
- **Sessions** are in the store that all nodes have. Who changes or ends one tells all; who hears nothing of one looks
  into the store. A node that has missed something reads them all again: one that is gone there is over. What has ended
  stays ended: its hash is kept for a while, and told to who joins, so that no record that was read before comes back.
- **Phones** that are elsewhere are in `Relay.phones` beside our own, with numbers below zero. Of two places that have
  the same device the later counts, by Redis's clock. A command waits here, where it was asked for, and is told to the
  node of its phone once; that node says what the phone answers. If the node goes, or the phone, or our way to them,
  `Relay.remove_phone` fails what waits, with the code for a phone that left.
- **Files**, and sessions of MCP and of voice, are where they began. A request for one that is not here is passed on to
  the address of the node that has it, see `passing`.
- **Questions of agents** to the owner, and the codes that answer them, are at one node, and brought to whichever is
  asked about them: so each is used up once.
- **The limiter** of each node hears what the others count. A block of theirs is so one of ours.

| word        | to  |                                                        |
|-------------|-----|--------------------------------------------------------|
| `failed`, `succeeded`, `cleared` | all | see `told_limiter`                 |
| `saved`     | all | the record of a session, and when it was stored         |
| `ended`     | all | the hash of one that was revoked                       |
| `invited`   | all | a code, and the hash of the key of its invite; none: it is used up |
| `came`      | all | a phone, with its last status                          |
| `said`      | all | its status                                             |
| `left`      | all | it can be driven no more                               |
| `notified`  | all | a notification that a phone has passed on              |
| `kept`      | all | an upload that is where all nodes have it              |
| `gone`      | all | the token of one that had to go                        |
| `active`    | all | which one is driven unless one is named                |
| `command`   | one | for a phone of theirs                                  |
| `consent`   | one | a question of an agent's to the owner, which is theirs |
| `answered`  | one | what a phone has said to a command of theirs           |
| `activity`  | one | a question: the last commands that were sent from there |
| `online`    | one | a question: the sessions that have a socket there      |
| `consent`   | one | a question: whether one of those is to be had          |
| `has`       | one | a question: where a file, or a session, is to be had   |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from attrs import define

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
from svc_proto.engine.sync import gather
from svc_proto.facts import Failure
from svc_proto.machines.bridge_commands import RESPONSE_TIMEOUT
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.paired_session_registry import TOKEN_LENGTH
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.machines.phone_registry import ConnectedPhone
from svc_proto.machines.replicated_auth_rate_limiter import ReplicatedAuthRateLimiter
from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS
from svc_proto.relay.cluster.codes import ClusterCodes
from svc_proto.relay.cluster.local_coordinator import LocalCoordinator, PhoneRoute
from svc_proto.relay.cluster.request_forwarding import RequestForwarder
from svc_proto.relay.cluster.sessions import ClusterSessions
from svc_proto.schema.envelope import parse_envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay
    from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["ClusterCoordinator"]

MAX_FORWARDED = 10_000  # commands of others that wait for phones of ours; the oldest is forgotten
MAX_LOOKUPS = 64  # at a time, of questions that may be at another node; a further one is not there
PROPAGATION_DELAY = 0.25  # s until one that nobody had is asked for again
MAX_NAME = 64  # characters of what is asked for elsewhere: ids are shorter
MEDIA_TOKEN_LENGTH = 22  # characters, wire core 0.1


@define(eq=False)
class _RemotePhoneRoute:
    """A phone that another node has; a `PhoneRoute`."""

    fellows: ClusterCoordinator
    node: str
    socket: int  # its number there

    def send_text(self, text: str) -> bool:
        return self.fellows.node.send_to(self.node, "command", {"socket": self.socket, "text": text})


class ClusterCoordinator(LocalCoordinator):
    """See the module."""

    node: Node  # these three from the start on
    sessions: ClusterSessions
    codes: ClusterCodes

    def __init__(self, relay: Relay, where: RedisAddress) -> None:
        super().__init__(relay)
        self.limiter: ReplicatedAuthRateLimiter = ReplicatedAuthRateLimiter(self.broadcast)
        self._where = where
        self._elsewhere: dict[int, _RemotePhoneRoute] = {}
        self._numbers: dict[str, dict[int, int]] = {}  # below zero, by node and by number there
        self._next = 0
        self._since: RecencyHeap[int] = RecencyHeap()  # every phone, by number, on Redis's clock
        self._seeking = 0
        self._active = ""  # the device id that all nodes were told last, connected or not
        self._active_since = 0.0
        self._joined_at = -inf  # when a node last said what it has (monotonic s)
        self._passing: ExpiringMap[str, tuple[str, int]] = ExpiringMap(MAX_FORWARDED)  # whose, and to which socket

    def start(self) -> Flow[None]:
        """Meet the others, and open the doors without them if that takes too long."""
        engine = self.relay.engine
        self.node = Node(engine, self._where, self, url=self.relay.config.node_url, load=self._count_phones)
        self.sessions = ClusterSessions(self.relay, self.node)
        for session in self.relay.sessions.tombstones():  # nobody else may have heard of it
            self.sessions.note_end(session.token_hash)
        self.codes = ClusterCodes(self.relay, self.node)
        self._intermediary = RequestForwarder(self.relay, self.node)
        self.node.start()
        yield from self.sessions.caught_up()

    def stop(self) -> None:
        """Say so: what others wait for fails at once."""
        self.sessions.stop()
        self.node.stop()

    def broadcast(self, word: str, body: Mapping[str, object]) -> None:
        """Tell every node."""
        self.node.broadcast(word, body)

    # --- codes ---

    def register_code(self, code: str, meta: PairingMeta) -> Flow[None]:
        """At Redis."""
        return self.codes.register(code, meta)

    def consume_code(self, code: str) -> Flow[PairingMeta | None]:
        """The same."""
        return self.codes.consume(code)

    # --- sessions ---

    def session_saved(self, session: PairedSession) -> None:
        """Others take it over."""
        at = self.node.cluster_time
        self.sessions.note_change(session.token_hash, at)
        self.broadcast("saved", {**session.to_record(), "at": at})

    def session_ended(self, session: PairedSession) -> None:
        """Others cut it off."""
        self.sessions.note_end(session.token_hash)
        self.broadcast("ended", {"token_hash": session.token_hash})

    def lookup_session(self, token: str) -> Flow[PairedSession | None] | None:
        """In the store, for a token that another node may have given out a moment ago."""
        return self.sessions.lookup(token) if len(token) == TOKEN_LENGTH and token.isascii() else None

    def flush(self) -> Flow[None]:
        """What was said on this connection is with Redis; of what was not, `hello` has told the others that it was."""
        if isinstance((yield from self.node.redis.execute("PING")), Failure):
            text = "it is done here, but the other nodes were not told and may go on as before: try again"
            raise Refused(503, "cluster_unavailable", text)

    def flush_best_effort(self) -> Flow[None]:
        """As `flush`."""
        yield from self.node.redis.execute("PING")

    def sync_sessions(self) -> Flow[None]:
        """Read what the store has."""
        yield from self.sessions.catch_up()

    # --- phones ---

    def phone_connected(self, number: int, replaced: int | None) -> None:
        """Others may drive it through us."""
        self._forget(replaced)
        phone = self.relay.phones.find_by_socket(number)
        assert phone is not None  # it has just been registered
        self._since.put(number, self.node.cluster_time)
        self.broadcast("came", self._entry(phone))
        if self.relay.phones.find_by_device_id(self._active) in (None, phone):
            self._select(phone.device_id)
        self._prefer()

    def phone_status_changed(self, number: int) -> None:
        """Others show it, too."""
        phone = self.relay.phones.find_by_socket(number)
        assert phone is not None  # it has just been reported
        self.broadcast("said", {"socket": number, "status": phone.status})

    def phone_disconnected(self, number: int) -> None:
        """Others fail what waits for it."""
        if number not in self._elsewhere:
            self.broadcast("left", {"socket": number})
        self._forget(number)
        self._prefer()

    def phone_selected(self) -> None:
        """Everybody drives the same one."""
        self._select(self.relay.phones.active or "")

    def notification_received(self, payload: Mapping[str, object]) -> None:
        """Others keep it, too."""
        self.broadcast("notified", payload)

    def route_to_phone(self, number: int) -> PhoneRoute | None:
        """By way of its node."""
        return self._elsewhere.get(number)

    def explain_missing_phone(self, refused: Refused) -> Refused:
        """While the others cannot be reached nobody knows what phones there are."""
        if self.node.is_up or refused.status not in (404, 503):
            return refused
        return cluster_unavailable_error("which phone is where")

    def forward_answer(self, client: ClientConnection, payload: Mapping[str, object]) -> None:
        """To the node that has asked, if it was this phone that was asked."""
        request_id = JsonObject.of(payload).text("request_id")
        node, number = self._passing.get(request_id, self.relay.engine.now.mono) or ("", 0)
        if number == client.number:
            self._passing.discard(request_id)
            self.node.send_to(node, "answered", {"socket": number, "payload": dict(payload)})

    def activity(self, limit: int) -> Flow[list[dict[str, object]]]:
        """Ours and those of the others that say so in time."""
        records = self.relay.bridge.records(limit)
        for answer in (yield from self._asked("activity", {"limit": limit})):
            records += answer.objects("records")
        return sorted(records, key=_sent_at, reverse=True)[:limit]

    def online_sessions(self) -> Flow[frozenset[str]]:
        """Ours and those of the others that say so in time."""
        found = self.relay.online()
        for answer in (yield from self._asked("online", {})):
            found |= frozenset(answer.texts("hashes"))
        return found

    def forward_request(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None] | None:
        """From a node that has it. What was passed on to us is asked for nowhere else."""
        media = what == "media"
        if is_forwarded(request) or not 0 < len(name) <= MAX_NAME or (media and len(name) != MEDIA_TOKEN_LENGTH):
            return None
        if media and not self.node.is_up:
            raise cluster_unavailable_error("which node has the file")
        return self._intermediary.answer(what, name, request)

    def terminal_owner_url(self, terminal: str) -> Flow[str]:
        """By the word of who answers in time."""
        answers = yield from self._asked("has", {"what": "terminal", "name": terminal})
        return next((url for answer in answers if (url := answer.text("url"))), "")

    def lookup_consent(self, by: str, value: str) -> Flow[None] | None:
        """Whoever has it tells it, before he answers: see `on_message`."""
        return self._lookup_consent(by, value) if self.node.members and self._seeking < MAX_LOOKUPS else None

    def _lookup_consent(self, by: str, value: str) -> Flow[None]:
        """Twice, since it may be on its way from one node to another."""
        self._seeking += 1
        try:
            yield from self._asked("consent", {"by": by, "value": value})
            if self.relay.oauth.consents.find(by, value, self.relay.engine.now) is None:
                yield from sleep(self.relay.engine, PROPAGATION_DELAY)
                yield from self._asked("consent", {"by": by, "value": value})
        finally:
            self._seeking -= 1

    def _asked(self, word: str, body: Mapping[str, object]) -> Flow[list[JsonObject]]:
        """The answers of those who say something in time."""
        asked = [self.node.request(node, word, body) for node in self.node.members]
        answers = yield from gather(self.relay.engine, asked)
        return [answer for answer in answers if not isinstance(answer, Failure)]

    def metrics(self) -> list[MetricFamily]:
        """Whom this node reaches."""
        return cluster_metrics(self.node, "phones")

    def _count_phones(self) -> int:
        """Those of this node."""
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

    # --- `NodeHandler`: what the node hears ---

    def export_state(self) -> dict[str, object]:
        """Our phones, and what has ended."""
        phones = self.relay.phones
        mine = [phone for phone in phones.connected() if phone.socket not in self._elsewhere]
        return {
            "phones": [self._entry(phone) for phone in mine],
            "active": self._active,
            "active_since": self._active_since,
            "ended": self.sessions.ended,
            **self.codes.state(),
            **({"uploads": uploads} if (uploads := self.relay.media.uploads.records()) else {}),
        }

    def apply_state(self, node: str, state: JsonObject) -> None:
        """In place of what we knew."""
        self._joined_at = self.relay.engine.now.mono
        for token_hash in state.texts("ended"):
            self.sessions.end_local(token_hash)
        entries = state.objects("phones")
        there = {entry.integer("socket"): None for entry in entries}
        for socket, number in list(self._numbers.get(node, {}).items()):
            if socket not in there:
                self.relay.remove_phone(number)
        for entry in sorted(entries, key=_since):
            self._came(node, entry)
        self.codes.apply_state(state.objects("invites"))
        self.relay.media.apply_state(node, state.objects("uploads"))
        self._selected(JsonObject({"device_id": state.get("active"), "since": state.get("active_since")}))

    def on_message(self, node: str, word: str, body: JsonObject) -> None:
        """By the table of the module."""
        now = self.relay.engine.now
        match word:
            case "failed" | "succeeded" | "cleared":
                self.limiter.apply_remote(word, body.text("address"), now)
            case "saved":
                self.sessions.apply_record(body, body.number("at") or self.node.cluster_time)
            case "ended":
                self.sessions.end_local(body.text("token_hash"))
            case "came":
                self._came(node, body)
            case "said" if (number := self._number(node, body)) is not None:
                self.relay.phones.status(number, body.get("status"), now)
                self.relay.changes.notify(DEVICES)
            case "left" if (number := self._number(node, body)) is not None:
                self.relay.remove_phone(number)
            case "notified" if self.relay.notifications.post(body):
                self.relay.changes.notify(NOTIFICATIONS)
            case "kept" | "gone" | "consent" | "invited":
                self._take_over(node, word, body)
            case "active":
                self._selected(body)
            case "command":
                self._command(node, body)
            case "answered" if (number := self._number(node, body)) is not None:
                payload = body.get_object("payload")
                self.relay.bridge.answer(payload.get("request_id"), number, payload, now)
            case _:
                pass  # of a phone that has gone, or of a later version

    def _take_over(self, node: str, word: str, body: JsonObject) -> None:
        """What was another node's, or is everybody's."""
        match word:
            case "kept":
                self.relay.media.adopt(node, body)
            case "gone":
                self.relay.media.forget(body.text("token"))
            case "invited":
                self.codes.key_issued(body.text("code"), body.text("key_hash"), 0.0)
            case _:
                self.relay.oauth.adopt_consent(body)

    def on_request(self, node: str, word: str, body: JsonObject) -> dict[str, object]:
        """By the same table."""
        match word:
            case "activity":
                return {"records": self.relay.bridge.records(body.integer("limit", 1) or 1)}
            case "consent" if (oauth := self.relay.open_oauth) is not None:
                oauth.release_consent(body.text("by"), body.text("value"), partial(self.node.send_to, node, "consent"))
                return {}
            case "online":
                return {"hashes": sorted(self.relay.online())}
            case "has" if self.relay.owns_locally(body.text("what"), body.text("name")):
                return {"url": self.relay.config.node_url, **self.relay.media.uploads.answer(body)}
            case _:
                return {}

    def on_messages_missed(self) -> None:
        """What lasts is in the store, and codes are with Redis."""
        self.sessions.read_again()
        self.codes.resync()

    def on_node_lost(self, node: str) -> None:
        """Its phones are, too."""
        for number in list(self._numbers.get(node, {}).values()):
            self.relay.remove_phone(number)
        unheard = self._joined_at > self.relay.engine.now.mono - LEASE  # who has just joined may not have heard it
        self.relay.media.uploads.mark_orphaned(node, tell=unheard)

    def _number(self, node: str, body: JsonObject) -> int | None:
        return self._numbers.get(node, {}).get(body.integer("socket") or 0)

    def _came(self, node: str, entry: JsonObject) -> None:
        relay, socket = self.relay, entry.integer("socket")
        device_id, since = entry.text("device_id"), _since(entry)
        if socket is None or not device_id or node not in self.node.members:
            return
        if device_id == f"socket-{socket}":
            device_id = f"{node}-{device_id}"  # it has no name of its own, and here the number means another
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
        if before is None or before.socket != number:
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
        age, now = entry.number("age", 0.0), relay.engine.now
        if age is not None:
            relay.phones.status(number, entry.get("status"), Moment(now.mono - age, now.wall))

    def _forget(self, number: int | None) -> None:
        """It is no phone any more."""
        if number is None:
            return
        self._since.discard(number)
        elsewhere = self._elsewhere.pop(number, None)
        if elsewhere is not None:
            numbers = self._numbers[elsewhere.node]
            del numbers[elsewhere.socket]
            if not numbers:
                del self._numbers[elsewhere.node]

    def _select(self, device_id: str) -> None:
        self._active, self._active_since = device_id, self.node.cluster_time
        self.broadcast("active", {"device_id": device_id, "since": self._active_since})

    def _prefer(self) -> None:
        """Whichever phone is driven unless one is named, every node comes to the same."""
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
        """A command of another node for a phone of ours; if that is gone, so is its number there."""
        number, text = body.integer("socket"), body.text("text")
        client = None if number is None else self.relay.clients.get(number)
        envelope = parse_envelope(text)
        sent = False
        if client is not None and envelope is not None and client.has_grant("bridge"):
            until = self.relay.engine.now.mono + RESPONSE_TIMEOUT
            self._passing.put(envelope.id, (node, client.number), until)
            sent = client.socket.send_text(text)
        if not sent:
            self.node.send_to(node, "left", {"socket": number})


def _since(entry: JsonObject) -> float:
    return entry.number("since") or 0.0


def _sent_at(record: Mapping[str, object]) -> float:
    return JsonObject.of(record).number("sent_at") or 0.0
