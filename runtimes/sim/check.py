"""The contract between a core and a runtime, watched from what the core has been told and has ordered.

Rules
  operation  a number is used once; it has one answer, of its type, and cannot be given up after that
  channel    numbers of `Connect` are odd, those of `Accepted` even, none is used twice
  order      `Accepted` or `Done` of `Connect`; `Received`, `Sent`, at most one `ReadClosed`; `Closed` once and last
  writing    no `Send` before the channel is open, after `CloseWrite`, during `SendFile`, or after `Closed` was told
  credit     the `Sent` facts never add up to more than the `Send`s
  handle     files and uploads are used between the answer that gave them and their release
  process    `Started` first, `Ready` once, nothing after `Exit`

A command that crosses with a fact the core has not been told yet is fine: a runtime ignores it. So is dropping,
pausing or resuming a channel that the core knows to be closed: it asks for nothing.
"""

from __future__ import annotations

from typing import Any, NoReturn, assert_never

from attrs import define

from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Connect,
    CreateBlob,
    DiscardBlob,
    Exit,
    FinishBlob,
    Log,
    OpenFile,
    Operation,
    PauseReading,
    ReadFile,
    Ready,
    ReleaseFile,
    ResumeReading,
    Send,
    SendFile,
    WriteBlob,
)
from svc_proto.facts import (
    Accepted,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    OperationId,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)

__all__ = ["Contract", "ContractError"]


class ContractError(AssertionError):
    """A core or a runtime went against the contract: a bug in one of them."""


@define
class _Channel:
    open: bool = False
    read_closed: bool = False
    write_closed: bool = False
    aborted: bool = False
    file: OperationId | None = None  # a `SendFile` under way
    unsent: int = 0  # bytes


