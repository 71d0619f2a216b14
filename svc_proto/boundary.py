"""The boundary between a core and its runtime: two methods, no `async`, only values.

The contract of a runtime, in six steps:

1. Call `handle(Started(), now)` first and `handle(fact, now)` for each fact, one at a time, in the order they happened.
2. Carry out the returned commands in their order before the next call. Never call `handle` while doing so.
3. After each call read `next_deadline()`; call `handle(None, now)` at or soon after that monotonic time.
4. Answer every operation exactly once; end every channel with exactly one `Closed`.
5. Start accepting on `Ready`; on a signal stop accepting and pass `Stopping(grace)`; end the process on `Exit`. Where
   TLS is served, pass `Reloading()` when a certificate may have changed (SIGHUP), and read it again on `ReloadTls`.
6. Add no deadline, no retry and no protocol rule.
"""

from typing import Protocol

from svc_proto.basics.moment import Moment
from svc_proto.commands import Command
from svc_proto.facts import Fact

__all__ = ["Core"]


class Core(Protocol):
    """A program without IO: facts in, commands out."""

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """Advance time to `now`, then apply `fact` (None: only time has passed). Never raises."""
        ...

    def next_deadline(self) -> float | None:
        """Return the monotonic seconds at which `handle(None, now)` is due, or None without a deadline.

        The result is never late, but may be early: after a deadline was moved, one call may have no effect.
        """
        ...
