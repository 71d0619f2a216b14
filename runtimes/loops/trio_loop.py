"""trio in guest mode on the package's own loop, which runs it whenever it has work (decision 172)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import start_guest_run

from runtimes.host.host import Host, Program
from runtimes.loops.threads_loop import ThreadsLoop
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

if TYPE_CHECKING:
    from outcome import Outcome

__all__ = ["run"]


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` with trio as the guest."""
    loop = ThreadsLoop()
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    over, ended = trio.Event(), list["Outcome[None]"]()
    start_guest_run(
        over.wait,
        run_sync_soon_threadsafe=handle.waker.post,
        done_callback=ended.append,
        host_uses_signal_set_wakeup_fd=True,
    )
    try:
        loop.host.start()
        loop.run()
    finally:
        over.set()
        handle.waker.sock.setblocking(True)
        while not ended:
            handle.waker.on_readable()
        loop.host.close()
        loop.end()
    ended[0].unwrap()
    return loop.host.exit_codes
