"""Playbook of the toy service with an HTTP/2 client as its peer."""

from svc_proto import wire
from svc_proto.commands import Command, Level, PauseReading, ResumeReading, Send
from svc_proto.facts import Received, Sent
from svc_proto.wire.connection import Role
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.engine.toy_service import ToyPlaybook, open_book
from tests.support.playbook import CH, wire_bytes
from tests.wire.connection_pair import FIVE, ONE, THREE, drain, merged, seeded

__all__ = ["FIVE", "HOST", "ONE", "THREE", "Http2Playbook", "answers"]

HOST = wire.Headers(((b"host", b"x"),))


class Http2Playbook:
    """A playbook of the toy service with an HTTP/2 client as its peer.

    `pauses` has the commands that pause or resume reading, `others` all further ones except `Send`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, log_level: Level = Level.INFO) -> None:
        self.book: ToyPlaybook = open_book(limits, log_level=log_level)
        self.toy = self.book.toy
        self.client = Http2Connection(Role.CLIENT, limits=limits, entropy=seeded())
        self.others: list[Command] = []
        self.pauses: list[Command] = []
        self.unsent = 0
        assert self.talk() == []

    def talk(self, *, sent: bool = True) -> list[wire.Event]:
        """Exchange bytes until client and server are idle; return the events that the client received."""
        heard: list[wire.Event] = self.feed(self.book.drain_commands(), sent=sent)
        while data := self.client.data_to_send():
            self.book >> Received(CH, data)
            heard += self.feed(self.book.drain_commands(), sent=sent)
        return merged(heard)

    def feed(self, commands: list[Command], *, sent: bool = True) -> list[wire.Event]:
        """Pass the bytes of `Send` commands to the client and return its events; store the other commands.

        With `sent`, report the bytes as sent to the core, and handle the commands that follow likewise.
        """
        heard: list[wire.Event] = []
        while commands:
            for command in commands:
                if isinstance(command, PauseReading | ResumeReading):
                    self.pauses.append(command)
                elif not isinstance(command, Send):
                    self.others.append(command)
            data = wire_bytes(commands)
            self.client.receive_data(data)
            heard += drain(self.client)
            self.unsent += len(data)
            commands = []
            if sent and self.unsent:
                self.book >> Sent(CH, self.unsent)
                self.unsent = 0
                commands = self.book.drain_commands()
        return heard

    def after(self, seconds: float) -> list[wire.Event]:
        self.book.after(seconds)
        return merged(self.feed(self.book.drain_commands()))

    def send_request(
        self, stream: wire.StreamId, target: str, body: bytes | None = None, *fields: tuple[bytes, bytes]
    ) -> None:
        method = "GET" if body is None else "POST"
        self.client.send(wire.RequestHead(stream, method, target, wire.Headers((*HOST, *fields))))
        if body is not None:
            self.client.send(wire.RequestData(stream, body))
        self.client.send(wire.RequestEnd(stream))

    def open(self, stream: wire.StreamId) -> list[wire.Event]:
        self.client.send(wire.RequestHead(stream, "GET", "/ws", HOST, websocket=True))
        return self.talk()


def answers(events: list[wire.Event]) -> dict[int, tuple[int, bytes]]:
    """Return status and body of the complete responses, by stream."""
    found: dict[int, tuple[int, bytes]] = {}
    for stream in [event.stream for event in events if isinstance(event, wire.ResponseEnd)]:
        (head,) = [event for event in events if isinstance(event, wire.ResponseHead) and event.stream == stream]
        pieces = [event.data for event in events if isinstance(event, wire.ResponseData) and event.stream == stream]
        found[stream] = (head.status, b"".join(pieces))
    return found
