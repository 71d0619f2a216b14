"""A loop of your own, connected directly to the core: a whole relay on one selector, without stored sessions.

  python -m examples.own_loop 8767             # `--check` checks the contract

It performs a part of the commands and answers `UNSUPPORTED` to others: store, files, children, outgoing connections.
"""

import os
import socket
import sys
import time
from collections import deque
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

import svc_proto as proto
from examples.checked import Checked
from svc_proto.engine import Engine
from svc_proto.relay import Relay, RelayConfig

UNSUPPORTED = proto.Failure(proto.FailureKind.UNSUPPORTED)


class Connection:
    """A socket and its state. `over` is set when the connection has failed or is aborted."""

    def __init__(self, ch: proto.ChannelId, sock: socket.socket) -> None:
        self.ch, self.sock, self.unsent = ch, sock, bytearray()
        self.paused = self.read_over = self.write_over = self.over = False


class OwnLoop:
    """Loop: facts to the core, its commands to the sockets, then one wait for a socket or the core's deadline."""

    def __init__(self, core: proto.Core, listener: socket.socket) -> None:
        self.core, self.listener, self.selector = core, listener, DefaultSelector()
        self.facts: deque[proto.Fact | None] = deque([proto.Started()])
        self.connections: dict[proto.ChannelId, Connection] = {}
        self.last = proto.ChannelId(0)  # channels that a peer opened have even numbers
        self.exit: int | None = None

    def step(self) -> None:
        """Deliver the pending facts, and serve the connections.

        If that leaves no fact and no exit, wait once for a socket or the core's deadline.
        """
        while self.facts:
            for command in self.core.handle(self.facts.popleft(), proto.Moment(time.monotonic(), time.time())):
                self.carry_out(command)  # in order, before the next fact
        for each in list(self.connections.values()):
            self.look_after(each)
        if self.facts or self.exit is not None:
            return
        deadline = self.core.next_deadline()
        for key, ready in self.selector.select(None if deadline is None else max(0.0, deadline - time.monotonic())):
            if key.data is None:
                self.accept()
            elif ready & EVENT_READ:
                self.read(key.data)
        self.facts.append(None)  # time has passed, in any case

    def carry_out(self, command: proto.Command) -> None:  # commands for a closed channel are ignored
        """Perform one command; fail an operation as `UNSUPPORTED`, and ignore other commands."""
        connection = self.connections.get(getattr(command, "ch", self.last))
        match command:
            case proto.Ready():
                self.listener.setblocking(False)
                self.selector.register(self.listener, EVENT_READ)
            case proto.Exit(code=code):
                self.exit = code
            case proto.Log(event=event, fields=fields):
                print(event, dict(fields), flush=True)
            case proto.Operation(op=op):
                self.facts.append(proto.Failed(op, UNSUPPORTED))
            case proto.Send(data=data) if connection:
                connection.unsent += data
            case proto.CloseWrite() if connection:
                connection.write_over = True
            case proto.Abort() if connection:
                connection.over = True
            case proto.PauseReading() | proto.ResumeReading() if connection:
                connection.paused = isinstance(command, proto.PauseReading)

    def accept(self) -> None:
        """Accept a connection. Raises `OSError` without descriptors: see docs/howto/run-on-your-own-loop.md."""
        sock, peer = self.listener.accept()
        sock.setblocking(False)
        self.last = proto.ChannelId(self.last + 2)
        self.connections[self.last] = Connection(self.last, sock)
        here = proto.Address(*sock.getsockname()[:2])
        self.facts.append(proto.Accepted(self.last, proto.Address(*peer[:2]), here))

    def read(self, connection: Connection) -> None:
        """Read bytes or the peer's end into a fact; mark the connection as over after an error."""
        try:
            data = connection.sock.recv(65536)
        except OSError:
            connection.over = True
            return
        connection.read_over = not data
        self.facts.append(proto.Received(connection.ch, data) if data else proto.ReadClosed(connection.ch))

    def look_after(self, connection: Connection) -> None:
        """Write a connection's unsent bytes, half-close and close it when due, else watch its socket."""
        sock, unsent = connection.sock, connection.unsent
        try:
            if unsent and not connection.over:
                taken = sock.send(unsent)
                del unsent[:taken]
                self.facts.append(proto.Sent(connection.ch, taken))
            if connection.write_over and not unsent:
                sock.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            connection.over = True
        over = connection.over or (connection.read_over and connection.write_over and not unsent)
        events = EVENT_READ * (not connection.paused and not connection.read_over) | EVENT_WRITE * bool(unsent)
        if sock in self.selector.get_map():
            self.selector.unregister(sock)
        if over:
            sock.close()
            del self.connections[connection.ch]
            self.facts.append(proto.Closed(connection.ch))
        elif events:
            self.selector.register(sock, events, connection)

    def stop(self, grace: float = 5.0) -> None:
        """Stop accepting, and give the core `Stopping`; a second call, or one before `Ready`, changes nothing."""
        if self.listener in self.selector.get_map():
            self.selector.unregister(self.listener)
            self.facts.append(proto.Stopping(grace))


def main(port: str, *options: str) -> int:
    """Serve until Ctrl-C; return the exit code."""
    core: proto.Core = Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=os.urandom)
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        loop = OwnLoop(Checked(core) if "--check" in options else core, listener)
        while loop.exit is None:
            try:
                loop.step()
            except KeyboardInterrupt:
                loop.stop()
    return loop.exit


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
