"""Service for `ReloadTls`: loads a core's certificates on a thread, then swaps them between two connections.

A context is never changed, only replaced. Open connections keep their context, and a certificate that does not fit its
key has no effect. Session tickets of the earlier context are refused, so no client resumes past the new certificate.
"""

from collections.abc import Sequence

from runtimes.failures import HostError
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from runtimes.net.listener import Acceptor
from runtimes.tls.contexts import ServerContext, TlsFileError
from svc_proto.commands import ReloadTls, TlsReloaded
from svc_proto.facts import FailureKind

__all__ = ["TlsReloadService"]

Loaded = list[tuple[Acceptor, ServerContext, str]]


class TlsReloadService:
    """Service that performs the `ReloadTls` commands of a core."""

    def __init__(self, pump: Pump, workers: ThreadPool, acceptors: Sequence[Acceptor]) -> None:
        self._pump = pump
        self._workers = workers
        self._acceptors = acceptors
        pump.serve({ReloadTls: self._reload})

    def _reload(self, command: ReloadTls) -> None:
        stale = [(acceptor, acceptor.tls) for acceptor in self._acceptors if isinstance(acceptor.tls, ServerContext)]

        def load() -> Loaded:
            try:
                fresh = [(acceptor, context.reload()) for acceptor, context in stale]
            except TlsFileError as error:
                raise HostError(FailureKind.TLS, str(error)) from error
            return [(acceptor, context, context.pin()) for acceptor, context in fresh]

        self._pump.work(command.op, self._workers, load, keep=_swap)


def _swap(loaded: Loaded) -> TlsReloaded:
    """Make the loaded contexts those of their acceptors, on the loop's thread; return the pins of their keys."""
    for acceptor, context, _ in loaded:
        acceptor.tls = context
    return TlsReloaded(tuple(pin for _, _, pin in loaded))
