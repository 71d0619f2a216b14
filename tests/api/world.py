"""A started API server with clients at one end and scripted servers at the other, all in memory.

    book = ApiBook(ApiConfig(key="k"))
    answer = book.request("GET", "/v1/models")               # with the key of the configuration, unless `key` says else
    call = book.call("POST", "/api/sessions/…/chat/stream", {"message": "Hi"})
    book.after(1.0)
    call.told()                                               # what a stream has said so far

The book plays the runtime: it acknowledges what is sent, keeps a store in memory and a disk, and answers every
operation at once, unless `hold` names its type: then it waits in `held` for `book.release()`. `upstreams` are services
by the port at which the API finds them, each on an engine of its own.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from attrs import define, evolve, field

from runtimes.compute import COMPUTE
from runtimes.failures import HostError
from runtimes.sim.disk import Disk, as_file
from runtimes.store import open_store
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Compute,
    Connect,
    Connected,
    DeleteBlob,
    DiscardBlob,
    EnsureSecret,
    Exit,
    Level,
    Log,
    Operation,
    Query,
    ReadConfig,
    Ready,
    ReleaseFile,
    Send,
    WriteConfig,
)
from svc_proto.engine.core import Engine, Service
from svc_proto.engine.flow import Flow
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead, ResponseData, ResponseHead
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.playbook import LOCAL, PATIENT, PEER, START, Logs, counting_entropy
from tests.relay.disk import STATE, BookFiles
from tests.relay.peers import FIRST, Answer, Call, Peer

__all__ = ["CONFIG", "HOME", "KEY", "PEER", "START", "Answer", "ApiBook", "ApiCall"]

HOME = STATE
CONFIG = f"{HOME}/config.yaml"
KEY = "sk-api-7f3a9c2e"
HOST = b"127.0.0.1:8642"
UPSTREAM = Address("127.0.0.1", 40_000)  # where connections to an upstream seem to come from
Fields = Iterable[tuple[bytes, bytes]]


class ApiCall(Call):
    """A request; its answer may be a stream that is still under way."""

    @property
    def head(self) -> ResponseHead:
        """The head of the answer."""
        (head,) = [event for event in self.events if isinstance(event, ResponseHead)]
        return head

    @property
    def text(self) -> str:
        """The body so far."""
        return b"".join(event.data for event in self.events if isinstance(event, ResponseData)).decode()

    def stream(self) -> list[ServerSentEvent]:
        """The events of the stream so far."""
        return EventStreamDecoder().receive_data(self.text.encode())

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """The named events of the stream so far, their data parsed."""
        return [(event.event, json.loads(event.data)) for event in self.stream()]


@define(eq=False)
class _Node:
    """An engine and its connections to other engines."""

    engine: Engine
    cables: dict[ChannelId, _Cable] = field(factory=dict)


@define(eq=False)
class _Cable:
    """A connection between two engines: for each, its channel. `shut` are those that have sent their FIN."""

    ends: dict[_Node, ChannelId]
    shut: list[_Node] = field(factory=list)

    def other(self, node: _Node) -> tuple[_Node, ChannelId]:
        """The far end."""
        ((far, ch),) = [(each, ch) for each, ch in self.ends.items() if each is not node]
        return far, ch

    def unplug(self, why: str) -> list[tuple[_Node, Fact]]:
        """It is over for both."""
        for node, ch in self.ends.items():
            node.cables.pop(ch, None)
        return [(node, Closed(ch, why)) for node, ch in self.ends.items()]


class ApiBook:
    """An API server, its runtime, its clients and its upstreams."""

    def __init__(
        self,
        config: ApiConfig | None = None,
        *,
        files: Mapping[str, bytes | str] | None = None,
        upstreams: Mapping[int, Service] | None = None,
        store: Any = None,
        entropy: Callable[[int], bytes] | None = None,
        limits: Limits = PATIENT,
        started: bool = True,
        **options: Any,
    ) -> None:
        config = config or ApiConfig(key=KEY)
        self.config = evolve(config, home=HOME, config_path=CONFIG)
        self.api = Api(self.config, limits=limits, **options)
        self.engine = Engine(self.api, entropy=entropy or counting_entropy(), log_level=Level.DEBUG)
        self.now = START
        self.store = store or open_store("memory:")
        self.disk = Disk(lambda: self.now.wall)
        for path, data in (files or {}).items():
            self.disk.put(path, data.encode() if isinstance(data, str) else data)
        self.host_files = BookFiles(self.disk, self._deliver)
        self.hold: tuple[type[object], ...] = ()
        self.refuse: tuple[type[object], ...] = ()
        self.held: list[Operation[Any]] = []
        self.commands: list[Command] = []  # of the API
        self.logs = Logs()
        self.answers: list[Answer] = []
        self.secrets: set[str] = {self.config.key, self.config.model_api_key, self.config.relay_token} - {""}
        self._node = _Node(self.engine)
        self._upstreams: dict[int, _Node] = {}
        self._peers: dict[ChannelId, Peer] = {}
        self._facts: deque[tuple[_Node, Fact]] = deque()
        self._client_entropy = counting_entropy()
        self._next_channel = 0
        for port, service in (upstreams or {}).items():
            self.serve(port, service)
        if started:
            self.feed(Started())
            assert self.ready

    def serve(self, port: int, service: Service) -> Engine:
        """Let the API find a service at a port, whatever the host."""
        node = _Node(Engine(service, entropy=counting_entropy()))
        self._upstreams[port] = node
        self._tell(node, Started())
        return node.engine

    # --- time and facts ---

    def feed(self, fact: Fact) -> None:
        """Something happened to the API; then everything that follows from it at once."""
        self._tell(self._node, fact)

    def after(self, seconds: float) -> None:
        """Let time pass, waking everyone at each deadline."""
        end = self.now.mono + seconds
        while True:
            due = [when for node in self._nodes if (when := node.engine.next_deadline()) is not None and when <= end]
            if not due:
                break
            self._wake(max(min(due), self.now.mono))
        self._wake(end)

    def stop(self, grace: float = 5.0) -> None:
        self.feed(Stopping(grace))

    def run(self, flow: Flow[Any]) -> list[Any]:
        """Start a flow on the API's engine; what it returned is in the list once it has."""
        results: list[Any] = []

        def begin() -> None:
            self.engine.spawn(flow, on_done=results.append)

        self.engine.timers.timer(begin).set(self.now.mono)
        self.after(0.0)
        return results

    # --- clients ---

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Fields = (),
        peer: Address = PEER,
        host: bytes = HOST,
    ) -> ApiCall:
        """Send a request on a fresh connection. A body of bytes is sent as it is, any other as JSON.

        `key` None is the configured one, "" none at all.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fields = [(b"host", host), *headers]
        key = self.config.key if key is None else key
        if key:
            fields.append((b"authorization", b"Bearer " + key.encode()))
        if data:
            fields.append((b"content-length", b"%d" % len(data)))
        call = self.connect(peer)
        call.say(
            RequestHead(FIRST, method, path, Headers(fields)),
            *([RequestData(FIRST, data)] if data else []),
            RequestEnd(FIRST),
        )
        return call

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Fields = (),
        peer: Address = PEER,
        host: bytes = HOST,
    ) -> Answer:
        """A request that is answered at once."""
        call = self.call(method, path, body, key=key, headers=headers, peer=peer, host=host)
        answer = call.result
        self.answers.append(answer)
        if not call.gone:
            call.vanish()
        return answer

    def raw(self, data: bytes, *, peer: Address = PEER) -> ApiCall:
        """Send any bytes on a fresh connection, and read what comes as the answer to a GET."""
        call = self.connect(peer)
        call.conn.send(RequestHead(FIRST, "GET", "/", Headers([(b"host", HOST)])))
        call.conn.send(RequestEnd(FIRST))
        call.conn.data_to_send()
        call.say_bytes(data)
        return call

    def connect(self, peer: Address = PEER) -> ApiCall:
        """A fresh connection."""
        self._next_channel += 2
        ch = ChannelId(self._next_channel)
        call = ApiCall(self, ch, Http1Connection(Role.CLIENT, entropy=self._client_entropy, deflate=False))
        self._peers[ch] = call
        self.feed(Accepted(ch, peer, LOCAL))
        return call

    def session(self, **fields: object) -> str:
        """A new session; its id."""
        answer = self.request("POST", "/api/sessions", fields)
        assert answer.status == 201, answer
        return cast("str", answer.json["id"])

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """What is stored of a session."""
        answer = self.request("GET", f"/api/sessions/{session_id}/messages")
        assert answer.status == 200, answer
        return cast("list[dict[str, Any]]", answer.json["messages"])

    # --- what was ordered ---

    @property
    def ready(self) -> bool:
        return Ready() in self.commands

    @property
    def exits(self) -> list[Exit]:
        return [command for command in self.commands if isinstance(command, Exit)]

    def queries(self) -> list[object]:
        """What the store was asked, oldest first."""
        return [command.request for command in self.commands if isinstance(command, Query)]

    def events(self, level: Level = Level.DEBUG) -> list[str]:
        """Names of the log records of at least that level."""
        return [log.event for log in self.logs if log.level >= level]

    def release(self, *, fail: bool = False) -> None:
        """Answer the operations that were held."""
        held, self.held = self.held, []
        for operation in held:
            self.feed(Failed(operation.op, Failure(FailureKind.NO_SPACE)) if fail else self._result(operation))

    def leaks(self) -> list[str]:
        """Where a secret shows: in log records, or in any answer."""
        places = [repr(log) for log in self.logs]
        places += [repr(answer) for answer in self.answers]
        places += [repr(bytes(peer.inbox)) for peer in self._peers.values()]
        return [place for place in places for secret in sorted(self.secrets) if secret in place]

    # --- the runtime ---

    @property
    def _nodes(self) -> list[_Node]:
        return [self._node, *self._upstreams.values()]

    def _tell(self, node: _Node, fact: Fact) -> None:
        self._facts.append((node, fact))
        self._drain()

    def _drain(self) -> None:
        while self._facts:
            node, fact = self._facts.popleft()
            self._carry_out(node, node.engine.handle(fact, self.now))

    def _wake(self, mono: float) -> None:
        self.now = self.now.at(mono)
        for node in self._nodes:
            self._carry_out(node, node.engine.handle(None, self.now))
            self._drain()

    def _carry_out(self, node: _Node, commands: list[Command]) -> None:
        for command in commands:
            ours = node is self._node
            if isinstance(command, Log):
                if ours:
                    self.logs.append(command)
                continue
            if ours:
                self.commands.append(command)
            if isinstance(command, Send):
                self._facts.append((node, Sent(command.ch, len(command.data))))
                self._send(node, command)
            elif isinstance(command, CloseWrite | Abort):
                self._end(node, command)
            elif isinstance(command, ReleaseFile | DiscardBlob | DeleteBlob):
                self.host_files.order(command)
            elif isinstance(command, Operation):
                self._operate(node, command)
            elif isinstance(command, Cancel):
                self.held = [operation for operation in self.held if operation.op != command.op]
                self._facts.append((node, Failed(command.op, Failure(FailureKind.CANCELLED))))

    def _send(self, node: _Node, command: Send) -> None:
        cable = node.cables.get(command.ch)
        if cable is not None:
            far, ch = cable.other(node)
            self._facts.append((far, Received(ch, command.data)))
        elif node is self._node and command.ch in self._peers:
            self._deliver(command.ch, command.data)

    def _deliver(self, ch: ChannelId, data: bytes) -> None:
        peer = self._peers[ch]
        reply = peer.receive(data)
        if reply and not peer.mute:
            self._facts.append((self._node, Received(ch, reply)))

    def _end(self, node: _Node, command: CloseWrite | Abort) -> None:
        abort = isinstance(command, Abort)
        cable = node.cables.get(command.ch)
        if cable is not None:
            cable.shut.append(node)
            if abort or len(cable.shut) == len(cable.ends):
                self._facts.extend(cable.unplug("reset" if abort else "done"))
            else:
                far, ch = cable.other(node)
                self._facts.append((far, ReadClosed(ch)))
        elif node is self._node and command.ch in self._peers:
            peer = self._peers[command.ch]
            peer.aborted = peer.aborted or abort
            if not peer.gone:
                peer.gone = True
                self._facts.append((node, Closed(command.ch, "done")))

    def _operate(self, node: _Node, operation: Operation[Any]) -> None:
        subject = operation.request if isinstance(operation, Query) else operation
        behind = isinstance(operation, Query) and any(isinstance(held, Query) for held in self.held)  # kept in order
        if node is self._node and (behind or isinstance(subject, self.hold)):
            self.held.append(operation)
        elif node is self._node and isinstance(subject, self.refuse):
            self._facts.append((node, Failed(operation.op, Failure(FailureKind.NO_SPACE))))
        else:
            self._facts.append((node, self._result(operation)))

    def _result(self, operation: Operation[Any]) -> Fact:
        try:
            answer = self._answer(operation)
        except HostError as error:
            return Failed(operation.op, error.failure)
        return answer if isinstance(answer, Failed) else Done(operation.op, answer)

    def _answer(self, operation: Operation[Any]) -> object:
        match operation:
            case Query(request=request):
                return self.store.execute(request)
            case Connect():
                return self._connected(operation)
            case EnsureSecret():
                return bytes(range(32))
            case Compute(name="list_folders", args=(str(path),)):
                return self.disk.folders(path)
            case Compute(name=name, args=args) if name.startswith("yaml."):
                return COMPUTE[name](*args)
            case ReadConfig(name=name):
                return bytes(as_file(self.disk.open(f"{HOME}/{name}")[1]).data).decode()
            case WriteConfig(name=name, text=text):
                self.disk.replace(f"{HOME}/{name}", text.encode())
                return None
        answer = self.host_files.answer(operation)
        if isinstance(answer, Done):
            return answer.result
        if isinstance(answer, Failed):
            return answer
        raise AssertionError(f"the API ordered something new: {operation!r}")

    def _connected(self, order: Connect) -> object:
        node = self._upstreams.get(order.port)
        if node is None:
            return Failed(order.op, Failure(FailureKind.UNREACHABLE, "connection refused"))
        self._next_channel += 2
        theirs = ChannelId(self._next_channel)
        cable = _Cable({self._node: order.ch, node: theirs})
        self._node.cables[order.ch] = node.cables[theirs] = cable
        self._facts.append((node, Accepted(theirs, UPSTREAM, Address("127.0.0.1", order.port))))
        return Connected(Address("127.0.0.1", order.port))
