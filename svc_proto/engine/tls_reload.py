"""Reload of TLS certificates while the process runs: triggered by `Reloading`, done by `ReloadTls`.

One reload runs at a time. Requests meanwhile cause one more, since the files may have changed under the first. An
unusable certificate is logged as an error, and the previous one stays in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Level, ReloadTls
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["RELOAD_TIMEOUT", "TlsReload"]

RELOAD_TIMEOUT = 10.0  # s for the files to be read, in case the file system hangs


class TlsReload:
    """Reload of one engine's TLS certificates, one at a time."""

    __slots__ = ("_due", "_engine")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._due = 0  # reloads: the current one, and at most one more

    def request(self) -> None:
        """Start a reload of the certificates; while one is in progress, have one more follow it."""
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
