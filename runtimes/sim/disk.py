"""An in-memory file system: regular files, folders, symbolic links, things that are none of these, and a capacity.

Paths are absolute POSIX paths. What goes wrong is a `HostError` with the failure that a real runtime would answer.
A file that is open stays what it was when its name is removed or replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, frozen

from runtimes.failures import HostError
from svc_proto.facts import FailureKind

__all__ = ["SimDisk", "FileNode", "DirectoryNode", "SymlinkNode", "SpecialNode"]

MAX_LINKS = 40  # symbolic links on one path, as Linux has it (path_resolution(7))


@define(eq=False)
class FileNode:
    """A regular file."""

    data: bytearray
    modified: float  # epoch seconds
    mode: int = 0o644


@frozen
class DirectoryNode:
    """A folder; what is in it follows from the paths."""


@frozen
class SymlinkNode:
    """A symbolic link; `target` is absolute or relative to the link's folder."""

    target: str


@frozen
class SpecialNode:
    """A device, a FIFO or a socket: opens, and is not a regular file."""


Node: TypeAlias = FileNode | DirectoryNode | SymlinkNode | SpecialNode


class SimDisk:
    """One host's files. `wall` gives the epoch time of modifications."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.capacity: int | None = None  # bytes; None: endless
        self.busy_until = 0.0  # monotonic s: no operation on files is done before
        self.denied: set[str] = set()  # real paths that may not be opened
        self.wall = wall
        self._nodes: dict[str, Node] = {"/": DirectoryNode()}

    # --- for tests: no faults, no capacity -----------------------------------------------------------------------

    def put(self, path: str, data: bytes, *, mode: int = 0o644) -> FileNode:
        """Create or replace a file, its folders included."""
        self.folder(_parent(path))
        file = self._nodes[path] = FileNode(bytearray(data), self.wall(), mode)
        return file

    def folder(self, path: str) -> None:
        """Create a folder and those above it."""
        while path not in self._nodes:
            self._nodes[path] = DirectoryNode()
            path = _parent(path)

    def symlink(self, path: str, target: str) -> None:
        """Create or replace a symbolic link."""
        self.folder(_parent(path))
        self._nodes[path] = SymlinkNode(target)

    def special(self, path: str) -> None:
        """Create something that is no regular file."""
        self.folder(_parent(path))
        self._nodes[path] = SpecialNode()

    def get(self, path: str) -> bytes:
        """The contents of a file, links followed."""
        return bytes(self.regular(path).data)

    def exists(self, path: str) -> bool:
        """Whether a path leads to something, links followed."""
        try:
            self.resolve(path)
        except HostError:
            return False
        return True

    def remove(self, path: str) -> None:
        """Remove a name; fine when there is none."""
        self._nodes.pop(path, None)

    def paths(self, under: str = "/") -> list[str]:
        """Names of everything but folders below a folder, sorted."""
        prefix = under.rstrip("/") + "/"
        return sorted(
            path
            for path, node in self._nodes.items()
            if path.startswith(prefix) and not isinstance(node, DirectoryNode)
        )

    def folders(self, folder: str) -> tuple[str, ...]:
        """The names of the folders in a folder, sorted; none when there is no such folder."""
        prefix = folder.rstrip("/") + "/"
        below = (
            path.removeprefix(prefix)
            for path, node in self._nodes.items()
            if isinstance(node, DirectoryNode) and path.startswith(prefix)
        )
        return tuple(sorted(name for name in below if name and "/" not in name))

    def files(self, folder: str) -> dict[str, FileNode]:
        """The regular files in a folder, not in those below it, by name; empty when there is no such folder."""
        prefix = folder.rstrip("/") + "/"
        found = ((path.removeprefix(prefix), node) for path, node in self._nodes.items() if path.startswith(prefix))
        return {name: node for name, node in found if "/" not in name and isinstance(node, FileNode)}

    @property
    def used(self) -> int:
        """Bytes in files that have a name."""
        return sum(len(node.data) for node in self._nodes.values() if isinstance(node, FileNode))

    def fill(self) -> None:
        """Leave no room: from now on every growing write fails with `NO_SPACE`."""
        self.capacity = self.used

    # --- for the runtime -----------------------------------------------------------------------------------------

    def resolve(self, path: str) -> tuple[str, Node]:
        """The real path, and what is there."""
        if not path.startswith("/") or "\0" in path:
            raise HostError(FailureKind.INVALID, "not an absolute path")
        waiting = _parts(path)
        real = "/"
        node: Node = self._nodes["/"]
        links = 0
        while waiting:
            name = waiting.pop(0)
            if not isinstance(node, DirectoryNode):
                raise HostError(FailureKind.NOT_FOUND, "a part of the path is no folder")
            if name == "..":
                real = _parent(real)
                node = self._nodes[real]
                continue
            here = _join(real, name)
            found = self._nodes.get(here)
            if found is None:
                raise HostError(FailureKind.NOT_FOUND, "no such file")
            if isinstance(found, SymlinkNode):
                links += 1
                if links > MAX_LINKS:
                    raise HostError(FailureKind.INVALID, "too many symbolic links")
                waiting = _parts(found.target) + waiting
                if found.target.startswith("/"):
                    real = "/"
                node = self._nodes[real]
                continue
            real, node = here, found
        return real, node

    def real(self, path: str) -> str:
        """Where a path really leads: links are followed as far as there is something."""
        try:
            return self.resolve(path)[0]
        except HostError:
            return _join(self.real(_parent(path)), path.rpartition("/")[2])

    def open(self, path: str) -> tuple[str, Node]:
        """As `resolve`, for reading: `DENIED` where that is forbidden."""
        real, node = self.resolve(path)
        if real in self.denied:
            raise HostError(FailureKind.DENIED, "permission denied")
        return real, node

    def regular(self, path: str) -> FileNode:
        """The regular file at a path."""
        return as_file(self.open(path)[1])

    def create(self, path: str, *, mode: int = 0o600) -> FileNode:
        """A new empty file; `EXISTS` when the name is taken."""
        if path in self._nodes:
            raise HostError(FailureKind.EXISTS, "the file exists")
        return self.put(path, b"", mode=mode)

    def append(self, file: FileNode, data: bytes, *, spare: int = 0) -> int:
        """Write at the end, all or nothing, and leave `spare` bytes free; the new size."""
        self._make_room(len(data) + spare)
        file.data += data
        file.modified = self.wall()
        return len(file.data)

    def replace(self, path: str, data: bytes) -> None:
        """Write a new file under a temporary name and rename it (so the room for both is needed); mode 0600."""
        self._make_room(len(data))
        self.put(path, data, mode=0o600)

    def _make_room(self, n: int) -> None:
        if self.capacity is not None and self.used + n > self.capacity:
            raise HostError(FailureKind.NO_SPACE, "no space left on the device")


def as_file(node: Node) -> FileNode:
    """The node, if it is a regular file."""
    if not isinstance(node, FileNode):
        raise HostError(FailureKind.INVALID, "not a regular file")
    return node


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
