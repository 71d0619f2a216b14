"""One process's cores on one loop: their pumps, listeners, threads, signals and the one timer."""

from __future__ import annotations

import logging
import math
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import field

from runtimes.files.file_service import FileService
from runtimes.files.state_folder import StateService
from runtimes.host.compute import COMPUTE_FUNCTIONS, ComputeService
from runtimes.host.logs import LogWriter
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from runtimes.loops.loop import Loop
from runtimes.loops.waker import HostHandle
from runtimes.net.connector import ConnectService, Resolver, resolve_host
from runtimes.net.file_body import FileBody
from runtimes.net.listener import Acceptor, Listener
from runtimes.net.stdio_channel import StdioListener
from runtimes.net.tcp_channel import TcpChannel
from runtimes.processes.child_channel import ChildService
from runtimes.processes.reaper import Reaper
from runtimes.service_home.server_registry import HomeClaim
from runtimes.store.store_service import Store, StoreService, StoreWorker
from runtimes.tls.contexts import PinnedTrust
from runtimes.tls.tls_reload_service import TlsReloadService
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Exit, Notify, SendFile
from svc_proto.facts import FailureKind, Reloading, Started, Stopping

__all__ = ["Host", "Program", "Services", "current_moment"]

READERS = 4  # threads that read files
RESOLVERS = 4  # threads that resolve names
COMPUTERS = 4  # threads for `Compute`
SPAWNERS = 2  # threads that start child processes
MAX_SLEEP = 86_400.0  # s after which a core whose deadline is further off is asked again
SHUTDOWN_TIMEOUT = 5.0  # s at the end for writes to the disk and the store that are under way
AT_HAND = 0.5  # s, for what readers have open: what a disk does at once, but not what hangs


_moment = partial(tuple.__new__, Moment)  # asked for before each fact: what `Moment` does, without a call of Python


def current_moment() -> Moment:
    """The clocks of this host."""
    return _moment((time.monotonic(), time.time()))


@fast_frozen(kw_only=True)
class Services:
    """What one core's commands are carried out with. Whatever is None answers `UNSUPPORTED`."""

    state: Path | None = None  # the folder of ReadConfig, WriteConfig, EnsureSecret
    extra_state_folders: Sequence[Path] = ()  # other folders that they may name, absolutely
    spool: Path | None = None  # the folder of uploads
    store: Store | None = None
    compute: Mapping[str, Callable[..., object]] = field(factory=lambda: COMPUTE_FUNCTIONS)
    client_tls: ssl.SSLContext | PinnedTrust | None = None  # None: the system's trust
    resolver: Resolver = resolve_host
    logger: logging.Logger = field(factory=lambda: logging.getLogger("svc"))


@fast_frozen(kw_only=True)
class Program:
    """A core with what it listens on and works with. The callbacks are called on the loop's thread."""

    core: Core
    listeners: Sequence[Listener] = ()
    reserved: Sequence[Listener] = ()  # bound for its children, who listen there
    stdio: bool = False  # its standard input and output are a channel, accepted from `stdio`
    services: Services = field(factory=Services)
    on_ready: Callable[[], None] | None = None
    on_exit: Callable[[Exit], None] | None = None
    on_notify: Callable[[Notify], None] = lambda news: None
    claim: HomeClaim | None = None  # on a home, released by whoever claimed it
    patience: float = 0.0  # s that its stop may take if that is more than others are given

    @property
    def all_listeners(self) -> list[Listener]:
        """All that it, or its children, accept on."""
        return [*self.listeners, *self.reserved]


