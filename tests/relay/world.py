"""A started relay with clients on the other end of the wire, all in memory: bytes go both ways, time moves by `after`.

    book = RelayBook()
    answer = book.request("GET", "/health")
    phone = book.pair().phone
    call = book.call("GET", "/ping", token=...)      # waits for the phone
    phone.reply(call_command, 200, {"ok": True})
    assert call.answer.status == 200

The book plays the runtime: it acknowledges what is sent, keeps the store, the files and the secret, and answers every
operation at once, unless `hold` names its type: then it waits in `held` for `book.release()`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import yaml
from attrs import frozen

from runtimes.compute import edit_yaml
from runtimes.sim.disk import Disk
from svc_proto.basics.moment import Moment
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
    OpenedFile,
    OpenFile,
    Operation,
    Query,
    ReadConfig,
    ReadFile,
    Ready,
    ReleaseFile,
    Send,
    WriteConfig,
)
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.store import DeleteSession, LoadSessions, SaveSession
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
    Received,
    Sent,
    Started,
    Stopping,
)
from svc_proto.machines.device_keys import DeviceKeys
from svc_proto.relay.service import Relay
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from tests.playbook import LOCAL, PATIENT, PEER, REMOTE, START, Logs, counting_entropy
from tests.relay.disk import FIRST_HANDLE, BookFiles
from tests.relay.peers import FIRST, Answer, Call, Peer, Phone, Upstream

__all__ = ["FIRST", "HOST", "LOCAL", "PEER", "REMOTE", "START", "Answer", "Call", "Paired", "Phone", "RelayBook"]

HOST = b"127.0.0.1:8767"
SECRET = bytes(range(32))
Fields = Iterable[tuple[bytes, bytes]]
PeerT = TypeVar("PeerT", bound="Peer")


@frozen
class Paired:
    """A phone right after its pairing."""

    phone: Phone
    token: str
    ok: dict[str, Any]  # payload of auth.ok

    @property
    def prefix(self) -> str:
        return self.token[:8]


class RelayBook:
    """A relay, its runtime and its peers."""

    def __init__(
        self,
        config: RelayConfig | None = None,
        *,
        records: Iterable[Mapping[str, object]] = (),
        files: Mapping[str, bytes] | None = None,
        entropy: Callable[[int], bytes] | None = None,
        limits: Limits = PATIENT,
        keys: DeviceKeys | None = None,
        started: bool = True,
    ) -> None:
        config = config or RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml")
        self.relay = Relay(config, limits=limits, keys=keys)
        self.engine = Engine(self.relay, entropy=entropy or counting_entropy(), log_level=Level.DEBUG)
        self.now = START
        self.store = {cast("str", record["token_hash"]): record for record in records}
        self.files = dict(files or {})  # of configuration, by path
        self.disk = Disk(lambda: self.now.wall)  # everything else on the host
        self.host_files = BookFiles(self.disk, self._deliver)
        self.profile_folders: list[str] = []
        self.engines: dict[str, object] = {}  # of speech that are installed
        self.upstream: Callable[[RequestHead], tuple[int, bytes]] | None = None  # answers what the relay asks others
        self.asked: list[RequestHead] = []
        self.hold: tuple[type[object], ...] = ()
        self.refuse: tuple[type[object], ...] = ()
        self.held: list[Operation[Any]] = []
        self.commands: list[Command] = []
        self.logs = Logs()
        self.answers: list[Answer] = []
        self.secrets: set[str] = set()
        self._peers: dict[ChannelId, Peer] = {}
        self._facts: deque[Fact] = deque()
        self._client_entropy = counting_entropy()
        self._next_channel = 0
        if started:
            self.feed(Started())
            assert self.ready

    # --- time and facts ---

    def feed(self, fact: Fact) -> None:
        """Something happened; then everything that follows from it at once."""
        self._facts.append(fact)
        while self._facts:
            self._carry_out(self.engine.handle(self._facts.popleft(), self.now))

    def after(self, seconds: float) -> None:
        """Let time pass, waking the relay at each of its deadlines."""
        end = self.now.mono + seconds
        while (due := self.engine.next_deadline()) is not None and due <= end:
            self._wake(max(due, self.now.mono))
        self._wake(end)

    def step_clock(self, seconds: float) -> None:
        """The operator sets the wall clock."""
        self.now = Moment(self.now.mono, self.now.wall + seconds)

    def stop(self, grace: float = 5.0) -> None:
        self.feed(Stopping(grace))

    # --- clients ---

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Fields = (),
        peer: Address = PEER,
        host: bytes = HOST,
        tls: bool = False,
    ) -> Call:
        """Send a request on a fresh connection. A body of bytes is sent as it is, any other as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fields = [(b"host", host), *headers]
        if token is not None:
            fields.append((b"authorization", b"Bearer " + token.encode()))
        if data:
            fields.append((b"content-length", b"%d" % len(data)))
        call = self._connect(Call, peer, tls)
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
        token: str | None = None,
        headers: Fields = (),
        peer: Address = PEER,
        host: bytes = HOST,
    ) -> Answer:
        """A request that is answered at once."""
        call = self.call(method, path, body, token=token, headers=headers, peer=peer, host=host)
        answer = call.result
        self.answers.append(answer)
        if not call.gone:
            call.vanish()
        return answer

    def raw(self, data: bytes, *, peer: Address = REMOTE) -> Call:
        """Send any bytes on a fresh connection, and read what comes as the answer to a GET."""
        call = self._connect(Call, peer, False)
        call.conn.send(RequestHead(FIRST, "GET", "/", Headers([(b"host", HOST)])))
        call.conn.send(RequestEnd(FIRST))
        call.conn.data_to_send()
        call.say_bytes(data)
        return call

    def knock(
        self, path: str = "/ws", *, peer: Address = REMOTE, headers: Fields = (), tls: bool = False, host: bytes = HOST
    ) -> Phone:
        """Ask for a WebSocket, which may be refused."""
        phone = self._connect(Phone, peer, tls)
        phone.say(RequestHead(FIRST, "GET", path, Headers([(b"host", host), *headers]), websocket=True))
        return phone

    def websocket(self, path: str = "/ws", *, peer: Address = REMOTE, headers: Fields = (), tls: bool = False) -> Phone:
        """An open WebSocket."""
        phone = self.knock(path, peer=peer, headers=headers, tls=tls)
        assert phone.is_open, phone.events
        return phone

    def register(self, code: str = "Q7M2ZK", meta: Mapping[str, object] | None = None) -> str:
        """Register a pairing code as the operator does."""
        assert self.request("POST", "/pairing/register", {"code": code, **(meta or {})}).status == 200
        self.secrets.add(code)
        return code

    def pair(self, *, operator: Mapping[str, object] | None = None, peer: Address = REMOTE, **device: object) -> Paired:
        """Pair a phone: a code, a socket, `system/auth`."""
        code = self.register(meta=operator)
        payload = {"client_surface": "android", "device_form_factor": "phone", **device}
        phone = self.websocket(peer=peer)
        answer = phone.auth(pairing_code=code, **payload)
        assert answer["type"] == "auth.ok", answer
        ok = answer["payload"]
        self.secrets.add(ok["session_token"])
        return Paired(phone, ok["session_token"], ok)

    def reconnect(self, token: str, *, peer: Address = REMOTE) -> Phone:
        """Come back with a token."""
        phone = self.websocket(peer=peer)
        assert phone.auth(session_token=token)["type"] == "auth.ok"
        return phone

    def sessions(self) -> list[dict[str, Any]]:
        """What the operator sees."""
        return cast("list[dict[str, Any]]", self.request("GET", "/sessions").json["sessions"])

    def activity(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self.request("GET", "/bridge/activity").json["activity"])

    # --- what was ordered ---

    @property
    def ready(self) -> bool:
        return Ready() in self.commands

    @property
    def exits(self) -> list[Exit]:
        return [command for command in self.commands if isinstance(command, Exit)]

    def events(self, level: Level = Level.DEBUG) -> list[str]:
        """Names of the log records of at least that level."""
        return [log.event for log in self.logs if log.level >= level]

    def release(self, *, fail: bool = False) -> None:
        """Answer the operations that were held."""
        held, self.held = self.held, []
        for operation in held:
            self.feed(Failed(operation.op, Failure(FailureKind.NO_SPACE)) if fail else self._result(operation))

    def leaks(self) -> list[str]:
        """Where a secret shows: in log records, or in the bodies of refusals."""
        places = [repr(log) for log in self.logs]
        places += [repr(answer) for answer in self.answers if answer.status >= 400]
        return [place for place in places for secret in sorted(self.secrets) if secret in place]

    # --- the runtime ---

    def _wake(self, mono: float) -> None:
        self.now = self.now.at(mono)
        self._carry_out(self.engine.handle(None, self.now))
        while self._facts:
            self._carry_out(self.engine.handle(self._facts.popleft(), self.now))

    def _connect(self, kind: type[PeerT], address: Address, tls: bool) -> PeerT:
        self._next_channel += 2
        ch = ChannelId(self._next_channel)
        conn = Http1Connection(Role.CLIENT, entropy=self._client_entropy, deflate=False)
        peer = kind(self, ch, conn)
        self._peers[ch] = peer
        self.feed(Accepted(ch, address, LOCAL, tls))
        return peer

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Log):
                self.logs.append(command)
                continue
            self.commands.append(command)
            if isinstance(command, Send):
                self._facts.append(Sent(command.ch, len(command.data)))
                self._deliver(command.ch, command.data)
            elif isinstance(command, CloseWrite | Abort):
                self._end(command)
            elif isinstance(command, ReleaseFile | DiscardBlob | DeleteBlob):
                self.host_files.order(command)
            elif isinstance(command, Operation):
                self._operate(command)
            elif isinstance(command, Cancel):
                self.held = [operation for operation in self.held if operation.op != command.op]
                self._facts.append(Failed(command.op, Failure(FailureKind.CANCELLED)))

    def _deliver(self, ch: ChannelId, data: bytes) -> None:
        peer = self._peers[ch]
        reply = peer.receive(data)
        if reply and not peer.mute:
            self._facts.append(Received(ch, reply))

    def _end(self, command: CloseWrite | Abort) -> None:
        peer = self._peers[command.ch]
        peer.aborted = peer.aborted or isinstance(command, Abort)
        if not peer.gone:
            peer.gone = True
            self._facts.append(Closed(command.ch, "done"))

    def _operate(self, operation: Operation[Any]) -> None:
        subject = operation.request if isinstance(operation, Query) else operation
        behind = isinstance(operation, Query) and any(isinstance(held, Query) for held in self.held)  # kept in order
        if behind or isinstance(subject, self.hold):
            self.held.append(operation)
        elif isinstance(subject, self.refuse):
            self._facts.append(Failed(operation.op, Failure(FailureKind.NO_SPACE)))
        else:
            self._facts.append(self._result(operation))

    def _answer_upstream(self, head: RequestHead) -> tuple[int, bytes]:
        self.asked.append(head)
        assert self.upstream is not None
        return self.upstream(head)

    def _result(self, operation: Operation[Any]) -> Fact:
        match operation:
            case Query(op=op, request=LoadSessions()):
                return Done(op, tuple(self.store.values()))
            case Query(op=op, request=SaveSession(token_hash=token_hash, record=record)):
                self.store[token_hash] = record
                return Done(op, None)
            case Query(op=op, request=DeleteSession(token_hash=token_hash)):
                self.store.pop(token_hash, None)
                return Done(op, None)
            case OpenFile(op=op, path=path) if path in self.files:
                handle = list(self.files).index(path)
                return Done(op, OpenedFile(handle, path, len(self.files[path]), START.wall))
            case ReadFile(op=op, handle=handle) if handle < FIRST_HANDLE:
                return Done(op, list(self.files.values())[handle])
            case EnsureSecret(op=op):
                return Done(op, SECRET)
            case ReadConfig(op=op, name=path):
                found = self.files.get(path)
                return Failed(op, Failure(FailureKind.NOT_FOUND)) if found is None else Done(op, found.decode())
            case WriteConfig(op=op, name=path, text=text):
                self.files[path] = text.encode()
                return Done(op, None)
            case Connect():
                return self._connect_upstream(operation)
            case Compute():
                return self._compute(operation)
        answer = self.host_files.answer(operation)
        if answer is not None:
            return answer
        raise AssertionError(f"the relay ordered something new: {operation!r}")

    def _connect_upstream(self, order: Connect) -> Fact:
        if self.upstream is None:
            return Failed(order.op, Failure(FailureKind.UNREACHABLE))
        conn = Http1Connection(Role.SERVER, entropy=self._client_entropy, deflate=False)
        self._peers[order.ch] = Upstream(self, order.ch, conn, answer=self._answer_upstream)
        return Done(order.op, Connected(Address(order.host, order.port)))

    def _compute(self, order: Compute) -> Fact:
        match order.name, order.args:
            case "yaml.load", (text,):
                return Done(order.op, yaml.safe_load(cast("str", text)))
            case "yaml.edit", (text, changes):
                return Done(order.op, edit_yaml(cast("str", text), cast("dict[str, object]", changes)))
            case "voice.engines", _:
                return Done(order.op, self.engines)
            case "lan_address", _:
                return Done(order.op, "192.0.2.10")
            case "list_folders", _:
                return Done(order.op, tuple(self.profile_folders))
            case "which", _:
                return Failed(order.op, Failure(FailureKind.NOT_FOUND))
        raise AssertionError(f"the relay wants new work: {order!r}")
