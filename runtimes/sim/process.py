"""A run of one core on a host: facts are given one at a time, commands performed in order.

A process waits only for its inbox and the core's deadline. Bytes stay in the network until the core is given them, so
`PauseReading` takes effect at once, unless a fault lets one more read through (`Faults.late_read`).

Where `handle` has a cost (`SimHost.cost`), its commands are performed at the end of the computation. Until then facts
wait in the inbox and the deadline is ignored; everything outside the process continues.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from runtimes.sim.child import SimChildEnd
from runtimes.sim.connection import SimEnd
from runtimes.sim.contract import Contract, ContractError
from runtimes.sim.cost import HandleCost, MeteredRows
from runtimes.sim.operations import SimOperations
from svc_proto import facts
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Exit,
    Level,
    Log,
    Notify,
    Operation,
    PauseReading,
    Ready,
    ResumeReading,
    Send,
)

if TYPE_CHECKING:
    from runtimes.sim.host import CoreFactory, SimHost, SimPort

__all__ = ["KILLED", "LogLine", "SimProcess"]

KILLED = -9  # exit code of a killed process, as in `subprocess`
MAX_STALL = 100  # wake-ups at one instant after which a core's deadline counts as stuck
MAX_LATE = 0.05  # most seconds that a wake-up is late under `Faults.late_wake`
CLOCK_STEP = 3600.0  # most seconds that the wall clock jumps under `Faults.clock_step`


class _Notice(IntEnum):
    READ = 1
    SENT = 2
    CLOSED = 3


@frozen
class LogLine:
    """A `Log` command and the wall time at which it was given."""

    wall: float
    level: Level
    event: str
    fields: dict[str, object]


class _SimChannel:
    """Owner of one end of a connection: collects its events, and converts them to facts when the core takes them."""

    __slots__ = ("_process", "_read_noted", "_sent", "_why", "ch", "end")

    def __init__(self, process: SimProcess, ch: facts.ChannelId, end: SimEnd | SimChildEnd) -> None:
        self._process = process
        self.ch = ch
        self.end = end
        self._read_noted = False
        self._sent = 0
        self._why = ""

    def on_sent(self, n: int) -> None:
        if not self._sent:
            self._process.post((self, _Notice.SENT))
        self._sent += n

    def on_readable(self) -> None:
        if not self._read_noted:
            self._read_noted = True
            self._process.post((self, _Notice.READ))

    def on_closed(self, why: str) -> None:
        self._why = why
        self._process.post((self, _Notice.CLOSED))

    def fact(self, notice: _Notice) -> facts.Fact | None:
        """Return the fact for the core, or None if the notice is obsolete."""
        if notice is _Notice.SENT:
            n, self._sent = self._sent, 0
            return facts.Sent(self.ch, n)
        if notice is _Notice.CLOSED:
            return facts.Closed(self.ch, self._why, self.end.exit_status)
        self._read_noted = False
        data = self.end.read()
        if data is None:
            return None
        if self.end.has_more:
            self.on_readable()
        return facts.Received(self.ch, data) if data else facts.ReadClosed(self.ch)


_Item: TypeAlias = facts.Fact | tuple[_SimChannel, _Notice]


class SimProcess:
    """A process, made by `SimHost.start`. `exit_code` is None while it runs; `logs` has its records, oldest first."""

    def __init__(self, host: SimHost, factory: CoreFactory, ports: tuple[SimPort, ...], name: str) -> None:
        self.host = host
        self.name = name
        self.exit_code: int | None = None
        self.exit_reason = ""
        self.ready = False
        self.logs: list[LogLine] = []
        self.operations = SimOperations(self)
        world = host.world
        self.entropy: Entropy = Random(f"{world.seed}/{name}").randbytes
        self._world = world
        self._factory = factory
        self._ports = ports
        self._listeners = [_Listener(self, port) for port in ports]
        self._channels: dict[facts.ChannelId, _SimChannel] = {}
        self._accepted = 0
        self._inbox: deque[_Item] = deque()
        self._draining = False  # a drain is scheduled or in progress
        self._computing = False  # during a `handle` that takes time
        self._rows = 0  # rows that the core has taken from answers of the store in this call
        self._wake: float | None = None  # the earliest scheduled wake-up
        self._stalls = 0
        self._stalled_at = 0.0
        self._exit: Exit | None = None
        self._contract = Contract(name)
        self._table: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            CloseWrite: self._close_write,
            Abort: self._abort,
            PauseReading: self._pause,
            ResumeReading: self._resume,
            Cancel: lambda command: self.operations.cancel(command.op),
            Log: self._log,
            Notify: lambda news: None,  # no program embeds the core
            Ready: self._ready,
            Exit: self._exit_ordered,
            **self.operations.handlers,
        }
        self.core = factory(self.entropy)

    def __repr__(self) -> str:
        return f"<process {self.name} {'runs' if self.alive else f'exited {self.exit_code}'}>"

    # --- for tests -----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Report whether the process has neither exited nor been killed."""
        return self.exit_code is None

    @property
    def channel_count(self) -> int:
        """Return the number of channels whose `Closed` the core has not received."""
        return len(self._channels)

    @property
    def commands(self) -> list[Command]:
        """Return every command so far. Raise ValueError unless the simulation was made with `trace=True`."""
        mine = [record.what for record in self._world.records if record.process == self.name]
        return [what for what in mine if what is not None and not isinstance(what, facts.Fact | str)]

    def end_of(self, ch: facts.ChannelId) -> SimEnd | SimChildEnd | None:
        """Return the end behind a channel; None after the core has received `Closed`."""
        channel = self._channels.get(ch)
        return None if channel is None else channel.end

    def kill(self) -> None:
        """Kill the process: memory is lost, peers get resets, files and store stay. Does nothing after its end."""
        if self.alive:
            self._finish(KILLED, "killed", reset=True)

    def stop(self, grace: float = 10.0) -> None:
        """Stop listening, and give the core `Stopping` with `grace` seconds, as SIGTERM does."""
        if self.alive:
            self._unlisten()
            self.post(facts.Stopping(grace))

    def reload(self) -> None:
        """Give `Reloading` to the core, as SIGHUP does."""
        self.post(facts.Reloading())

    def restart(self) -> SimProcess:
        """Kill the process if it runs, then start and return another one with the same core factory and ports."""
        self.kill()
        return self.host.start(self._factory, self._ports, name=self.name.partition("#")[0])

    def nudge(self) -> None:
        """Read the core's deadline again, after a test has changed it from outside."""
        self._arm()

    @property
    def require_tls(self) -> int:
        """Return the number of listening ports that require TLS."""
        return sum(port.tls for port in self._ports)

    # --- for the host, listeners and operations ------------------------------------------------------------------

    def begin(self) -> None:
        """Give `Started` to the core; called once, by the host."""
        self._world.trace.add(self._world.now, self.name, "started")
        self.post(facts.Started())

    def post(self, item: _Item) -> None:
        """Queue a fact, or the notice of one, unless the process has ended.

        The core gets it after earlier ones, in the same instant if no computation is in progress.
        """
        if not self.alive:
            return
        self._inbox.append(item)
        if not self._draining:
            self._draining = True
            self._world.at(self._world.now, self._drain)

    def adopt(self, ch: facts.ChannelId, end: SimEnd | SimChildEnd) -> None:
        """Register channel `ch` for an end of a connection, whose events become facts from now on."""
        channel = self._channels[ch] = _SimChannel(self, ch, end)
        end.adopt(channel)

    def accepted(self, end: SimEnd) -> None:
        """Accept a connection of a peer: give `Accepted` to the core, and register the channel."""
        self._accepted += 2
        ch = facts.ChannelId(self._accepted)
        self.post(facts.Accepted(ch, end.peer, end.local, end.connection.tls, end.connection.alpn))
        self.adopt(ch, end)

    # --- facts ---------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        inbox = self._inbox
        while inbox and self.alive and not self._computing:
            item = inbox.popleft()
            fact = item[0].fact(item[1]) if isinstance(item, tuple) else item
            if fact is not None:
                self._handle(fact)
        self._draining = self._computing
        self._arm()

    def _handle(self, fact: facts.Fact | None) -> None:
        world, contract, name = self._world, self._contract, self.name
        contract.fact(fact)
        if type(fact) is facts.Closed:
            del self._channels[fact.ch]
        if fact is not None:
            world.trace.add(world.now, name, fact)
        cost = self.host.cost
        self._rows = 0
        try:
            commands = self.core.handle(
                _metered(fact, self._count_row) if cost.per_record else fact, self.host.moment()
            )
        except Exception as error:
            error.add_note(f"in {name} at {world.now}: the core must not raise; it was given {fact!r:.200}")
            raise
        # a call without a due timer is not traced: when a core wakes is an internal matter
        if fact is None and commands:
            world.trace.add(world.now, name, None)
        seconds = 0.0 if cost is HandleCost.NONE else cost.of(fact, commands, self._rows)
        if seconds:
            self._computing = self._draining = True
            world.after(seconds, partial(self._computed, commands))
        else:
            self._carry_out(commands)

    def _count_row(self) -> None:
        self._rows += 1

    def _computed(self, commands: list[Command]) -> None:
        if self.alive:
            self._computing = False
            self._carry_out(commands)
            self._drain()

    def _carry_out(self, commands: list[Command]) -> None:
        world, contract, name = self._world, self._contract, self.name
        for command in commands:
            world.trace.add(world.now, name, command)
            contract.command(command)
            handler = self._table.get(type(command))
            if handler is not None:
                handler(command)
            else:
                assert isinstance(command, Operation)  # the contract has checked the type
                self.operations.unserved(command)
        if self._exit is not None:
            self._finish(self._exit.code, self._exit.reason, reset=False)

    # --- time ----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        if not self.alive or self._computing:
            return
        when = self.core.next_deadline()
        if when is None:
            return
        world = self._world
        when = max(self.host.when(when), world.now)
        if self._wake is not None and self._wake <= when:
            return
        self._wake = when
        if world.draw(world.faults.late_wake):
            self._wake = when = when + world.rng.uniform(0.0, MAX_LATE)
        world.at(when, self._wake_up, timer=True)

    def _wake_up(self) -> None:
        world = self._world
        if not self.alive or self._wake is None or world.now < self._wake:
            return
        self._wake = None
        if self._computing:
            return
        due = self.core.next_deadline()
        if due is not None and due <= self.host.mono():
            self._watch_progress(due)
            if world.draw(world.faults.clock_step):
                self.host.step_wall(world.rng.uniform(-CLOCK_STEP, CLOCK_STEP))
            self._handle(None)
        self._arm()

    def _watch_progress(self, due: float) -> None:
        now = self._world.now
        self._stalls = self._stalls + 1 if now == self._stalled_at else 0
        self._stalled_at = now
        if self._stalls > MAX_STALL:
            raise ContractError(f"{self.name}: next_deadline() stays at {due}, and it is {now}")

    # --- commands ------------------------------------------------------------------------------------------------

    def _send(self, command: Send) -> None:
        self._channels[command.ch].end.send(command.data)

    def _close_write(self, command: CloseWrite) -> None:
        self._channels[command.ch].end.close_write()

    def _abort(self, command: Abort) -> None:
        if command.ch in self._channels:
            self._channels[command.ch].end.abort()

    def _pause(self, command: PauseReading) -> None:
        if command.ch in self._channels:
            spare = 1 if self._world.draw(self._world.faults.late_read) else 0
            self._channels[command.ch].end.pause(spare=spare)

    def _resume(self, command: ResumeReading) -> None:
        if command.ch in self._channels:
            self._channels[command.ch].end.resume()

    def _log(self, command: Log) -> None:
        self.logs.append(LogLine(self.host.wall(), command.level, command.event, dict(command.fields)))

    def _ready(self, command: Ready) -> None:
        self.ready = True
        for listener in self._listeners:
            self._world.network.listen(self.host, listener.number, listener)

    def _exit_ordered(self, command: Exit) -> None:
        self._exit = command  # performed after the rest of the list

    # --- the end -------------------------------------------------------------------------------------------------

    def _finish(self, code: int, reason: str, *, reset: bool) -> None:
        self.exit_code, self.exit_reason = code, reason
        self._world.trace.add(self._world.now, self.name, "killed" if reset else f"exited {code}")
        self._unlisten()
        for channel in self._channels.values():
            channel.end.vanish(reset=reset)
        self._channels.clear()
        self.operations.end(killed=reset)
        self._inbox.clear()

    def _unlisten(self) -> None:
        for listener in self._listeners:
            self._world.network.unlisten(self.host, listener.number, listener)
        self._listeners = []


def _metered(fact: facts.Fact | None, report: Callable[[], None]) -> facts.Fact | None:
    if isinstance(fact, facts.Done) and type(fact.result) is tuple:
        return facts.Done(fact.op, MeteredRows(fact.result, report))
    return fact


class _Listener:
    """A listening port of a process."""

    def __init__(self, process: SimProcess, port: SimPort) -> None:
        self._process = process
        self.number = port.number
        self.tls = port.tls
        self.alpn = port.alpn

    def accepted(self, end: SimEnd) -> None:
        self._process.accepted(end)
