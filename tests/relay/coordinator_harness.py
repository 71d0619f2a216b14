"""Harness of one relay with a scripted Redis; another node, `b`, is known."""

from collections.abc import Mapping
from typing import Any

from svc_proto.commands import Query, ReadConfig, StoreRequest
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Done, Failed, Failure, FailureKind
from svc_proto.machines.paired_session_registry import PairedSession, PairedSessionRegistry
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay.cluster.coordinator import ClusterCoordinator
from svc_proto.relay.service import Relay
from svc_proto.relay.session_records import SessionRecords
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.relay_types import PhonesJson
from svc_proto.store_requests import CountSessions, LoadSessionChanges, LoadSessionRevision, LoadSessions
from svc_proto.wire.resp import Push
from tests.cluster.harness import WHERE, RedisHarness, opened, signed
from tests.support.core_harness import HOME
from tests.support.playbook import counting_entropy


class PhoneRouteStub:
    """The part of a phone's client that the coordinator uses; `may` is its answer to each question for a grant."""

    def __init__(self, number: int, *, may: bool = True) -> None:
        self.number = number
        self.may = may
        self.sent: list[str] = []
        self.socket = self
        self.session = None
        self.terminals = self.tui = None

    def has_grant(self, channel: str) -> bool:
        return self.may

    def send_text(self, text: str) -> bool:
        self.sent.append(text)
        return True


