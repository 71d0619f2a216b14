"""A relay and a phone in one memory, without a socket, a thread or a wait: the cores alone, and what joins them.

  python -m examples.in_memory

Two cores are joined by a cable of bytes; their timers are called when they are due, on a clock that moves by itself. It
runs wherever Python does: examples/browser has it in a page, and under Node.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable

import svc_proto as proto
from clients.phone.emulator import EmulatedPhone
from svc_proto.engine import Engine, LoadSessions
from svc_proto.phone import Phone, PhoneConfig, SafetySettings
from svc_proto.relay import Relay, RelayConfig
from svc_proto.wire import Headers, Http1Connection, RequestEnd, RequestHead, ResponseData, ResponseEnd, Role, StreamId

HOME = proto.Address("127.0.0.1", 8767)
START = 1_800_000_000.0  # s, the clock on the wall at the beginning
PATIENCE = 60.0  # s on the clock for an answer
Place = tuple[str, proto.ChannelId]  # a core and one of its channels


class InMemory:
    """`call` asks the relay over HTTP, as an agent does; the phone answers."""

    def __init__(self, code: str = "ABC123") -> None:
        phone = Phone(PhoneConfig(remote="ws://relay", code=code), EmulatedPhone(), SafetySettings(armed=True))
        self._cores = {
            "relay": Engine(Relay(RelayConfig(pairing_code=code)), entropy=os.urandom),
            "phone": Engine(phone, entropy=os.urandom),
        }
        self._facts: deque[tuple[str, proto.Fact | None]] = deque([("relay", proto.Started())])
        self._joined: dict[Place, Place] = {}  # both ways
        self._heard: dict[proto.ChannelId, bytes] = {}  # by callers, who are no cores
        self._last = 0
        self._mono = 0.0
        self._phone = phone
        self.run_until(lambda: phone.token is not None)

    @property
    def token(self) -> str:
        """What the relay gave the phone; agents show it, too."""
        return self._phone.token or ""

    def call(self, method: str, path: str) -> str:
        """One request without a body; the status and the body of its answer."""
        conn, stream = Http1Connection(Role.CLIENT, entropy=os.urandom), StreamId(1)
        fields = Headers([(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {self.token}".encode())])
        conn.send(RequestHead(stream, method, path, fields))
        conn.send(RequestEnd(stream))
        ch = self._new_channel()
        self._heard[ch] = b""
        self._facts.append(("relay", proto.Accepted(ch, HOME, HOME)))
        self._facts.append(("relay", proto.Received(ch, conn.data_to_send())))
        body, status = b"", 0
        while True:
            self.run_until(lambda: bool(self._heard[ch]))
            conn.receive_data(self._heard[ch])
            self._heard[ch] = b""
            while (event := conn.next_event()) is not None:
                status = getattr(event, "status", status)
                if isinstance(event, ResponseData):
                    body += event.data
                if isinstance(event, ResponseEnd):
                    self._facts.append(("relay", proto.ReadClosed(ch)))
                    return f"{status} {body.decode()}"

    def run_until(self, done: Callable[[], bool]) -> None:
        """Hand facts over until `done()`; when there are none, the clock moves to the next timer."""
        until = self._mono + PATIENCE
        while not done():
            if self._facts:
                name, fact = self._facts.popleft()
                for command in self._cores[name].handle(fact, proto.Moment(self._mono, START + self._mono)):
                    self._carry_out(name, command)
                continue
            due = [when for core in self._cores.values() if (when := core.next_deadline()) is not None]
            self._mono = max(self._mono, min(due, default=until))
            if self._mono >= until:
                raise TimeoutError("nothing more happens")
            self._facts.extend((name, None) for name in self._cores)

    def _carry_out(self, name: str, command: proto.Command) -> None:
        match command:
            case proto.Ready() if name == "relay":  # before, it would know neither sessions nor codes
                self._facts.append(("phone", proto.Started()))
            case proto.Connect(op=op, ch=ch):
                other = self._new_channel()
                self._joined[name, ch], self._joined["relay", other] = ("relay", other), (name, ch)
                self._facts.append((name, proto.Done(op, proto.Connected(HOME))))
                self._facts.append(("relay", proto.Accepted(other, HOME, HOME)))
            case proto.Send(ch=ch, data=data):
                self._facts.append((name, proto.Sent(ch, len(data))))
                self._tell(name, ch, lambda there: proto.Received(there, data), data)
            case proto.CloseWrite(ch=ch):
                self._tell(name, ch, proto.ReadClosed)
            case proto.Abort(ch=ch):
                self._facts.append((name, proto.Closed(ch)))
                self._tell(name, ch, proto.Closed)
            case proto.Query(op=op, request=request):
                self._facts.append((name, proto.Done(op, () if isinstance(request, LoadSessions) else None)))
            case proto.Operation(op=op):
                self._facts.append((name, proto.Failed(op, proto.Failure(proto.FailureKind.UNSUPPORTED))))
            case _:  # logs, news, pauses: nothing here waits for them
                pass

    def _tell(
        self, name: str, ch: proto.ChannelId, fact: Callable[[proto.ChannelId], proto.Fact], heard: bytes = b""
    ) -> None:
        """The other end of a channel: a core, or whoever made a `call`."""
        if ch in self._heard and name == "relay":
            self._heard[ch] += heard
        elif (name, ch) in self._joined:
            other, there = self._joined[name, ch]
            self._facts.append((other, fact(there)))

    def _new_channel(self) -> proto.ChannelId:
        self._last += 2
        return proto.ChannelId(self._last)


def main() -> None:
    """Pair, and drive the phone."""
    memory = InMemory()
    for path in ("/ping", "/current_app"):
        print(path, memory.call("GET", path))
    print("/screen", len(json.loads(memory.call("GET", "/screen").partition(" ")[2])["nodes"]), "nodes")


if __name__ == "__main__":
    main()
