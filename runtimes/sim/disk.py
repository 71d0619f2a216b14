"""An in-memory file system: regular files, folders, symbolic links, special files, and a capacity.

Paths are absolute POSIX paths. An error is a `HostError` with the failure that a real runtime would answer. An open
file keeps its contents when its name is removed or replaced.
"""

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, frozen

from runtimes.failures import HostError
from svc_proto.facts import FailureKind

__all__ = ["SimDisk", "FileNode", "DirectoryNode", "SymlinkNode", "SpecialNode"]

MAX_LINKS = 40  # most symbolic links on one path, as in Linux (path_resolution(7))


@define(eq=False)
class FileNode:
    """A regular file."""

    data: bytearray
    modified: float  # epoch seconds
    mode: int = 0o644


@frozen
class DirectoryNode:
    """A folder; its entries follow from the paths."""


@frozen
class SymlinkNode:
    """A symbolic link; `target` is absolute or relative to the link's folder."""

    target: str


@frozen
class SpecialNode:
    """A device, a FIFO or a socket: opens, and is not a regular file."""


Node: TypeAlias = FileNode | DirectoryNode | SymlinkNode | SpecialNode


class SimDisk:
    """Files of one host. `wall` returns the epoch time of modifications."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.capacity: int | None = None  # bytes; None: unlimited
        self.busy_until = 0.0  # monotonic s before which no operation on files ends
        self.denied: set[str] = set()  # real paths whose opening is denied
        self.wall = wall
        self._nodes: dict[str, Node] = {"/": DirectoryNode()}

    # --- for tests: no faults, no capacity -----------------------------------------------------------------------

    def put(self, path: str, data: bytes, *, mode: int = 0o644) -> FileNode:
        """Create or replace a file; missing folders are created."""
        self.folder(_parent(path))
        file = self._nodes[path] = FileNode(bytearray(data), self.wall(), mode)
        return file

    def folder(self, path: str) -> None:
        """Create a folder and its parents."""
        while path not in self._nodes:
            self._nodes[path] = DirectoryNode()
            path = _parent(path)

    def symlink(self, path: str, target: str) -> None:
        """Create or replace a symbolic link."""
        self.folder(_parent(path))
        self._nodes[path] = SymlinkNode(target)

    def special(self, path: str) -> None:
        """Create a special file, which is not a regular file."""
        self.folder(_parent(path))
        self._nodes[path] = SpecialNode()

    def get(self, path: str) -> bytes:
        """Return the contents of a regular file, following links. Raise `HostError` as `regular`."""
        return bytes(self.regular(path).data)

    def exists(self, path: str) -> bool:
        """Report whether a path exists, following links."""
        try:
            self.resolve(path)
        except HostError:
            return False
        return True

    def remove(self, path: str) -> None:
        """Remove a name; do nothing if there is none."""
        self._nodes.pop(path, None)

    def paths(self, under: str = "/") -> list[str]:
        """Return the sorted paths of the files, links and special files below a folder."""
        prefix = under.rstrip("/") + "/"
        return sorted(
            path
            for path, node in self._nodes.items()
            if path.startswith(prefix) and not isinstance(node, DirectoryNode)
        )

    def folders(self, folder: str) -> tuple[str, ...]:
        """Return the sorted names of the folders in a folder; empty when the folder does not exist."""
        prefix = folder.rstrip("/") + "/"
        below = (
            path.removeprefix(prefix)
            for path, node in self._nodes.items()
            if isinstance(node, DirectoryNode) and path.startswith(prefix)
        )
        return tuple(sorted(name for name in below if name and "/" not in name))

    def files(self, folder: str) -> dict[str, FileNode]:
        """Return the regular files directly in a folder by name; empty when the folder does not exist."""
        prefix = folder.rstrip("/") + "/"
        found = ((path.removeprefix(prefix), node) for path, node in self._nodes.items() if path.startswith(prefix))
        return {name: node for name, node in found if "/" not in name and isinstance(node, FileNode)}

    @property
    def used(self) -> int:
        """Return the number of bytes in files that have a name."""
        return sum(len(node.data) for node in self._nodes.values() if isinstance(node, FileNode))

    def fill(self) -> None:
        """Leave no room: `append` and `replace` fail with `NO_SPACE` until bytes are freed; `put` still works."""
        self.capacity = self.used

    # --- for the runtime -----------------------------------------------------------------------------------------

    def resolve(self, path: str) -> tuple[str, Node]:
        """Follow the links in a path; return the real path and its node. Raises `HostError`."""
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
        """Return the real path, following links as far as the path exists."""
        try:
            return self.resolve(path)[0]
        except HostError:
            return _join(self.real(_parent(path)), path.rpartition("/")[2])

    def open(self, path: str) -> tuple[str, Node]:
        """Return the real path and node of a path to read. Raise `HostError`, DENIED for a path in `denied`."""
        real, node = self.resolve(path)
        if real in self.denied:
            raise HostError(FailureKind.DENIED, "permission denied")
        return real, node

    def regular(self, path: str) -> FileNode:
        """Return the regular file at a path, following links. Raise `HostError` if there is none or it is denied."""
        return as_file(self.open(path)[1])

    def create(self, path: str, *, mode: int = 0o600) -> FileNode:
        """Create an empty file and its folders. Raise `HostError` EXISTS when the name is taken."""
        if path in self._nodes:
            raise HostError(FailureKind.EXISTS, "the file exists")
        return self.put(path, b"", mode=mode)

    def append(self, file: FileNode, data: bytes, *, spare: int = 0) -> int:
        """Append all of `data` and return the new size, or raise `HostError` if under `spare` bytes would stay free."""
        self._make_room(len(data) + spare)
        file.data += data
        file.modified = self.wall()
        return len(file.data)

    def replace(self, path: str, data: bytes) -> None:
        """Create or replace a file, mode 0600; needs room for both, as with a temporary file and a rename."""
        self._make_room(len(data))
        self.put(path, data, mode=0o600)

    def _make_room(self, n: int) -> None:
        if self.capacity is not None and self.used + n > self.capacity:
            raise HostError(FailureKind.NO_SPACE, "no space left on the device")


def as_file(node: Node) -> FileNode:
    """Return the node if it is a regular file, otherwise raise `HostError`."""
    if not isinstance(node, FileNode):
        raise HostError(FailureKind.INVALID, "not a regular file")
    return node


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
