"""Commands of a core to its runtime: immutable, comparable values, carried out in the order of the list.

Channel commands concern one channel, whose facts answer `Send`, `CloseWrite` and `Abort`. Operations carry an `op`
number and are answered by exactly one `Done(op, result)` or `Failed(op, error)`; `answer` is the type of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from attrs import field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.facts import HTTP1, Address, ChannelId, OperationId

__all__ = [
    "Abort",
    "AppendFile",
    "Cancel",
    "CloseWrite",
    "Command",
    "Compute",
    "Connect",
    "Connected",
    "CreateBlob",
    "DiscardBlob",
    "EnsureSecret",
    "Exit",
    "FinishBlob",
    "Level",
    "Log",
    "OpenFile",
    "OpenedFile",
    "Operation",
    "PauseReading",
    "Query",
    "ReadConfig",
    "ReadFile",
    "Ready",
    "ReleaseFile",
    "ReloadTls",
    "ResumeReading",
    "Send",
    "SendFile",
    "StoreRequest",
    "SweepFolder",
    "WriteFile",
    "DeleteBlob",
    "TerminalSize",
    "Spawned",
    "Spawn",
    "SignalName",
    "Signal",
    "ResizeTerminal",
    "Notify",
    "TlsReloaded",
    "WriteBlob",
    "WriteConfig",
]

T_co = TypeVar("T_co", covariant=True)


class Level(IntEnum):
    """Severity of a log record; the numbers are those of the standard library."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


# --- the process ---------------------------------------------------------------------------------------------


@fast_frozen
class Ready:
    """The core has loaded its state: start accepting. Not answered."""


@fast_frozen
class Exit:
    """The core has finished: close all channels and end with `code`; `reason` is one line for people, or empty."""

    code: int
    reason: str = ""


@fast_frozen
class Log:
    """A log record. `fields` are plain values and hold no secret. Not answered."""

    level: Level
    event: str
    fields: Mapping[str, object]


@fast_frozen
class Notify:
    """An event for the program that runs the core, such as a fresh token: may hold secrets. Not answered."""

    event: str
    fields: Mapping[str, object]


# --- channels ------------------------------------------------------------------------------------------------


@fast_frozen
class Send:
    """Write bytes, after what was sent before. Answered by `Sent` facts that add up to `len(data)`, or by `Closed`.

    With `low_priority`, and if all bytes left at once, the runtime may report `Sent` later, together with that of later
    bytes. Decision 184 limits the delay.
    """

    ch: ChannelId
    data: bytes
    low_priority: bool = field(default=False, eq=False)


@fast_frozen
class CloseWrite:
    """Send a FIN (TLS: close_notify too) after everything sent so far. `Closed` follows once both sides did."""

    ch: ChannelId


@fast_frozen
class Abort:
    """Drop the channel now, unsent bytes included. Answered by `Closed`.

    Bytes before a FIN that has left are still delivered, so a peer that reads slowly loses nothing.
    """

    ch: ChannelId


@fast_frozen
class PauseReading:
    """Deliver no more `Received` or `ReadClosed` (one already in progress excepted) until `ResumeReading`."""

    ch: ChannelId


@fast_frozen
class ResumeReading:
    """Resume reading from a paused channel."""

    ch: ChannelId


# --- operations ----------------------------------------------------------------------------------------------


@fast_frozen
class Operation(Generic[T_co]):
    """An order with exactly one answer. `answer` is the type of `Done.result`."""

    answer: ClassVar[Any] = object

    op: OperationId

    def accepts(self, result: object) -> bool:
        """Report whether `result` is of the answer's type."""
        return isinstance(result, self.answer)

    def undo(self, result: Any) -> Command | None:
        """Return the command that releases a result which came after the wait had ended; None if none is needed."""
        return None


@fast_frozen
class Cancel:
    """Cancel an operation. It still gets exactly one answer: its own, or `Failed` with `CANCELLED`."""

    op: OperationId


@fast_frozen
class Connected:
    """Result of `Connect`: the channel's peer, and the protocol that ALPN chose."""

    peer: Address
    alpn: str | None = None


