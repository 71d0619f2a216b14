"""Who this process is among the nodes of a service, who the others are, and what they tell each other.

Everybody hears the channel `all` and one of their own. Of a node is known: when it was last heard, and how many
messages it has told to all. Each message carries that number, so a listener that has missed one knows it: it asks for
the whole state of that node, and the service is told that it has `missed` something. So it is when this node itself
comes back, and when a node joins, which may stand for one that is gone and that nobody has heard in the end. Messages
to one node are not counted: who sends one waits for an answer, or hears that the node is gone.

| what is said | to   |                                                                                     |
|--------------|------|-------------------------------------------------------------------------------------|
| `hello`      | all  | I am here, from now on or again, and nothing else counts: tell me your state         |
| `beat`       | all  | I live, and fare like this; twice a second                                           |
| `bye`        | all  | I go                                                                                 |
| `which`      | one  | tell me your state                                                                   |
| `state`      | one  | all that others know of me, in place of what they knew                               |
| `asks`       | one  | a question of the service's, with a number                                           |
| `says`       | one  | the answer to the question of that number                                            |
| other words  | both | the service's own                                                                    |

A node is gone when it says so, when `LEASE` seconds have passed in which nothing was heard of it, or as soon as the
server says that nobody hears its channel: a process that was killed leaves none that does. All are gone when this
node's own connection is. Who has said `bye` may still tell what comes of the requests that it finishes, by which
nobody knows it again. An identity is never used twice: a process that starts again is another node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Protocol, cast

from attrs import define, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.cluster.redis_client import RedisClient, RedisHandler, Reply
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

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
LEASE = 3.0  # s without a word, after which a node is taken for gone
ANSWER_TIMEOUT = 1.0  # s for what one node asks another
MAX_NODES = 256  # that are known; a further one is not heard
RETRY = ((b"retry-after", b"1"),)  # s
_ID_BYTES = 8
_UNCOUNTED = ("hello", "beat")
_LEAVING = -1  # in place of a number: from who has said `bye`, and finishes what was begun
_GONE = Failure(FailureKind.UNREACHABLE, "the node is gone")


def cluster_unavailable_error(what: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Refused:
    """503 for what needs the others while they are not to be reached."""
    text = f"{what} cannot be agreed on now: the nodes do not reach each other"
    return Refused(503, "cluster_unavailable", text, headers=headers)


@frozen(kw_only=True)
class Heartbeat:
    """What a node says of itself with each beat, for people who look."""

    name: str  # its address, or its id if it has none
    since: float  # epoch s by its own clock
    load: int  # phones, or turns, that it has


@define
class RemoteNode:
    """Another node."""

    id: str
    heard: int  # the number of its last message to all
    until: float  # monotonic s, when its lease is over
    pulse: Heartbeat | None = None  # with its last beat


class NodeHandler(Protocol):
    """The service that is spread over the nodes."""

    def export_state(self) -> dict[str, object]:
        """All that others have to know of what is here."""

    def apply_state(self, node: str, state: JsonObject) -> None:
        """What is at another node, all of it."""

    def on_message(self, node: str, word: str, body: JsonObject) -> None:
        """Another node has told something, to all or to this one."""

    def on_request(self, node: str, word: str, body: JsonObject) -> dict[str, object]:
        """Another node asks something."""

    def on_messages_missed(self) -> None:
        """Something that was told to all was not heard here: ask what lasts, not those who told it."""

    def on_node_lost(self, node: str) -> None:
        """A node is gone, or not to be reached."""


class Node(RedisHandler):
    """See the module. `down` and `up` follow the connection; `redis` is there for what has to be agreed on."""

    def __init__(
        self,
        engine: Engine,
        where: RedisAddress,
        fellow: NodeHandler,
        kind: str = "",
        *,
        url: str = "",
        load: Callable[[], int] = int,
    ) -> None:
        """`kind` keeps nodes of several kinds apart that meet at one Redis; those of none are relays. `url` and `load`
        are told to who looks: see `Heartbeat`."""
        self._engine = engine
        self._fellow = fellow
        self._url = url
        self._load = load
        self._since = 0.0  # epoch s, from the start on
        self.id = engine.entropy(_ID_BYTES).hex()
        self._prefix = f"svc:{where.db}:{kind and kind + ':'}"
        self._all = f"{self._prefix}all"
        self.redis = RedisClient(engine, where, (self._all, self._inbox(self.id)), self)
        self.members: dict[str, RemoteNode] = {}
        self.up_since = inf  # monotonic s, while the others can be reached
        self._told = 0  # messages to all so far
        self._clock: float | None = None  # s that Redis's clock is ahead of the monotonic one
        self._asked: dict[OperationId, str] = {}  # who is to answer
        self._timer = engine.timers.timer(self._beat)

    def start(self) -> None:
        """Join the others."""
        self._since = self._engine.now.wall
        self.redis.start()

    def stop(self) -> None:
        """Leave them."""
        self._timer.cancel()
        self._publish(self._all, "bye", {})
        self._told = _LEAVING
        self.redis.stop()

    @property
    def is_up(self) -> bool:
        """Whether the others can be reached."""
        return self.redis.is_up

    def heartbeat(self) -> Heartbeat:
        """Our own."""
        return Heartbeat(name=self._url or self.id, since=self._since, load=self._load())

    def heartbeats(self) -> list[Heartbeat]:
        """Those of the others that have told theirs."""
        return [member.pulse for member in self.members.values() if member.pulse is not None]

    @property
    def cluster_time(self) -> float:
        """Epoch seconds by the clock that all nodes share, Redis's; by our own while that was never asked."""
        now = self._engine.now
        return now.wall if self._clock is None else now.mono + self._clock

    def key(self, *parts: str) -> str:
        """The name of a key of this service."""
        return self._prefix + ":".join(parts)

    # --- telling ---

    def broadcast(self, word: str, body: Mapping[str, object]) -> None:
        """Tell every node; one that cannot be reached now will know that it has missed something."""
        if self._told != _LEAVING:
            self._told += 1
        self._publish(self._all, word, body)

    def send_to(self, node: str, word: str, body: Mapping[str, object]) -> bool:
        """Tell one node, once. False, or its loss, if nobody is there to hear it."""
        return node in self.members and self._publish(self._inbox(node), word, body, partial(self._reached, node))

    def request(self, node: str, word: str, body: Mapping[str, object]) -> Flow[JsonObject | Failure]:
        """Ask one node something."""
        ticket = self._engine.new_op()
        self._asked[ticket] = node
        try:
            if not self.send_to(node, "asks", {"word": word, "body": body, "ticket": ticket}):
                return _GONE
            answer = yield from wait(ticket, self._engine.now.mono + ANSWER_TIMEOUT)
        finally:
            del self._asked[ticket]
        return cast("JsonObject | Failure", answer)

    def _publish(
        self, channel: str, word: str, body: Mapping[str, object], take: Callable[[Reply], object] | None = None
    ) -> bool:
        text = strict_json.dumps_bytes({"from": self.id, "told": self._told, "word": word, "body": body})
        return self.redis.send("PUBLISH", channel, text, take=take)

    def _inbox(self, node: str) -> str:
        return f"{self._prefix}node:{node}"

    # --- what the connection does ---

    def on_up(self) -> None:
        """Say hello; what was missed meanwhile is asked for."""
        self.up_since = self._engine.now.mono
        self.redis.send("TIME", take=self._timed)
        self._publish(self._all, "hello", {})
        self._timer.set(self._engine.now.mono + HEARTBEAT_INTERVAL)
        self._fellow.on_messages_missed()

    def on_down(self) -> None:
        """Nobody can be reached."""
        self.up_since = inf
        self._timer.cancel()
        for node in list(self.members):
            self._lose(node)

    def on_message(self, channel: str, data: bytes) -> None:
        """Another node's word, or our own."""
        message = JsonObject.parse(data, ours=True) or JsonObject()
        node, word, told = message.text("from"), message.text("word"), message.integer("told")
        if node == self.id:
            return
        if not node or not word or told is None:
            self._engine.log(Level.WARNING, "cluster message not understood", channel=channel)
            return
        if word in ("bye", "hello"):
            self._lose(node)  # who is there again may have lost what others told it, and what it told them
        if word == "bye":
            return
        if self._told == _LEAVING and word in ("hello", "which", "asks"):
            return  # nobody is to count on us
        if told == _LEAVING:
            self._dispatch(node, word, JsonObject.of(message.get("body")))
            return
        counted = channel == self._all and word not in _UNCOUNTED
        if not self._known(node, told, told - counted):
            return
        self._dispatch(node, word, JsonObject.of(message.get("body")))

    # --- hearing ---

    def _known(self, node: str, told: int, before: int) -> bool:
        """Note that a node lives, and how much it has told so far: `before` of it before this message."""
        until = self._engine.now.mono + LEASE
        member = self.members.get(node)
        if member is None:
            if len(self.members) >= MAX_NODES:
                return False
            self.members[node] = RemoteNode(node, told, until)
            self._engine.log(Level.INFO, "node joined", node=node)
            self._ask_state(node)  # what its like has told before may have been lost with it
            return True
        if member.heard != before:
            self._ask_state(node)
        member.heard, member.until = told, until
        return True

    def _ask_state(self, node: str) -> None:
        self.send_to(node, "which", {})
        self._fellow.on_messages_missed()

    def _dispatch(self, node: str, word: str, body: JsonObject) -> None:
        match word:
            case "beat":
                member, since, load = self.members.get(node), body.number("since"), body.integer("load")
                if member is not None and since is not None and load is not None:
                    member.pulse = Heartbeat(name=body.text("name") or node, since=since, load=load)
            case "hello" | "which":
                self.send_to(node, "state", self._fellow.export_state())
            case "state":
                self._fellow.apply_state(node, body)
            case "asks":
                answer = self._fellow.on_request(node, body.text("word"), JsonObject.of(body.get("body")))
                self.send_to(node, "says", {"ticket": body.get("ticket"), "body": answer})
            case "says":
                ticket = body.integer("ticket")
                if ticket is not None and self._asked.get(OperationId(ticket)) == node:
                    self._engine.resume(OperationId(ticket), JsonObject.of(body.get("body")))
            case _:
                self._fellow.on_message(node, word, body)

    # --- who lives ---

    def _beat(self) -> None:
        now = self._engine.now.mono
        self._timer.set(now + HEARTBEAT_INTERVAL)
        pulse = self.heartbeat()
        self._publish(self._all, "beat", {"name": pulse.name, "since": pulse.since, "load": pulse.load})
        for member in list(self.members.values()):
            if member.until <= now:
                self._lose(member.id)
        if self.members:
            self.redis.send("PUBSUB", "NUMSUB", *map(self._inbox, self.members), take=self._counted)
        self.redis.send("TIME", take=self._timed)  # no two clocks run equally fast

    def _timed(self, answer: Reply) -> None:
        match answer:
            case [bytes(seconds), bytes(micros)]:
                self._clock = int(seconds) + int(micros) / 1e6 - self._engine.now.mono
            case _:
                pass

    def _counted(self, answer: Reply) -> None:
        """How many hear each of some channels: the channels and the numbers take turns."""
        heard = answer if isinstance(answer, list) else []
        for channel, count in zip(heard[::2], heard[1::2], strict=False):
            if count == 0 and isinstance(channel, bytes):
                self._lose(channel.decode("utf-8", "replace").removeprefix(self._inbox("")))

    def _reached(self, node: str, answer: Reply) -> None:
        if answer == 0:
            self._lose(node)

    def _lose(self, node: str) -> None:
        if self.members.pop(node, None) is None:
            return
        self._engine.log(Level.INFO, "node left", node=node)
        for ticket, asked in list(self._asked.items()):
            if asked == node:
                self._engine.resume(ticket, _GONE)
        self._fellow.on_node_lost(node)
