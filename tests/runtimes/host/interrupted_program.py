"""Program that runs a core repeatedly, with a signal at a later line of the loop's shutdown each time, to its end.

The lines are counted from the end of `Host.close` until the signal handlers are Python's again. Arguments: a runtime,
and the number of lines from one signal's place to the next.
"""

import signal
import sys
from types import FrameType
from typing import Any

from runtimes.host.host import Host, Program
from runtimes.run import run
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit
from svc_proto.facts import Fact


class ExitingCore:
    """A core that exits at once."""

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        return [Exit(5)]

    def next_deadline(self) -> float | None:
        return None


class Interruption:
    """Counter of the lines of the shutdown for `sys.settrace`, which raises SIGINT at line `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.lines: int | None = None  # not closed yet

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and self.lines is not None and signal.getsignal(signal.SIGINT) is not BEFORE:
            self.lines += 1
            if self.lines == self.at:
                signal.raise_signal(signal.SIGINT)
        return self.trace


BEFORE = signal.getsignal(signal.SIGINT)


def main() -> None:
    """Print whether more than two lines of the shutdown were interrupted, and the set of exit codes."""
    codes: set[int] = set()
    closed = Host.close
    at = points = 0
    while True:
        at += int(sys.argv[2])
        interruption = Interruption(at)

        def close(self: Host, interruption: Interruption = interruption) -> None:
            closed(self)
            interruption.lines = 0

        Host.close = close  # type: ignore[method-assign]  # where the end begins
        sys.settrace(interruption.trace)
        code = run(Program(core=ExitingCore()), sys.argv[1])
        lines, interruption.lines = interruption.lines, None
        sys.settrace(None)
        codes.add(code)
        assert signal.getsignal(signal.SIGINT) is BEFORE
        if lines is None or lines < at:
            break
        points += 1
    sys.stdout.write(f"{points > 2} {codes}\n")


if __name__ == "__main__":
    main()
