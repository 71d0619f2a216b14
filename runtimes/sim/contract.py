"""Checker of the contract between a core and a runtime, from the core's facts and commands.

Rules
  operation  a number is used once; it has one answer, of its type, and cannot be cancelled after that
  channel    numbers of `Connect` and `Spawn` are odd, those of `Accepted` even, none is used twice
  order      `Accepted`, or the `Done` that opens it; `Received`, `Sent`, at most one `ReadClosed`; `Closed` last
  writing    no `Send` before the channel is open, after `CloseWrite`, during `SendFile`, or after `Closed`
  credit     the `Sent` facts never add up to more than the `Send`s and `SendFile`s
  handle     files and uploads are used between the answer that gave them and their release
  child      its error output is for reading only and is closed before it; only children have a status, a signal, a size
  process    `Started` first and once, `Ready` and `Exit` at most once, no fact after `Exit`

A command that crosses with a fact that the core has not received yet is permitted: a runtime ignores the command.
Aborting, pausing or resuming a channel after its `Closed` is permitted too, and has no effect.
"""

from typing import Any, NoReturn, assert_never

from attrs import define

from svc_proto import commands, facts

__all__ = ["Contract", "ContractError"]


class ContractError(AssertionError):
    """A core or a runtime has violated the contract: one of them has a bug."""


@define
class _ChannelRecord:
    open: bool = False
    read_closed: bool = False
    write_closed: bool = False
    aborted: bool = False
    file: facts.OperationId | None = None  # a `SendFile` in progress
    spawn: commands.Spawn | None = None  # the `Spawn` of its child
    unsent: int = 0  # bytes


