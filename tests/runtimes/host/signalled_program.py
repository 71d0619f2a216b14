"""Program that prints the stop and reload facts of its core, which exits at `Stopping` unless it is `stubborn`.

Arguments: a runtime, `polite` or `stubborn`, and, for TLS, a certificate and its key.
"""

import sys
from pathlib import Path

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import bind
from runtimes.run import run
from runtimes.tls.contexts import server_context
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Ready
from svc_proto.facts import Fact, Reloading, Started, Stopping


class SignalCore:
    """Core that prints `Stopping` and `Reloading`, and exits at `Stopping` if the program is `polite`."""

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        if isinstance(fact, Started):
            return [Ready()]
        if isinstance(fact, Stopping):
            print_line("stopping", fact.grace)
            return [Exit(0)] if sys.argv[2] == "polite" else []
        if isinstance(fact, Reloading):
            print_line("reloading")
        return []

    def next_deadline(self) -> float | None:
        return None


def print_line(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def fail() -> None:
    """Raise in an exit handler: the other exit handlers must run nevertheless."""
    raise ZeroDivisionError


def main() -> int:
    """Run the core with the runtime of the first argument, and return the exit code."""
    tls = server_context(*map(Path, sys.argv[3:])) if sys.argv[3:] else None
    listeners = [bind("127.0.0.1", 0, tls=tls)]
    program = Program(core=SignalCore(), listeners=listeners, on_ready=lambda: print_line("ready"))
    handle = HostHandle()
    handle.waker.last_words += [fail, lambda: print_line("last words")]
    code = run(program, sys.argv[1], handle=handle, grace=4.0)
    print_line("over")
    return code


if __name__ == "__main__":
    sys.exit(main())
