"""The null core: this project's loop and pump with a core that gives every read the same answer.

A relay's cost above it is the core's; its own cost above a bare loop is the runtime's. `python -m bench.peers_null
RUNTIME`.
"""

from __future__ import annotations

import json
import sys

from bench.peers import HEALTH
from runtimes.host.host import Program
from runtimes.net.listener import bind
from runtimes.run import run
from svc_proto.basics.moment import Moment
from svc_proto.commands import CloseWrite, Command, Exit, Ready, Send
from svc_proto.facts import Fact, ReadClosed, Received, Started, Stopping

BODY = json.dumps(HEALTH).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class NullCore:
    """Core that sends the same answer to each piece of bytes that is read, and closes after the peer."""

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """Return the answer to each piece that is read, whatever its content; start and stop as required."""
        match fact:
            case Received(ch=ch):
                return [Send(ch, ANSWER)]
            case ReadClosed(ch=ch):
                return [CloseWrite(ch)]
            case Started():
                return [Ready()]
            case Stopping():
                return [Exit(0)]
            case _:
                return []

    def next_deadline(self) -> float | None:
        """Return None: there are no timers."""
        return None


def main(runtime: str) -> int:
    """Print the address on standard error, and serve until the process is stopped."""
    listener = bind("127.0.0.1", 0)

    def say() -> None:
        print(f"http://127.0.0.1:{listener.address.port}", file=sys.stderr, flush=True)

    return run(Program(core=NullCore(), listeners=[listener], on_ready=say), runtime)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