class Contract:
    """Checker for one core, which raises `ContractError`.

    It has to be given every fact before the core gets it, and every command before its execution.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._started = False
        self._ready = False
        self._exited = False
        self._channels: dict[facts.ChannelId, _ChannelRecord] = {}
        self._closed: set[facts.ChannelId] = set()  # used numbers of closed channels
        self._open: dict[facts.OperationId, commands.Operation[Any]] = {}
        self._used: set[facts.OperationId] = set()
        self._files: set[int] = set()
        self._blobs: set[int] = set()

    # --- facts ---------------------------------------------------------------------------------------------------

    def fact(self, fact: facts.Fact | None) -> None:  # noqa: C901 - one case for each fact
        """Check a fact that the runtime is about to give."""
        if self._exited:
            self._bad(fact, "a fact after Exit")
        if self._started is isinstance(fact, facts.Started):
            self._bad(fact, "Started is the first fact, and comes once")
        match fact:
            case None:
                pass
            case facts.Received(ch=ch, data=data):
                if self._known(fact, ch).read_closed:
                    self._bad(fact, "data after ReadClosed")
                if not data:
                    self._bad(fact, "Received without data")
            case facts.Sent(ch=ch, n=n):
                channel = self._known(fact, ch)
                if not 0 < n <= channel.unsent:
                    self._bad(fact, f"{channel.unsent} bytes were unsent")
                channel.unsent -= n
            case facts.ReadClosed(ch=ch):
                channel = self._known(fact, ch)
                if channel.read_closed:
                    self._bad(fact, "a second ReadClosed")
                channel.read_closed = True
            case facts.Closed(ch=ch):
                self._ends(fact, self._known(fact, ch))
                del self._channels[ch]
                self._closed.add(ch)
            case facts.Done(op=op) | facts.Failed(op=op):
                self._answered(fact, self._resolve_operation(fact, op))
            case facts.Accepted(ch=ch):
                self._new_channel(fact, ch, odd=False).open = True
            case facts.Started():
                self._started = True
            case facts.Stopping() | facts.Reloading():
                pass
            case _:
                assert_never(fact)

    def _ends(self, fact: facts.Closed, channel: _ChannelRecord) -> None:
        spawn = channel.spawn
        if channel.file is not None:
            self._bad(fact, "Closed before the answer to SendFile")
        if fact.exit is not None and (spawn is None or spawn.ch != fact.ch):
            self._bad(fact, "an exit status of what is no child")
        if spawn is not None and spawn.ch == fact.ch and spawn.stderr in self._channels:
            self._bad(fact, "Closed before that of its error output")

    def _answered(self, fact: facts.Done | facts.Failed, command: commands.Operation[Any]) -> None:
        done = isinstance(fact, facts.Done)
        if isinstance(fact, facts.Done) and not command.accepts(fact.result):
            self._bad(fact, f"not an answer to {type(command).__name__}")
        match command:
            case commands.Connect(ch=ch) if done:
                self._channels[ch].open = True
            case commands.Connect(ch=ch):
                del self._channels[ch]
                self._closed.add(ch)
            case commands.Spawn(ch=ch, stderr=errors):
                for number in (ch, errors):
                    if number is not None and done:
                        self._channels[number].open = True
                    elif number is not None:
                        del self._channels[number]
                        self._closed.add(number)
            case commands.SendFile(ch=ch) if ch in self._channels:
                self._channels[ch].file = None
            case commands.OpenFile() if isinstance(fact, facts.Done):
                self._files.add(fact.result.handle)  # type: ignore[attr-defined]
            case commands.CreateBlob() if isinstance(fact, facts.Done):
                self._blobs.add(fact.result)  # type: ignore[arg-type]
            case commands.FinishBlob(handle=handle) if done:
                self._blobs.discard(handle)

    def _resolve_operation(self, fact: facts.Done | facts.Failed, op: facts.OperationId) -> commands.Operation[Any]:
        command = self._open.pop(op, None)
        if command is None:
            self._bad(fact, "a second answer" if op in self._used else "an answer to nothing")
        return command

    # --- commands ------------------------------------------------------------------------------------------------

    def command(self, command: commands.Command) -> None:  # noqa: C901 - one case for each command
        """Check a command of the core."""
        match command:
            case commands.Send() | commands.CloseWrite():
                self._write(command)
            case commands.Abort(ch=ch) | commands.PauseReading(ch=ch) | commands.ResumeReading(ch=ch):
                channel = self._mine(command, ch)
                if channel is not None and isinstance(command, commands.Abort):
                    channel.aborted = True
            case commands.Signal(ch=ch) | commands.ResizeTerminal(ch=ch):
                self._to_child(command, ch)
            case commands.Operation():
                self._operation(command)
            case commands.Cancel(op=op):
                if op not in self._open:
                    self._bad(command, "that operation has been answered" if op in self._used else "no such operation")
            case commands.ReleaseFile(handle=handle):
                self._handle(command, handle, self._files)
                self._files.discard(handle)
            case commands.DiscardBlob(handle=handle):
                self._handle(command, handle, self._blobs)
                self._blobs.discard(handle)
            case commands.Ready():
                if self._ready:
                    self._bad(command, "Ready was given before")
                self._ready = True
            case commands.Exit():
                if self._exited:
                    self._bad(command, "Exit was given before")
                self._exited = True
            case commands.Log() | commands.Notify() | commands.DeleteBlob():
                pass
            case _:
                self._bad(command, "not a command")

    def _operation(self, command: commands.Operation[Any]) -> None:
        if command.op in self._used:
            self._bad(command, "an operation number used twice")
        self._used.add(command.op)
        self._open[command.op] = command
        match command:
            case commands.Connect(ch=ch):
                self._new_channel(command, ch, odd=True)
            case commands.Spawn(ch=ch, stderr=errors, terminal=terminal):
                self._new_channel(command, ch, odd=True).spawn = command
                if errors is not None:
                    self._new_channel(command, errors, odd=True).spawn = command
                self._size(command, terminal)
            case commands.SendFile(handle=handle):
                self._handle(command, handle, self._files)
                self._write(command)
            case commands.ReadFile(handle=handle):
                self._handle(command, handle, self._files)
            case commands.WriteBlob(handle=handle) | commands.FinishBlob(handle=handle):
                self._handle(command, handle, self._blobs)

    def _to_child(self, command: commands.Signal | commands.ResizeTerminal, ch: facts.ChannelId) -> None:
        channel = self._mine(command, ch)
        if channel is None:
            return
        if channel.spawn is None or channel.spawn.ch != ch:
            self._bad(command, "the channel is no child")
        if isinstance(command, commands.ResizeTerminal):
            if channel.spawn.terminal is None:
                self._bad(command, "the child has no terminal")
            self._size(command, command.size)

    def _size(self, command: commands.Command, size: commands.TerminalSize | None) -> None:
        if size is not None and (size.cols < 1 or size.rows < 1):
            self._bad(command, "a terminal has one column and one row at least")

    def _write(self, command: commands.Send | commands.CloseWrite | commands.SendFile) -> None:
        channel = self._mine(command, command.ch)
        if channel is None:
            self._bad(command, "the channel is closed")
        if channel.spawn is not None and channel.spawn.stderr == command.ch:
            self._bad(command, "an error output is for reading")
        if channel.aborted:
            return  # the abort is in progress
        if channel.write_closed:
            self._bad(command, "after CloseWrite")
        if isinstance(command, commands.CloseWrite):
            channel.write_closed = True
            return
        if channel.file is not None:
            self._bad(command, "a SendFile is under way")
        if isinstance(command, commands.SendFile):
            channel.file = command.op
            channel.unsent += command.n
        else:
            channel.unsent += len(command.data)

    # --- look-ups ------------------------------------------------------------------------------------------------

    def _new_channel(self, what: facts.Fact | commands.Command, ch: facts.ChannelId, *, odd: bool) -> _ChannelRecord:
        if ch in self._channels or ch in self._closed:
            self._bad(what, "a channel number used twice")
        if bool(ch & 1) is not odd or ch < 0:
            self._bad(what, "channels the core opens are odd, those of peers even, and none is negative")
        channel = self._channels[ch] = _ChannelRecord()
        return channel

    def _known(self, fact: facts.Fact, ch: facts.ChannelId) -> _ChannelRecord:
        channel = self._channels.get(ch)
        if channel is None or not channel.open:
            self._bad(fact, "a fact after Closed" if ch in self._closed else "a fact of a channel that is not open")
        return channel

    def _mine(self, command: commands.Command, ch: facts.ChannelId) -> _ChannelRecord | None:
        """Return the channel, or None after its `Closed`. Raise `ContractError` if it is unknown or not open yet."""
        if ch in self._closed:
            return None
        channel = self._channels.get(ch)
        if channel is None or not channel.open:
            self._bad(command, "no such channel" if channel is None else "the channel is not open yet")
        return channel

    def _handle(self, command: commands.Command, handle: int, handles: set[int]) -> None:
        if handle not in handles:
            self._bad(command, "no such handle")

    def _bad(self, what: facts.Fact | commands.Command | None, why: str) -> NoReturn:
        raise ContractError(f"{self.name}: {what!r:.300}: {why}")
