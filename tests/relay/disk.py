"""The files of a `RelayBook`: an in-memory disk, and the operations on it that the relay orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define

from runtimes.failures import HostError
from runtimes.sim.disk import Disk, File, Node, as_file
from svc_proto.commands import (
    AppendFile,
    Command,
    CreateBlob,
    DeleteBlob,
    DiscardBlob,
    FinishBlob,
    OpenedFile,
    OpenFile,
    Operation,
    ReadFile,
    ReleaseFile,
    SendFile,
    SweepFolder,
    WriteBlob,
    WriteFile,
)
from svc_proto.facts import ChannelId, Done, Failed

__all__ = ["FIRST_HANDLE", "SPOOL", "STATE", "BookFiles"]

STATE = "/home/svc"
SPOOL = f"{STATE}/spool"
FIRST_HANDLE = 1000


@define(eq=False)
class _Blob:
    path: str
    file: File


class BookFiles:
    """`deliver` writes bytes to a channel. What is open stays in `handles` and `blobs`."""

    def __init__(self, disk: Disk, deliver: Callable[[ChannelId, bytes], None]) -> None:
        self.disk = disk
        self.handles: dict[int, Node] = {}
        self.blobs: dict[int, _Blob] = {}
        self._deliver = deliver
        self._next = FIRST_HANDLE

    @property
    def uploads(self) -> list[str]:
        """What lies in the spool folder."""
        return self.disk.paths(SPOOL)

    def order(self, command: Command) -> None:
        """Carry out what is not answered."""
        match command:
            case ReleaseFile(handle=handle) if handle >= FIRST_HANDLE:
                del self.handles[handle]
            case DiscardBlob(handle=handle):
                blob = self.blobs.pop(handle, None)
                if blob is not None:
                    self.disk.remove(blob.path)
            case DeleteBlob(path=path):
                assert path.startswith(f"{SPOOL}/")
                self.disk.remove(path)
            case _:
                pass

    def answer(self, operation: Operation[Any]) -> Done | Failed | None:
        """Carry out an operation; None for one that is not about files."""
        try:
            return Done(operation.op, self._result(operation))
        except HostError as error:
            return Failed(operation.op, error.failure)
        except NotImplementedError:
            return None

    def _result(self, operation: Operation[Any]) -> object:
        disk = self.disk
        match operation:
            case OpenFile(path=path):
                real, node = disk.open(path)
                handle = self._handle()
                self.handles[handle] = node
                regular = isinstance(node, File)
                size, modified = (len(node.data), node.modified) if isinstance(node, File) else (0, 0.0)
                return OpenedFile(handle, real, size, modified, regular)
            case ReadFile(handle=handle, offset=offset, n=n):
                return bytes(as_file(self.handles[handle]).data[offset : offset + n])
            case SendFile(ch=ch, handle=handle, offset=offset, n=n):
                data = bytes(as_file(self.handles[handle]).data[offset : offset + n])
                assert len(data) == n
                self._deliver(ch, data)
                return n
            case CreateBlob(suffix=suffix):
                handle = self._handle()
                path = f"{SPOOL}/{handle}{suffix}"
                self.blobs[handle] = _Blob(path, disk.create(path))
                return handle
            case WriteBlob(handle=handle, data=data):
                return disk.append(self.blobs[handle].file, data)
            case FinishBlob(handle=handle):
                return self.blobs.pop(handle).path
            case WriteFile(name=name, data=data):
                disk.replace(f"{STATE}/{name}", data)
                return f"{STATE}/{name}"
            case AppendFile(name=name, data=data, head=head):
                path = _place(name)
                file = disk.regular(path) if disk.exists(path) else disk.create(path)
                size = disk.append(file, data)
                file.data[: len(head)] = head
                return size
            case SweepFolder(name=name, before=before, prefix=prefix):
                folder = _place(name)
                files = disk.files(folder).items()
                old = [path for path, file in files if path.startswith(prefix) and file.modified < before]
                for each in old:
                    disk.remove(f"{folder}/{each}")
                return len(old)
            case _:
                raise NotImplementedError

    def _handle(self) -> int:
        self._next += 1
        return self._next


def _place(name: str) -> str:
    return name if name.startswith("/") else f"{STATE}/{name}"
