"""Relay without sockets: the core, whose operations are answered at once, for callers and phones in this process."""

from __future__ import annotations

import json
import os
import time
from collections import deque

from bench.measure import BenchError
from bench.wire import TEXT, FrameReader, auth_message, request, upgrade
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Level, Operation, Query, Ready, Send
from svc_proto.engine.core import Engine
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    Received,
    Sent,
    Started,
)
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import LoadSessions

__all__ = ["CALLER", "LOCAL", "PEER", "PHONE", "MemoryRelay", "now"]

CALLER = ChannelId(2)
PHONE = ChannelId(4)
PEER = Address("127.0.0.1", 50_000)
LOCAL = Address("127.0.0.1", 8767)


def now() -> Moment:
    """Return both clocks, read before every call as a runtime does."""
    return Moment(time.monotonic(), time.time())


class MemoryRelay:
    """A started relay in memory with one open channel of a caller."""

    def __init__(self, *, admission: bool = True) -> None:
        relay = (Relay if admission else _Open)(RelayConfig(home="/nonexistent"))
        self.engine = Engine(relay, entropy=os.urandom, log_level=Level.ERROR)
        if not any(isinstance(command, Ready) for command in self.tell(Started())):
            raise BenchError("the relay in memory did not get ready")
        self.tell(Accepted(CALLER, PEER, LOCAL))

    def tell(self, fact: Fact) -> list[Command]:
        """Give a fact to the core, then the facts that its commands cause: results of operations, and `Sent`.

        Returns all commands.
        """
        facts, told = deque([fact]), list[Command]()
        while facts:
            for command in self.engine.handle(facts.popleft(), now()):
                told.append(command)
                if isinstance(command, Send):
                    facts.append(Sent(command.ch, len(command.data)))
                elif isinstance(command, Operation):
                    facts.append(_answer(command))
        return told

    def sent(self, ch: ChannelId, data: bytes) -> bytes:
        """Return the bytes sent to a channel after receiving `data` from it."""
        return self.sent_to(ch, ch, data)

    def sent_to(self, receiver: ChannelId, sender: ChannelId, data: bytes) -> bytes:
        """Return the bytes sent to one channel after receiving `data` from another."""
        told = self.tell(Received(sender, data))
        return b"".join(command.data for command in told if isinstance(command, Send) and command.ch == receiver)

    def pair(self, ch: ChannelId = PHONE) -> str:
        """Open a phone's channel and pair it; return its session token. Raises `BenchError` if the relay refuses."""
        answer = self.sent(CALLER, request("POST", "/pairing"))
        code = json.loads(answer.partition(b"\r\n\r\n")[2])["code"]
        self.tell(Accepted(ch, Address("127.0.0.1", 50_000 + ch), LOCAL))
        if not self.sent(ch, upgrade()).startswith(b"HTTP/1.1 101"):
            raise BenchError("the relay in memory refused a WebSocket")
        for opcode, payload in FrameReader().feed(self.sent(ch, auth_message(code, f"bench-phone-{ch}"))):
            message = json.loads(payload) if opcode == TEXT else {}
            if message.get("type") == "auth.ok":
                return str(message["payload"]["session_token"])
        raise BenchError("the relay in memory did not accept the phone")


class _Open(Relay):
    """A relay without admission control, as a baseline."""

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        channel = super().on_accepted(fact)
        if channel is not None:
            channel.mark_authenticated()
        return channel


def _answer(operation: Operation[object]) -> Fact:
    if not isinstance(operation, Query):
        return Failed(operation.op, Failure(FailureKind.NOT_FOUND))
    return Done(operation.op, () if isinstance(operation.request, LoadSessions) else None)