class Contract:
    """One core's life. Give it every fact before the core gets it, and every command before it is carried out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._started = False
        self._ready = False
        self._exited = False
        self._channels: dict[ChannelId, _Channel] = {}
        self._closed: set[ChannelId] = set()  # numbers that have been used and are over
        self._open: dict[OperationId, Operation[Any]] = {}
        self._used: set[OperationId] = set()
        self._files: set[int] = set()
        self._blobs: set[int] = set()

    # --- facts ---------------------------------------------------------------------------------------------------

    def fact(self, fact: Fact | None) -> None:  # noqa: C901 - one case for each fact
        """Check what the runtime is about to tell."""
        if self._exited:
            self._bad(fact, "a fact after Exit")
        if self._started is isinstance(fact, Started):
            self._bad(fact, "Started is the first fact, and comes once")
        match fact:
            case None | Stopping():
                pass
            case Started():
                self._started = True
            case Accepted(ch=ch):
                self._new_channel(fact, ch, odd=False).open = True
            case Received(ch=ch, data=data):
                if self._known(fact, ch).read_closed:
                    self._bad(fact, "data after ReadClosed")
                if not data:
                    self._bad(fact, "Received without data")
            case ReadClosed(ch=ch):
                channel = self._known(fact, ch)
                if channel.read_closed:
                    self._bad(fact, "a second ReadClosed")
                channel.read_closed = True
            case Sent(ch=ch, n=n):
                channel = self._known(fact, ch)
                if not 0 < n <= channel.unsent:
                    self._bad(fact, f"{channel.unsent} bytes were unsent")
                channel.unsent -= n
            case Closed(ch=ch):
                if self._known(fact, ch).file is not None:
                    self._bad(fact, "Closed before the answer to SendFile")
                del self._channels[ch]
                self._closed.add(ch)
            case Done(op=op) | Failed(op=op):
                self._answered(fact, self._take(fact, op))
            case _:
                assert_never(fact)

    def _answered(self, fact: Done | Failed, command: Operation[Any]) -> None:
        done = isinstance(fact, Done)
        if isinstance(fact, Done) and not command.accepts(fact.result):
            self._bad(fact, f"not an answer to {type(command).__name__}")
        match command:
            case Connect(ch=ch) if done:
                self._channels[ch].open = True
            case Connect(ch=ch):
                del self._channels[ch]
                self._closed.add(ch)
            case SendFile(ch=ch) if ch in self._channels:
                self._channels[ch].file = None
            case OpenFile() if isinstance(fact, Done):
                self._files.add(fact.result.handle)  # type: ignore[attr-defined]
            case CreateBlob() if isinstance(fact, Done):
                self._blobs.add(fact.result)  # type: ignore[arg-type]
            case FinishBlob(handle=handle) if done:
                self._blobs.discard(handle)
            case _:
                pass

    def _take(self, fact: Done | Failed, op: OperationId) -> Operation[Any]:
        command = self._open.pop(op, None)
        if command is None:
            self._bad(fact, "a second answer" if op in self._used else "an answer to nothing")
        return command

    # --- commands ------------------------------------------------------------------------------------------------

    def command(self, command: Command) -> None:  # noqa: C901 - one case for each command
        """Check what the core ordered."""
        match command:
            case Send() | CloseWrite():
                self._write(command)
            case Abort(ch=ch) | PauseReading(ch=ch) | ResumeReading(ch=ch):
                channel = self._mine(command, ch)
                if channel is not None and isinstance(command, Abort):
                    channel.aborted = True
            case Operation():
                self._operation(command)
            case Cancel(op=op):
                if op not in self._open:
                    self._bad(command, "that operation has been answered" if op in self._used else "no such operation")
            case ReleaseFile(handle=handle):
                self._handle(command, handle, self._files)
                self._files.discard(handle)
            case DiscardBlob(handle=handle):
                self._handle(command, handle, self._blobs)
                self._blobs.discard(handle)
            case Ready():
                if self._ready:
                    self._bad(command, "Ready was given before")
                self._ready = True
            case Exit():
                if self._exited:
                    self._bad(command, "Exit was given before")
                self._exited = True
            case Log():
                pass
            case _:
                self._bad(command, "not a command")

    def _operation(self, command: Operation[Any]) -> None:
        if command.op in self._used:
            self._bad(command, "an operation number used twice")
        self._used.add(command.op)
        self._open[command.op] = command
        match command:
            case Connect(ch=ch):
                self._new_channel(command, ch, odd=True)
            case SendFile(handle=handle):
                self._handle(command, handle, self._files)
                self._write(command)
            case ReadFile(handle=handle):
                self._handle(command, handle, self._files)
            case WriteBlob(handle=handle) | FinishBlob(handle=handle):
                self._handle(command, handle, self._blobs)
            case _:
                pass

    def _write(self, command: Send | CloseWrite | SendFile) -> None:
        channel = self._mine(command, command.ch)
        if channel is None:
            self._bad(command, "the channel is closed")
        if channel.aborted:
            return  # the end is under way
        if channel.write_closed:
            self._bad(command, "after CloseWrite")
        if isinstance(command, CloseWrite):
            channel.write_closed = True
            return
        if channel.file is not None:
            self._bad(command, "a SendFile is under way")
        if isinstance(command, SendFile):
            channel.file = command.op
        else:
            channel.unsent += len(command.data)

    # --- look-ups ------------------------------------------------------------------------------------------------

    def _new_channel(self, what: Fact | Command, ch: ChannelId, *, odd: bool) -> _Channel:
        if ch in self._channels or ch in self._closed:
            self._bad(what, "a channel number used twice")
        if bool(ch & 1) is not odd or ch < 0:
            self._bad(what, "channels the core opens are odd, those of peers even, and none is negative")
        channel = self._channels[ch] = _Channel()
        return channel

    def _known(self, fact: Fact, ch: ChannelId) -> _Channel:
        channel = self._channels.get(ch)
        if channel is None or not channel.open:
            self._bad(fact, "a fact after Closed" if ch in self._closed else "a fact of a channel that is not open")
        return channel

    def _mine(self, command: Command, ch: ChannelId) -> _Channel | None:
        """The channel, or None when the core has been told that it is closed."""
        if ch in self._closed:
            return None
        channel = self._channels.get(ch)
        if channel is None or not channel.open:
            self._bad(command, "no such channel" if channel is None else "the channel is not open yet")
        return channel

    def _handle(self, command: Command, handle: int, handles: set[int]) -> None:
        if handle not in handles:
            self._bad(command, "no such handle")

    def _bad(self, what: Fact | Command | None, why: str) -> NoReturn:
        raise ContractError(f"{self.name}: {what!r:.300}: {why}")
