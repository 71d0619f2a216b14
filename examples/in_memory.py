"""A relay and a phone in one process, without sockets, threads or waits: the cores alone, and a runtime in memory.

  python -m examples.in_memory

Bytes pass between two cores, and timers are called when they are due, on a virtual clock. It runs wherever Python does:
examples/browser runs it in a page, and under Node.
"""

import json
import os
from collections import deque
from collections.abc import Callable

import svc_proto as proto
from clients.phone.emulator import EmulatedPhone
from svc_proto.engine import Engine
from svc_proto.phone import Phone, PhoneConfig, SafetySettings
from svc_proto.relay import Relay, RelayConfig
from svc_proto.wire import Headers, Http1Connection, RequestEnd, RequestHead, ResponseData, ResponseEnd, Role, StreamId

HOME = proto.Address("127.0.0.1", 8767)
START = 1_800_000_000.0  # s, the wall clock at the beginning
PATIENCE = 60.0  # virtual s for an answer
Place = tuple[str, proto.ChannelId]  # a core and one of its channels


class InMemory:
    """Relay and phone as two connected cores; `call` sends the relay an HTTP request, such as one for the phone."""

    def __init__(self, code: str = "ABC123") -> None:
        phone = Phone(PhoneConfig(remote="ws://relay", code=code), EmulatedPhone(), SafetySettings(armed=True))
        self._cores = {
            "relay": Engine(Relay(RelayConfig(pairing_code=code)), entropy=os.urandom),
            "phone": Engine(phone, entropy=os.urandom),
        }
        self._facts: deque[tuple[str, proto.Fact | None]] = deque([("relay", proto.Started())])
        self._joined: dict[Place, Place] = {}  # in both directions
        self._heard: dict[proto.ChannelId, bytes] = {}  # bytes received by callers, which are not cores
        self._last = 0
        self._mono = 0.0
        self._phone = phone
        self.run_until(lambda: phone.token is not None)

    @property
    def token(self) -> str:
        """Return the phone's session token; agents use it, too."""
        return self._phone.token or ""

    def call(self, method: str, path: str) -> str:
        """Send one request without a body; return the status and body of its answer."""
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
        """Deliver facts until `done()`; without facts, advance the clock to the next timer.

        Raises `TimeoutError` after `PATIENCE` seconds of the virtual clock.
        """
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
            case proto.Ready() if name == "relay":  # an earlier connection would find no sessions or codes
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
            case proto.Operation(op=op):
                self._facts.append((name, proto.Failed(op, proto.Failure(proto.FailureKind.UNSUPPORTED))))
            case _:  # logs, notifications, pauses: no action is needed here
                pass

    def _tell(
        self, name: str, ch: proto.ChannelId, fact: Callable[[proto.ChannelId], proto.Fact], heard: bytes = b""
    ) -> None:
        """Deliver a fact or bytes to the other end of a channel: the other core, or a `call`."""
        if ch in self._heard and name == "relay":
            self._heard[ch] += heard
        elif (name, ch) in self._joined:
            other, there = self._joined[name, ch]
            self._facts.append((other, fact(there)))

    def _new_channel(self) -> proto.ChannelId:
        self._last += 2
        return proto.ChannelId(self._last)


def main() -> None:
    """Control the paired phone by three requests, and print the answers; of the screen, only the number of nodes."""
    memory = InMemory()
    for path in ("/ping", "/current_app"):
        print(path, memory.call("GET", path))
    print("/screen", len(json.loads(memory.call("GET", "/screen").partition(" ")[2])["nodes"]), "nodes")


if __name__ == "__main__":
    main()