@fast_frozen
class Connect(Operation[Connected]):
    """Open channel `ch` to `host:port` over TCP, with TLS when `tls`. Facts of `ch` follow the `Done`.

    `alpn` are the protocols to offer over TLS, the best first (RFC 7301).
    """

    answer = Connected

    ch: ChannelId
    host: str
    port: int
    tls: bool = False
    alpn: tuple[str, ...] = (HTTP1,)

    def undo(self, result: Connected) -> Command:
        """Return the command that drops the connection."""
        return Abort(self.ch)


@fast_frozen
class TlsReloaded:
    """Result of `ReloadTls`: the pins (wire core 10.8) of the keys in use now, one for each listener."""

    pins: tuple[str, ...]


@fast_frozen
class ReloadTls(Operation[TlsReloaded]):
    """Read the certificate and the key of every listener with TLS again, and use them for new connections.

    All listeners change or none does; open connections keep theirs. Without such listeners: no pins.
    """

    answer = TlsReloaded


@fast_frozen
class TerminalSize:
    """The size of a pseudo-terminal, in character cells; both at least 1."""

    cols: int
    rows: int


@fast_frozen
class Spawned:
    """Result of `Spawn`: the child runs."""

    pid: int


@fast_frozen
class Spawn(Operation[Spawned]):
    """Start a child process whose input and output are channel `ch`; facts of `ch` follow the `Done`.

    With `terminal` the channel is a pseudo-terminal that the child, in a session of its own, has as its controlling
    terminal. Without, it is the child's standard input and output; the error output goes to channel `stderr` if given,
    else nowhere. Of the runtime's environment the child inherits only the variables in `inherited_env` (with a `*` at
    the end: a prefix); `env` is added.

    `CloseWrite` closes the input, or sends a terminal its end-of-file characters; `Abort` closes both ends without a
    signal. The channel ends with `Closed(ch, why, exit)` when the child has exited and its output was delivered. After
    an `Abort` it ends at once, and the runtime reaps the child when it exits.

    With `detached` the output comes in the form between the quotes of a JSON string (`strict_json.escaped`, of each
    piece that is read).
    """

    answer = Spawned

    ch: ChannelId
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    terminal: TerminalSize | None = None
    stderr: ChannelId | None = None
    inherited_env: tuple[str, ...] = ()
    detached: bool = False

    def undo(self, result: Spawned) -> Command:
        """Return the command that releases the child; the child of a pseudo-terminal receives SIGHUP by that."""
        return Abort(self.ch)


class SignalName(Enum):
    """A signal for a child process."""

    HANGUP = "SIGHUP"
    INTERRUPT = "SIGINT"
    TERMINATE = "SIGTERM"
    KILL = "SIGKILL"


@fast_frozen
class Signal:
    """Send a signal to the process group of the child behind `ch`; nothing if it has exited. Not answered."""

    ch: ChannelId
    signal: SignalName


@fast_frozen
class ResizeTerminal:
    """Change the size of the pseudo-terminal behind `ch`. Not answered."""

    ch: ChannelId
    size: TerminalSize


@fast_frozen
class OpenedFile:
    """Result of `OpenFile`. Check `real_path`, the path of the opened file, to avoid a check-then-open race."""

    handle: int
    real_path: str
    size: int  # bytes
    modified: float  # epoch seconds
    regular: bool = True


@fast_frozen
class OpenFile(Operation[OpenedFile]):
    """Open a file for reading. Result: its handle, to be released by `ReleaseFile`, and its properties."""

    answer = OpenedFile

    path: str

    def undo(self, result: OpenedFile) -> Command:
        """Return the command that closes the file."""
        return ReleaseFile(result.handle)


@fast_frozen
class ReadFile(Operation[bytes]):
    """Read up to `n` bytes at `offset`; fewer only at the end of the file.

    A runtime may limit `n`: a greater one fails with `TOO_LARGE`.
    """

    answer = bytes

    handle: int
    offset: int
    n: int


