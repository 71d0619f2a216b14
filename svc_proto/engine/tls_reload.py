"""Certificates that are read again while the process runs: asked for by `Reloading`, done by `ReloadTls`.

One reading at a time; whoever asks meanwhile gets one more behind it, since the files may have changed under the first.
What cannot be used is an error in the log, and the certificate that was shown before goes on to be shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Level, ReloadTls
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["RELOAD_TIMEOUT", "TlsReload"]

RELOAD_TIMEOUT = 10.0  # s for the files to be read: a file system that hangs


class TlsReload:
    """Of one engine."""

    __slots__ = ("_due", "_engine")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._due = 0  # readings: the one under way, and at most one behind it

    def request(self) -> None:
        """Read them, soon."""
        self._due = min(self._due + 1, 2)
        if self._due == 1:
            self._engine.spawn(self._run())

    def _run(self) -> Flow[None]:
        engine = self._engine
        while self._due:
            answer = yield from run_operation(engine, ReloadTls(engine.new_op()), within=RELOAD_TIMEOUT)
            if isinstance(answer, Failure):
                problem = answer.detail or answer.kind.value
                engine.log(Level.ERROR, "certificate not reloaded: the one before stays", problem=problem)
            else:
                for pin in answer.pins:
                    engine.log(Level.INFO, "certificate reloaded", pin=pin)
            self._due -= 1