class CoordinatorHarness:
    """Relay with a scripted Redis; another node, `b`, is known."""

    def __init__(
        self,
        config: RelayConfig | None = None,
        revision: int | None = None,
        greeted: int = 0,
        stored: int | None = None,
    ) -> None:
        """Start the relay.

        `revision` is the store's revision if the relay has already read its sessions, as beside an API server.
        `greeted` is the number of nodes that receive its `hello`; with one, the start is not complete.
        `stored` is the number of sessions that the relay is about to read; the query for them is not answered.
        """
        settings = config or RelayConfig(home=HOME, cluster=WHERE)

        def make(engine: Engine) -> Relay:
            relay = Relay(settings, keys=None if revision is None else PairingApiKeys())
            relay.bind(engine)
            return relay

        self.book: RedisHarness[Relay] = RedisHarness(make)
        self.relay = self.book.made
        coordinator = self.relay.coordinator
        assert isinstance(coordinator, ClusterCoordinator)
        self.coordinator = coordinator
        self.told = 0
        self.started: list[object] = []
        if revision is not None or stored is not None:
            records = SessionRecords(self.book.engine, self.relay.sessions)
            self.run(coordinator.load_sessions(records), [])
            self.answer_query(LoadSessionRevision(), revision or 0)
        if revision is not None:
            self.answer_query(LoadSessions(), ())
        elif stored is not None:
            (tombstones,) = self.book.ordered(ReadConfig)
            self.book.feed(Failed(tombstones.op, Failure(FailureKind.NOT_FOUND)))
            self.answer_query(CountSessions(), stored)
        self.run(coordinator.start(), self.started)
        self.book.give_secret()
        self.book.open()
        self.book.new_commands()
        self.book.answers([b"1800000000", b"0"], 1 + greeted)
        if stored is not None:
            self.deliver("hello")
            return
        if revision is None:
            self.loads()
        else:
            self.answer_query(LoadSessionChanges(revision), ())
        self.book.answers(b"PONG")
        assert self.started == ([] if greeted else [None])
        self.deliver("hello")
        self.loads()
        self.book.new_commands()
        self.book.answers(1, 1)

    def run(self, flow: Flow[Any], into: list[Any]) -> None:
        """Spawn a flow in the core; `into` receives its result or its error."""
        self.book.within(lambda: self.book.engine.spawn(flow, on_done=into.append, on_error=into.append))

    def leaving(self) -> Flow[None]:
        """Return the flow by which the relay leaves the cluster."""
        leaving = self.coordinator.stop()
        assert leaving is not None
        return leaving

    def loads(self, *records: Mapping[str, object], failed: bool = False) -> Query[Any]:
        """Answer the pending query for stored sessions with the records, or with a failure, and return the query.

        Unless it is to fail, a query for changes alone is refused first, after which the relay reads all sessions.
        """
        (order,) = self.book.ordered(Query)
        if isinstance(order.request, LoadSessionChanges) and not failed:
            self.book.feed(Failed(order.op, Failure(FailureKind.NOT_FOUND)))
            (order,) = self.book.ordered(Query)
            assert order.request == LoadSessionRevision()
            self.book.feed(Done(order.op, 0))
            (order,) = self.book.ordered(Query)
        failure = Failed(order.op, Failure(FailureKind.INTERNAL))
        self.book.feed(failure if failed else Done(order.op, tuple(records)))
        return order

    def answer_query(self, request: StoreRequest[Any], answer: object) -> None:
        """Require that this request is the pending query, and answer it; a `FailureKind` as answer makes it fail."""
        (order,) = self.book.ordered(Query)
        assert order.request == request
        if isinstance(answer, FailureKind):
            self.book.feed(Failed(order.op, Failure(answer)))
        else:
            self.book.feed(Done(order.op, answer))

    def deliver(self, word: str, body: object = None, *, node: str = "b", to_me: bool = False) -> None:
        """Deliver a message of another node to all nodes, or with `to_me` to this one alone.

        After a `hello` the message `proof` of the node is delivered, too.
        """
        counted = not to_me and word not in ("hello", "beat", "bye")
        self.told += counted
        channel = (f"svc:0:node:{self.coordinator.node.id}" if to_me else "svc:0:all").encode()
        text = signed(channel, {"from": node, "told": self.told, "word": word, "body": body or {}})
        self.book.answers(Push([b"message", channel, text]))
        if word == "hello":
            self.deliver("proof", node=node, to_me=True)  # its broadcasts count from now on

    def new_messages(self) -> list[tuple[str, Any]]:
        """Return the new messages of the relay and answer each as received by one node."""
        found: list[tuple[str, Any]] = []
        for words in self.book.new_commands():
            assert isinstance(words, list)
            text = opened(words)
            found.append((text["word"], text["body"]))
            self.book.answers(1)
        return found

    def came(self, device: str = "X", socket: int = 4, since: float = 1.0, **more: object) -> None:
        """Deliver the message of `b` that a phone has connected there."""
        self.deliver("came", {"socket": socket, "device_id": device, "name": device, "since": since, **more})

    def connect(self, socket: int, device: str) -> None:
        """Connect a phone to this relay."""

        def come() -> None:
            replaced = self.relay.register_phone(
                socket, device_id=device, name=device, surface="android", form_factor="phone", session_prefix=None
            )
            self.coordinator.phone_connected(socket, replaced)

        self.book.within(come)

    def devices(self) -> PhonesJson:
        return self.relay.phones.devices_report(self.book.engine.now)

    def record(self, **changed: object) -> dict[str, object]:
        """Return the record of a new session, with these members replaced."""
        _, session = PairedSessionRegistry().create(self.book.engine.now, counting_entropy())
        return {**session.to_record(), **changed}

    def shared(self, record: Mapping[str, object]) -> PairedSession:
        """Deliver the message of `b` that it has saved this session; return the session that the relay then has."""
        self.deliver("saved", record)
        session = self.relay.sessions.hashed(str(record["token_hash"]))
        assert session is not None
        return session

    def saves(self, session: PairedSession) -> Query[Any]:
        """Start to save a session, and return the query, which is not answered yet."""
        self.book.spawn(self.relay.save(session))
        (order,) = self.book.ordered(Query)
        return order

    def knows(self, record: Mapping[str, object]) -> bool:
        return self.relay.sessions.hashed(str(record["token_hash"])) is not None
