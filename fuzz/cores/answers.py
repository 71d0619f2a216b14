"""What operations of a core are answered with when they succeed: plausible values, from a real store and real work.

Files are all alike: 1,000 bytes under the path that was asked for.
"""

from __future__ import annotations

from typing import Any

from runtimes.failures import HostError
from runtimes.sim.host import Host
from runtimes.sim.world import World
from svc_proto.commands import (
    AppendFile,
    Compute,
    Connect,
    Connected,
    CreateBlob,
    EnsureSecret,
    FinishBlob,
    OpenedFile,
    OpenFile,
    Operation,
    Query,
    ReadConfig,
    ReadFile,
    SendFile,
    Spawn,
    Spawned,
    SweepFolder,
    WriteBlob,
    WriteConfig,
    WriteFile,
)
from svc_proto.facts import Address, Failure, FailureKind

__all__ = ["Answers"]

FILE_SIZE = 1000  # bytes
NOT_FOUND = Failure(FailureKind.NOT_FOUND)
UNSUPPORTED = Failure(FailureKind.UNSUPPORTED)


class Answers:
    """Answers of one core's operations."""

    def __init__(self) -> None:
        self._host: Host = World().host("home")
        self._handles = 0
        self._blobs: dict[int, int] = {}  # sizes, by handle

    def to(self, operation: Operation[Any]) -> object:
        """The result of an operation, or a `Failure`."""
        try:
            return self._result(operation)
        except HostError as error:
            return error.failure

    def _result(self, operation: Operation[Any]) -> object:  # noqa: C901 - one case for each operation
        match operation:
            case Connect(port=port):
                return Connected(Address("10.0.0.9", port))
            case Spawn():
                return Spawned(self._new_handle())
            case OpenFile(path=path):
                return OpenedFile(self._new_handle(), path, FILE_SIZE, 0.0)
            case ReadFile(offset=offset, n=n):
                return b"x" * max(0, min(n, FILE_SIZE - offset))
            case SendFile(n=n):
                return n
            case CreateBlob():
                handle = self._new_handle()
                self._blobs[handle] = 0
                return handle
            case WriteBlob(handle=handle, data=data):
                self._blobs[handle] += len(data)
                return self._blobs[handle]
            case FinishBlob(handle=handle):
                return f"{self._host.spool}/upload-{handle}"
            case WriteFile(name=name):
                return name
            case AppendFile(data=data):
                return len(data)
            case SweepFolder():
                return 0
            case EnsureSecret(fresh=fresh):
                return fresh
            case ReadConfig():
                return NOT_FOUND
            case WriteConfig():
                return None
            case Query(request=request):
                return self._host.store.apply(request)
            case Compute(name=name, args=args):
                return self._host.work(name, args)
            case _:
                return UNSUPPORTED

    def _new_handle(self) -> int:
        self._handles += 1
        return self._handles