@fast_frozen
class SendFile(Operation[int]):
    """Write `n` bytes of a file to a channel after what was sent before, without passing them through the core.

    Answered with the written count when the last byte has left; `Sent` reports each part. The core must not `Send` on
    the channel before the answer.
    """

    answer = int

    ch: ChannelId
    handle: int
    offset: int
    n: int


@fast_frozen
class ReleaseFile:
    """Close a file handle. Not answered."""

    handle: int


@fast_frozen
class CreateBlob(Operation[int]):
    """Start an upload: a new private file in the spool folder whose name ends in `suffix`. Result: a handle.

    A write that would leave less than `min_free_bytes` bytes of the disk free fails with `NO_SPACE`.
    """

    answer = int

    suffix: str = ""
    min_free_bytes: int = 0

    def undo(self, result: int) -> Command:
        """Return the command that deletes the file."""
        return DiscardBlob(result)


@fast_frozen
class WriteBlob(Operation[int]):
    """Append to an upload. Result: the bytes written so far."""

    answer = int

    handle: int
    data: bytes


@fast_frozen
class FinishBlob(Operation[str]):
    """Close an upload. Result: its absolute path."""

    answer = str

    handle: int


@fast_frozen
class DiscardBlob:
    """Close an upload and delete its file. Not answered."""

    handle: int


@fast_frozen
class DeleteBlob:
    """Delete a finished file of the spool folder by its path; no file elsewhere. Not answered."""

    path: str


# Names below are relative to the state folder, or absolute in one of the folders that the program permits.


@fast_frozen
class WriteFile(Operation[str]):
    """Create or replace a file by name, atomically, mode 0600; create its folder if missing.

    Result: its absolute path.
    """

    answer = str

    name: str
    data: bytes


@fast_frozen
class AppendFile(Operation[int]):
    """Append to a file, then replace its first bytes by `head`. File (mode 0600) and folder are created if missing.

    All of `data` is appended or nothing, as when the disk is full; if writing `head` fails, `data` stays. Result: the
    size of the file in bytes. Other readers of the file see it grow, so this is for logs, and for formats that store
    their length at the beginning.
    """

    answer = int

    name: str
    data: bytes
    head: bytes = b""


@fast_frozen
class SweepFolder(Operation[int]):
    """Delete the regular files of a folder, by its name, that were last changed before `before` (epoch seconds).

    Only those whose names begin with `prefix`. Result: their number; 0 without the folder.
    """

    answer = int

    name: str
    before: float
    prefix: str = ""


@fast_frozen
class ReadConfig(Operation[str]):
    """Read a text file of the state folder, or of another permitted one, by name; `NOT_FOUND` if there is none."""

    answer = str

    name: str


@fast_frozen
class WriteConfig(Operation[None]):
    """Create or replace a text file by name, or the target of a link of that name, atomically, mode 0600."""

    answer = type(None)

    name: str
    text: str


@fast_frozen
class EnsureSecret(Operation[bytes]):
    """Read a secret file of the state folder; when it is missing or under 16 bytes, create it with `default`.

    Result: its content.
    """

    answer = bytes

    name: str
    default: bytes


@fast_frozen
class StoreRequest(Generic[T_co]):
    """A named request to the store (never SQL); `svc_proto.store_requests` has them."""

    answer: ClassVar[Any] = object


@fast_frozen
class Query(Operation[T_co]):
    """Send a request to the store. Requests of one core are carried out in the order given."""

    request: StoreRequest[T_co]

    def accepts(self, result: object) -> bool:
        """Report whether `result` is of the type that the request names."""
        return isinstance(result, self.request.answer)


@fast_frozen
class Compute(Operation[object]):
    """Run blocking host work by name in a worker thread; `runtimes.host.compute` has the table of names."""

    name: str
    args: tuple[object, ...] = ()


Command: TypeAlias = (
    Ready
    | Exit
    | Log
    | Notify
    | Send
    | CloseWrite
    | Abort
    | PauseReading
    | ResumeReading
    | Cancel
    | Signal
    | ResizeTerminal
    | ReleaseFile
    | DeleteBlob
    | DiscardBlob
    | Operation[Any]
)
