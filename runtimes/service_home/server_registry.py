"""Registry of the servers that run on a service home: a locked file for each, such as `run/relay.json`.

The lock ends with its process, even after a crash: an unlocked file is stale, whatever process has its id now. The file
names the server's address and the place of its API key, never the key itself.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runtimes.files.private_files import ensure_private_folder
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "ROLES",
    "HomeClaim",
    "RunningServer",
    "HomeInUseError",
    "lock_home",
    "find_running_servers",
    "find_running_server",
    "is_held",
]

ROLES = ("relay", "api", "dashboard", "phone")  # `phone` is the simulated one of `svc phone`
FOLDER = "run"
PROBE_TIMEOUT = 0.5  # s for retries of a claim: a reader of the registry holds the lock briefly
POLL = 0.01  # s between two retries
LARGEST = 65_536  # bytes of a file


class HomeInUseError(Exception):
    """A server of this kind already runs on this home."""

    def __init__(self, role: str, pid: int | None) -> None:
        super().__init__(role)
        self.role = role
        self.pid = pid  # None: not published yet


class RunningServer(NamedTuple):
    """Published description of a server that accepts connections."""

    role: str
    pid: int
    version: str
    since: float  # epoch seconds
    host: str  # address it listens on
    port: int
    inside: str  # the http:// address for programs of this host
    certificate: str | None = None  # paths, if it serves TLS
    certificate_key: str | None = None
    root_path: str = ""  # path prefix behind a proxy
    brand: str = "svc"
    workers: int = 1  # of a relay: the processes that serve this address
    key: str = ""  # of the API: a path or "environment" as the place of its key; empty: it has none
    model: str = ""  # of the API: the configured model at the start
    model_url: str = ""  # address of its server; empty: built-in
    model_source: str = ""  # setting that names the address of the model's server
    model_file: str = ""  # configuration file that names the model; empty: variables do

    @property
    def url(self) -> str:
        """Return the address that the server listens on, as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{self.port}"


class HomeClaim:
    """Claim of one kind of server on a home, until `release`."""

    def __init__(self, home: Path, fd: int, about: Mapping[str, object]) -> None:
        self.home = home
        self.role = str(about["role"])
        self._fd = fd
        self._about = about
        self._write(about)

    def publish(self, facts: Mapping[str, object]) -> None:
        """Write the description of the server to the file of the claim; do nothing after `release`.

        `facts` has the members of `RunningServer` beyond role, pid, version and since.
        """
        if self._fd >= 0:
            self._write({**self._about, **facts})

    def release(self) -> None:
        """Empty and unlock the file of the claim, so that another server may claim the home."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def _write(self, about: Mapping[str, object]) -> None:
        data = json.dumps(about, indent=1).encode() + b"\n"
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))


def lock_home(home: Path, role: str, *, version: str) -> HomeClaim:
    """Claim a home for one kind of server. Raises `HomeInUseError`, and `OSError` where locking fails."""
    folder = ensure_private_folder(home / FOLDER)
    fd = os.open(folder / f"{role}.json", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + PROBE_TIMEOUT
        while not _lock(fd, fcntl.LOCK_EX):
            if time.monotonic() > until:
                raise HomeInUseError(role, _pid(_read(fd)))
            time.sleep(POLL)
        return HomeClaim(home, fd, {"role": role, "pid": os.getpid(), "version": version, "since": time.time()})
    except BaseException:
        os.close(fd)
        raise


def find_running_server(home: Path, role: str) -> RunningServer | None:
    """Return the server of a kind that runs on a home and accepts connections; None if there is none.

    None is also returned for a description that cannot be read.
    """
    held, text = _probe(home, role)
    return _parse(text) if held else None


def find_running_servers(home: Path) -> list[RunningServer]:
    """Return all servers of a home that `find_running_server` finds, relay first."""
    found = [find_running_server(home, role) for role in ROLES]
    return [one for one in found if one is not None]


def is_held(home: Path, role: str) -> bool:
    """Report whether a server holds this home, including before it accepts and while it stops."""
    return _probe(home, role)[0]


def _probe(home: Path, role: str) -> tuple[bool, bytes]:
    try:
        fd = os.open(home / FOLDER / f"{role}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False, b""
    try:
        return not _lock(fd, fcntl.LOCK_SH), _read(fd)
    except OSError:
        return False, b""
    finally:
        os.close(fd)  # also releases the lock


def _lock(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _read(fd: int) -> bytes:
    return os.pread(fd, LARGEST, 0)


def _pid(text: bytes) -> int | None:
    return JsonObject.parse_or_empty(text).integer("pid")


def _parse(text: bytes) -> RunningServer | None:
    members: dict[str, Any] = JsonObject.parse_or_empty(text)
    try:
        return RunningServer(**{name: members[name] for name in RunningServer._fields if name in members})
    except TypeError:
        return None  # it does not accept yet
