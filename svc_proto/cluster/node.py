"""Membership of this process in a cluster: the other nodes, their heartbeats, and messages between nodes.

Each node subscribes to the channel `all` and to one of its own. For each other node it stores the time of the last
message and the number of its last broadcast. Each message carries that number, so a receiver detects a gap. It then
requests the whole state of that node, and calls `on_messages_missed`. The same happens when this node reconnects, and
when a node joins: the new node may replace one whose last messages were lost. Messages to one node are not counted: the
sender waits for an answer, or is notified that the node is lost.

Each message is signed for its channel, see `message_signatures`, and has the next number of its sender. A message with
an invalid signature is dropped. So is one whose number is not higher than the sender's last one: it was recorded and
sent again. Identities are random, so only a live node can sign a message for this node's own channel. Broadcasts of
another node, except `hello` and `beat`, wait until it has done that.

| message     | to   |                                                                                     |
|--------------|------|-------------------------------------------------------------------------------------|
| `hello`      | all  | the node has joined, or is back; earlier state is void; send me your state           |
| `beat`       | all  | heartbeat with name, start time and load; twice a second                             |
| `bye`        | all  | the node leaves                                                                      |
| `which`      | one  | send me your state                                                                   |
| `state`      | one  | the complete state of the sender, which replaces the earlier one                     |
| `asks`       | one  | a request of the service, with a number                                              |
| `says`       | one  | the answer to the request of that number                                             |
| other words  | both | messages of the service                                                              |

A node is lost when it sends `bye`, or after `LEASE` seconds without a message. It is also lost as soon as Redis reports
no subscriber of its channel, as for a killed process. All nodes are lost when this node's own connection is.

A node that has sent `bye` finishes its requests: it may still send messages, and gets the answers to those that it has
sent. That does not make it a member again. An identity is never used twice: a process that restarts is another node.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Protocol, cast

from attrs import Factory, define, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.cluster.message_signatures import MessageSigner, load_message_signer
from svc_proto.cluster.redis_client import RedisClient, RedisHandler, Reply
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress

__all__ = [
    "HEARTBEAT_INTERVAL",
    "LEASE",
    "MAX_NODES",
    "NodeHandler",
    "RETRY",
    "RemoteNode",
    "Node",
    "Heartbeat",
    "cluster_unavailable_error",
]

HEARTBEAT_INTERVAL = 0.5  # s
LEASE = 3.0  # s without a message, after which a node counts as lost
ANSWER_TIMEOUT = 1.0  # s for the answer of another node
MAX_NODES = 256  # that are tracked; messages of a further one are dropped
MAX_SENDERS = 4_096  # nodes whose last message number is kept; the one that is silent for longest is dropped
MAX_HELD = 10_000  # broadcasts that wait for the proof that their node lives; at more the node counts as lost
WARNING_INTERVAL = 60.0  # s between warnings about wrong signatures
DEPARTURE = 60.0  # s for which a node that has sent `bye` gets answers; longer than any waits, and than its grace
RETRY = ((b"retry-after", b"1"),)  # s
_ID_BYTES = 8
_UNCOUNTED = ("hello", "beat")
_LEAVING = -1  # in place of a number: the sender has sent `bye` and finishes its requests
_GONE = Failure(FailureKind.UNREACHABLE, "the node is gone")


def cluster_unavailable_error(what: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Refused:
    """Return the error 503 for an action that needs the other nodes while they are unreachable."""
    text = f"{what} cannot be agreed on now: the nodes do not reach each other"
    return Refused(503, "cluster_unavailable", text, headers=headers)


@frozen(kw_only=True)
class Heartbeat:
    """Figures of a node in its heartbeat, for monitoring."""

    name: str  # its address, or its id without one
    since: float  # epoch s by its own clock
    load: int  # number of its phones, or turns


@define
class RemoteNode:
    """Another node of the cluster, with what this node has received from it."""

    id: str
    broadcast_number: int  # number of its last broadcast
    until: float  # monotonic s; end of its lease
    pulse: Heartbeat | None = None  # of its last heartbeat
    is_proven: bool = False  # whether it has signed a message for this node alone
    held: list[tuple[str, JsonObject]] = Factory(list)  # word and body of its broadcasts before that


class NodeHandler(Protocol):
    """Callbacks of a node to the service that runs on it."""

    def export_state(self) -> dict[str, object]:
        """Return the state of this node, for the other nodes to store."""

    def apply_state(self, node: str, state: JsonObject) -> None:
        """Replace what is stored about another node by its complete state."""

    def on_message(self, node: str, word: str, body: JsonObject) -> None:
        """Handle a message of another node, to all or to this one."""

    def on_request(self, node: str, word: str, body: JsonObject) -> dict[str, object]:
        """Return the answer to a request of another node."""

    def on_messages_missed(self) -> None:
        """Reload durable state from the store, since broadcasts may have been missed.

        The handler need not query the sender: the node requests the sender's state itself.
        """

    def on_node_lost(self, node: str) -> None:
        """Handle that a node is lost or unreachable."""


class Node(RedisHandler):
    """Node of this process in the cluster. `redis` is the client for state that needs agreement between nodes."""

    def __init__(
        self,
        engine: Engine,
        where: RedisAddress,
        handler: NodeHandler,
        kind: str = "",
        *,
        url: str = "",
        load: Callable[[], int] = int,
    ) -> None:
        """Create a node that has not joined yet.

        `kind` separates nodes of several kinds at one Redis; relays have an empty one. `url` and `load` go into each
        `Heartbeat`.
        """
        self._engine = engine
        self._handler = handler
        self._signer: MessageSigner | None = None  # set by `start`
        self._url = url
        self._load = load
        self._since = 0.0  # epoch s, set by `start`
        self.id = engine.entropy(_ID_BYTES).hex()
        self._prefix = f"svc:{where.db}:{kind and kind + ':'}"
        self._all = f"{self._prefix}all"
        self.redis = RedisClient(engine, where, (self._all, self._inbox(self.id)), self)
        self.members: dict[str, RemoteNode] = {}
        self._departing: ExpiringMap[str, bool] = ExpiringMap(MAX_NODES)  # nodes that have sent `bye`
        self.up_since = inf  # monotonic s, while the other nodes are reachable
        self.greeted = 0  # number of nodes that have received the last `hello`
        self._broadcast_count = 0  # number of broadcasts so far
        self._message_count = 0  # number of messages so far
        self._last_numbers: ExpiringMap[str, int] = ExpiringMap(MAX_SENDERS)  # of the last message, by sender
        self._warning_due = -inf  # monotonic s, of the next warning about wrong signatures
        self._clock: float | None = None  # s by which Redis's clock is ahead of the monotonic one
        self._pending_requests: dict[OperationId, str] = {}  # node that is to answer, by operation
        self._timer = engine.timers.timer(self._beat)

    def start(self) -> Flow[None]:
        """Load the secret from the store, then start to connect to Redis, unless this node was stopped meanwhile."""
        self._since = self._engine.now.wall
        self._signer = yield from load_message_signer(self._engine)
        if self._broadcast_count != _LEAVING:
            self.redis.start()

    def stop(self) -> None:
        """Announce that this node leaves, and stop reconnecting; requests in progress are still finished."""
        self._publish(self._all, "bye", {})
        self._broadcast_count = _LEAVING
        self.redis.stop()

    @property
    def is_up(self) -> bool:
        """Report whether this node is connected to Redis, through which it reaches the other nodes."""
        return self.redis.is_up

    def heartbeat(self) -> Heartbeat:
        """Return the heartbeat of this node."""
        return Heartbeat(name=self._url or self.id, since=self._since, load=self._load())

    def heartbeats(self) -> list[Heartbeat]:
        """Return the last heartbeats of the other nodes that have sent one."""
        return [member.pulse for member in self.members.values() if member.pulse is not None]

    def url_of(self, node: str) -> str:
        """Return the name in the last heartbeat of another node: its URL, or its id without one.

        Empty before a heartbeat, and for an unproven node.
        """
        member = self.members.get(node)
        return member.pulse.name if member is not None and member.is_proven and member.pulse is not None else ""

    @property
    def cluster_time(self) -> float:
        """Epoch seconds by Redis's clock, which all nodes share; by the local clock before the first reading."""
        now = self._engine.now
        return now.wall if self._clock is None else now.mono + self._clock

    def key(self, *parts: str) -> str:
        """Return the Redis key of this service that the given `parts` name."""
        return self._prefix + ":".join(parts)

    def sign(self, key: str, text: str) -> bytes:
        """Return `text` with its signature, as the value of the Redis key `key`; other nodes `verify` it."""
        assert self._signer is not None  # set before the service is ready
        return self._signer.sign(key, text.encode())

    def verify(self, key: str, value: bytes) -> bytes | None:
        """Return the text of a signed value; None if no node has created it for this key."""
        assert self._signer is not None  # set before the service is ready
        return self._signer.verify(key, value)

    # --- sending ---

    def broadcast(self, word: str, body: Mapping[str, object]) -> None:
        """Send a message to every other node.

        Nothing is sent without a connection to Redis. A node that misses the message detects that by the next number,
        unless this node is leaving: it then counts no more.
        """
        if self._broadcast_count != _LEAVING:
            self._broadcast_count += 1
        self._publish(self._all, word, body)

    def send_to(self, node: str, word: str, body: Mapping[str, object]) -> bool:
        """Send a message to one node, once; return False if the node is unknown or the command cannot be sent.

        A node that does not receive the message is reported as lost later.
        """
        is_there = node in self.members or self._departing.get(node, self._engine.now.mono) is not None
        return is_there and self._publish(self._inbox(node), word, body, partial(self._reached, node))

    def request(self, node: str, word: str, body: Mapping[str, object]) -> Flow[JsonObject | Failure]:
        """Send a request to one node and return its answer.

        Return a `Failure` if the node is lost, or does not answer within `ANSWER_TIMEOUT`.
        """
        ticket = self._engine.new_op()
        self._pending_requests[ticket] = node
        try:
            question = {"word": word, "body": body, "ticket": ticket}
            if node not in self.members or not self.send_to(node, "asks", question):
                return _GONE
            answer = yield from wait(ticket, self._engine.now.mono + ANSWER_TIMEOUT)
        finally:
            del self._pending_requests[ticket]
        return cast("JsonObject | Failure", answer)

    def _publish(
        self, channel: str, word: str, body: Mapping[str, object], take: Callable[[Reply], object] | None = None
    ) -> bool:
        if self._signer is None:
            return False
        self._message_count += 1
        text = strict_json.dumps_bytes(
            {
                "from": self.id,
                "number": self._message_count,
                "told": self._broadcast_count,
                "word": word,
                "body": body,
            }
        )
        return self.redis.send("PUBLISH", channel, self._signer.sign(channel, text), take=take)

    def _inbox(self, node: str) -> str:
        return f"{self._prefix}node:{node}"

    # --- connection events ---

    def on_up(self) -> None:
        """Handle a new connection: send `hello`, start the heartbeats, and have missed state reloaded."""
        self.up_since = self._engine.now.mono
        self.redis.send("TIME", take=self._timed)
        self._publish(self._all, "hello", {}, self._greeted)
        self._timer.set(self._engine.now.mono + HEARTBEAT_INTERVAL)
        self._handler.on_messages_missed()

    def on_down(self) -> None:
        """Handle the loss of the connection to Redis: stop the heartbeats, and report all other nodes as lost."""
        self.up_since = inf
        self._timer.cancel()
        for node in list(self.members):
            self._lose(node)

    def on_message(self, channel: str, data: bytes) -> None:
        """Handle a message of another node; own, repeated and invalid messages are dropped."""
        message = self._open(channel, data)
        if message is None:
            return
        node, word, broadcast_number = message.text("from"), message.text("word"), message.integer("told")
        if not node or not word or broadcast_number is None:
            self._engine.log(Level.WARNING, "cluster message not understood", channel=channel)
            return
        if not self._is_new(node, message.integer("number", 0)):
            return
        body = JsonObject.of(message.get("body"))
        if word == "bye":
            self._depart(node)
        elif self._broadcast_count == _LEAVING and word in ("hello", "which", "asks"):
            pass  # this node leaves: no other may rely on it
        elif broadcast_number == _LEAVING:
            if node in self._departing:
                self._dispatch(node, word, body)
        else:
            if word == "hello":
                self._lose(node)  # a node that is back may have lost messages in both directions
            is_broadcast = channel == self._all
            counted = is_broadcast and word not in _UNCOUNTED
            if self._mark_alive(node, broadcast_number, broadcast_number - counted):
                self._receive(self.members[node], word, body, is_broadcast=is_broadcast)

    # --- receiving ---

    def _open(self, channel: str, data: bytes) -> JsonObject | None:
        """Return the message in `data`, an empty object if it cannot be parsed, or None without a valid signature."""
        text = None if self._signer is None else self._signer.verify(channel, data)
        if text is None:
            if self._engine.now.mono >= self._warning_due:
                self._warning_due = self._engine.now.mono + WARNING_INTERVAL
                self._engine.log(Level.WARNING, "cluster message with a wrong signature", channel=channel)
            return None
        return JsonObject.parse(text, ours=True) or JsonObject()

    def _is_new(self, node: str, number: int | None) -> bool:
        """Report whether a message is of another node and was not received before; record its number then."""
        if node == self.id or number is None or number <= (self._last_numbers.get(node, 0.0) or 0):
            return False
        self._last_numbers.put(node, number, None)
        return True

    def _depart(self, node: str) -> None:
        member = self.members.get(node)
        self._lose(node)
        if member is not None and member.is_proven:
            self._departing.purge(self._engine.now.mono)
            self._departing.put(node, True, self._engine.now.mono + DEPARTURE)

    def _receive(self, member: RemoteNode, word: str, body: JsonObject, *, is_broadcast: bool) -> None:
        """Dispatch a message, or store a broadcast until its sender has signed a message for this node alone.

        A sender with more than `MAX_HELD` stored broadcasts counts as lost.
        """
        if is_broadcast and not member.is_proven and word not in _UNCOUNTED:
            member.held.append((word, body))
            if len(member.held) > MAX_HELD:
                self._lose(member.id)
            return
        if not is_broadcast and not member.is_proven:
            member.is_proven = True
            for earlier_word, earlier_body in member.held:
                self._dispatch(member.id, earlier_word, earlier_body)
            member.held.clear()
        self._dispatch(member.id, word, body)

    def _mark_alive(self, node: str, broadcast_number: int, before: int) -> bool:
        """Record that a node lives, and request its state if it is new or a broadcast was missed.

        `broadcast_number` is the number of its broadcasts, `before` the number before this message. Return False for a
        new node beyond `MAX_NODES`, which is ignored.
        """
        until = self._engine.now.mono + LEASE
        member = self.members.get(node)
        if member is None:
            if len(self.members) >= MAX_NODES:
                return False
            self.members[node] = RemoteNode(node, broadcast_number, until)
            self._engine.log(Level.INFO, "node joined", node=node)
            self._ask_state(node)  # messages of a node that it replaces may have been lost
            return True
        if member.broadcast_number != before:
            self._ask_state(node)
        member.broadcast_number, member.until = broadcast_number, until
        return True

    def _ask_state(self, node: str) -> None:
        self.send_to(node, "which", {})
        self._handler.on_messages_missed()

    def _dispatch(self, node: str, word: str, body: JsonObject) -> None:
        match word:
            case "beat":
                member, since, load = self.members.get(node), body.number("since"), body.integer("load")
                if member is not None and since is not None and load is not None:
                    member.pulse = Heartbeat(name=body.text("name") or node, since=since, load=load)
            case "hello" | "which":
                self.send_to(node, "state", self._handler.export_state())
            case "state":
                self._handler.apply_state(node, body)
            case "asks":
                answer = self._handler.on_request(node, body.text("word"), JsonObject.of(body.get("body")))
                self.send_to(node, "says", {"ticket": body.get("ticket"), "body": answer})
            case "says":
                ticket = body.integer("ticket")
                if ticket is not None and self._pending_requests.get(OperationId(ticket)) == node:
                    self._engine.resume(OperationId(ticket), JsonObject.of(body.get("body")))
            case _:
                self._handler.on_message(node, word, body)

    # --- liveness ---

    def _beat(self) -> None:
        now = self._engine.now.mono
        self._timer.set(now + HEARTBEAT_INTERVAL)
        if self._broadcast_count != _LEAVING:
            pulse = self.heartbeat()
            self._publish(self._all, "beat", {"name": pulse.name, "since": pulse.since, "load": pulse.load})
        for member in list(self.members.values()):
            if member.until <= now:
                self._lose(member.id)
        if self.members:
            self.redis.send("PUBSUB", "NUMSUB", *map(self._inbox, self.members), take=self._counted)
        self.redis.send("TIME", take=self._timed)  # clocks drift apart

    def _greeted(self, answer: Reply) -> None:
        self.greeted = answer - 1 if isinstance(answer, int) else 0  # this node is subscribed, too

    def _timed(self, answer: Reply) -> None:
        match answer:
            case [bytes(seconds), bytes(micros)]:
                self._clock = int(seconds) + int(micros) / 1e6 - self._engine.now.mono

    def _counted(self, answer: Reply) -> None:
        """Handle the reply with the subscribers of each channel: a node whose channel has none is lost."""
        counts = answer if isinstance(answer, list) else []
        for channel, count in zip(counts[::2], counts[1::2], strict=False):
            if count == 0 and isinstance(channel, bytes):
                self._lose(channel.decode("utf-8", "replace").removeprefix(self._inbox("")))

    def _reached(self, node: str, answer: Reply) -> None:
        if answer == 0:
            self._departing.discard(node)
            self._lose(node)

    def _lose(self, node: str) -> None:
        if self.members.pop(node, None) is None:
            return
        self._engine.log(Level.INFO, "node left", node=node)
        for ticket, target in list(self._pending_requests.items()):
            if target == node:
                self._engine.resume(ticket, _GONE)
        self._handler.on_node_lost(node)