class Host:
    """All of it. Made inside the running loop by an adapter, which calls `start`, `on_timer` and `close`."""

    def __init__(
        self,
        programs: Sequence[Program],
        loop: Loop,
        *,
        handle: HostHandle,
        grace: float,
        signals: bool,
    ) -> None:
        self.loop = loop
        self.clock = current_moment
        self._grace = grace
        self._handle = handle
        self._waker = self._handle.waker
        self.armed = math.inf
        self._signals = signals
        post = self._waker.post
        self._readers = ThreadPool("reader", READERS, post)
        self._writer = ThreadPool("writer", 1, post)
        self._resolvers = ThreadPool("resolver", RESOLVERS, post)
        self._computers = ThreadPool("compute", COMPUTERS, post)
        self._spawners = ThreadPool("spawner", SPAWNERS, post)
        self._reaper = Reaper(loop, post)
        self._store_workers: dict[int, StoreWorker] = {}
        self._tenants = [_HostedProgram(self, program) for program in programs]

    # --- for the adapter -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: every core hears `Started`."""
        self._handle.on_stop = self.stop
        self._handle.on_reload = self.reload
        self.loop.watch_read(self._waker)
        if self._signals:
            self._waker.watch_signals()
        for tenant in self._tenants:
            tenant.pump.feed(Started())
        self._finish_if_done()

    def on_timer(self) -> None:
        """The time given by `wake_at` has come."""
        self.armed = math.inf
        mono = self.clock().mono
        for tenant in self._tenants:
            tenant.pump.tick(mono)

    def close(self) -> None:
        """End threads and close what is left. The loop watches nothing any more after this."""
        self._waker.unwatch_signals()
        for tenant in self._tenants:
            tenant.abandon()
        self._writer.close(SHUTDOWN_TIMEOUT)
        for worker in self._store_workers.values():
            worker.close(SHUTDOWN_TIMEOUT)
        self._spawners.close(SHUTDOWN_TIMEOUT)
        self._readers.close(AT_HAND)
        for workers in (self._resolvers, self._computers):
            workers.close(0.0)
        self._waker.drain()  # results that came too late are undone
        self._reaper.close()
        self.loop.close(self._waker)
        self._handle.on_stop = self._handle.on_reload = None

    @property
    def exit_codes(self) -> tuple[Exit, ...]:
        """What each core ended with, in the order of the programs."""
        return tuple(tenant.pump.outcome or Exit(1, "the loop ended first") for tenant in self._tenants)

    # --- for pumps -----------------------------------------------------------------------------------------------

    def arm(self, when: float) -> None:
        """See that `on_timer` is called by `when`; a later one than is ordered already needs nothing."""
        if when < self.armed:
            when = min(when, time.monotonic() + MAX_SLEEP)  # epoll takes no more than 24 days
            self.armed = when
            self.loop.set_wake_time(when)

    def ready(self, pump: Pump) -> None:
        """A core has loaded what it needs: accept for it."""
        for tenant in self._tenants:
            if tenant.pump is pump:
                tenant.ready()

    def exited(self, pump: Pump) -> None:
        """A core's work is over. If it failed the others stop too: half a service would look like a whole one."""
        for tenant in self._tenants:
            if tenant.pump is pump:
                tenant.exited()
        if pump.outcome is not None and pump.outcome.code:
            self._waker.post(self.stop)
        self._waker.post(self._finish_if_done)

    def stop(self, grace: float | None = None) -> None:
        """Accept no more and ask every core to finish."""
        for tenant in self._tenants:
            tenant.stop(self._grace if grace is None else grace)

    def reload(self) -> None:
        """Tell every core that what may change while it runs is to be read again."""
        for tenant in self._tenants:
            tenant.pump.feed(Reloading())

    def workers(self) -> tuple[ThreadPool, ThreadPool, ThreadPool, ThreadPool]:
        """Readers, writer, resolvers, computers."""
        return self._readers, self._writer, self._resolvers, self._computers

    def children(self, pump: Pump) -> ChildService:
        """The service for child processes."""
        return ChildService(pump, self._spawners, self._reaper, self._waker.post)

    def stdio(self, pump: Pump) -> StdioListener:
        """Standard input and output."""
        return StdioListener(pump, self._waker.post)

    def store_worker(self, store: Store | None) -> StoreWorker:
        """The one thread of a store, which several cores may share."""
        return self._store_workers.setdefault(id(store), StoreWorker(self._waker.post))

    def _finish_if_done(self) -> None:
        if all(tenant.pump.outcome is not None for tenant in self._tenants):
            self.loop.finish()


class _HostedProgram:
    """One program at home in the host."""

    def __init__(self, host: Host, program: Program) -> None:
        self._program = program
        services = program.services
        log = LogWriter(services.logger)
        self.pump = pump = Pump(program.core, host, log)
        readers, writer, resolvers, computers = host.workers()
        self._readers = readers
        self._files = FileService(pump, readers=readers, writer=writer, spool=services.spool)
        StateService(pump, writer=writer, folder=services.state, rooms=services.extra_state_folders)
        StoreService(pump, host.store_worker(services.store), services.store)
        ComputeService(pump, computers, services.compute)
        host.children(pump)
        ConnectService(pump, resolvers, tls=services.client_tls, resolver=services.resolver)
        pump.serve({SendFile: self._send_file, Notify: program.on_notify})
        doors = [Acceptor(pump, listener) for listener in program.listeners]
        TlsReloadService(pump, readers, doors)
        self._acceptors: list[Acceptor | StdioListener] = [*doors]
        if program.stdio:
            self._acceptors.append(host.stdio(pump))
        self._stopping = False

    def ready(self) -> None:
        for acceptor in self._acceptors:
            acceptor.start()
        if self._program.on_ready is not None and not self._stopping:
            self._program.on_ready()

    def stop(self, grace: float) -> None:
        if self._stopping:
            return
        self._stopping = True
        for acceptor in self._acceptors:
            acceptor.close()
        self.pump.feed(Stopping(max(grace, self._program.patience)))

    def exited(self) -> None:
        self.abandon()
        outcome = self.pump.outcome
        if self._program.on_exit is not None and outcome is not None:
            self._program.on_exit(outcome)

    def abandon(self) -> None:
        for acceptor in self._acceptors:
            acceptor.abandon()
        self.pump.abandon_all()
        self._files.close_all()

    def _send_file(self, command: SendFile) -> None:
        pump = self.pump
        channel = pump.channels.get(command.ch)
        source = self._files.handle(command.handle)
        if channel is None:
            pump.refuse(command.op, FailureKind.CANCELLED, "the channel closed")
            return
        if not isinstance(channel, TcpChannel):
            pump.refuse(command.op, FailureKind.UNSUPPORTED, "no file can be sent to a child process")
            return
        if source is None:
            pump.refuse(command.op, FailureKind.INVALID, "no such handle")
            return
        body = FileBody(pump, self._readers, command.op, source, command.offset, command.n)
        pump.begin(command.op, lambda: channel.drop_file(body))
        channel.send_file(body)
