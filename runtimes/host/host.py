"""Host of one process's cores on one loop: pumps, listeners, threads, signals and the single timer."""

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
from runtimes.net.peer_user import PeerUserLookup
from runtimes.net.stdio_channel import StdioListener
from runtimes.net.tcp_channel import TcpChannel
from runtimes.processes.child_channel import ChildService
from runtimes.processes.reaper import Reaper
from runtimes.service_home.server_registry import HomeClaim
from runtimes.store.memory_store import MemoryStore
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
MAX_SLEEP = 86_400.0  # s; a core with a later deadline is called again after this time
SHUTDOWN_TIMEOUT = 5.0  # s to wait at exit for disk and store writes in progress
AT_HAND = 0.5  # s to wait at exit for file reads: enough for a healthy disk, not for a read that hangs


_moment = partial(tuple.__new__, Moment)  # Called before each fact: builds a `Moment` without a Python-level call.


def current_moment() -> Moment:
    """Return the current time of this host's clocks."""
    return _moment((time.monotonic(), time.time()))


@fast_frozen(kw_only=True)
class Services:
    """Configuration of the services that perform one core's commands."""

    state: Path | None = None  # the folder of ReadConfig, WriteConfig, EnsureSecret
    extra_state_folders: Sequence[Path] = ()  # other folders that these commands may name by absolute path
    spool: Path | None = None  # the folder of uploads
    store: Store | None = field(factory=MemoryStore)
    compute: Mapping[str, Callable[..., object]] = field(factory=lambda: COMPUTE_FUNCTIONS)
    client_tls: ssl.SSLContext | PinnedTrust | None = None  # None: the system's trust
    resolver: Resolver = resolve_host
    logger: logging.Logger = field(factory=lambda: logging.getLogger("svc"))


@fast_frozen(kw_only=True)
class Program:
    """A core with its listeners and services. The callbacks are called on the loop's thread."""

    core: Core
    listeners: Sequence[Listener] = ()
    reserved: Sequence[Listener] = ()  # bound here and used by child processes, which accept on them
    asks_for_users: bool = False  # facts about peers on this host name their user
    stdio: bool = False  # standard input and output are accepted as a channel from `stdio`
    services: Services = field(factory=Services)
    on_ready: Callable[[], None] | None = None
    on_exit: Callable[[Exit], None] | None = None
    on_notify: Callable[[Notify], None] = lambda news: None
    claim: HomeClaim | None = None  # claim on a service home; the code that made the claim releases it
    patience: float = 0.0  # s that stopping may take, where that exceeds the host's grace

    @property
    def all_listeners(self) -> list[Listener]:
        """Return the listeners of the program, and those reserved for its child processes."""
        return [*self.listeners, *self.reserved]


class Host:
    """Host of the cores of several programs on one loop.

    An adapter builds it, and calls `start`, `on_timer` and `close`.
    """

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
        self._hosted = [_HostedProgram(self, program) for program in programs]

    # --- for the adapter -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Accept calls from other threads, and give `Started` to every core."""
        self._handle.on_stop = self.stop
        self._handle.on_reload = self.reload
        self.loop.watch_read(self._waker)
        if self._signals:
            self._waker.watch_signals()
        for hosted in self._hosted:
            hosted.pump.feed(Started())
        self._finish_if_done()

    def on_timer(self) -> None:
        """Call `tick` of each pump, because the time set with `set_wake_time` has been reached."""
        self.armed = math.inf
        mono = self.clock().mono
        for hosted in self._hosted:
            hosted.pump.tick(mono)

    def close(self) -> None:
        """Close open channels, and end threads and child processes, waiting for them for limited times.

        Threads that read, resolve or compute are hardly awaited, and a thread that hangs is left behind.
        """
        self._waker.unwatch_signals()
        for hosted in self._hosted:
            hosted.abandon()
        self._writer.close(SHUTDOWN_TIMEOUT)
        for worker in self._store_workers.values():
            worker.close(SHUTDOWN_TIMEOUT)
        self._spawners.close(SHUTDOWN_TIMEOUT)
        self._readers.close(AT_HAND)
        for workers in (self._resolvers, self._computers):
            workers.close(0.0)
        self._waker.drain()  # results that arrived too late are undone
        self._reaper.close()
        self.loop.close(self._waker)
        self._handle.on_stop = self._handle.on_reload = None

    @property
    def exit_codes(self) -> tuple[Exit, ...]:
        """The `Exit` of each core, in the order of the programs; code 1 for a core that has not exited."""
        return tuple(hosted.pump.outcome or Exit(1, "the loop ended first") for hosted in self._hosted)

    # --- for pumps -----------------------------------------------------------------------------------------------

    def arm(self, when: float) -> None:
        """Have `on_timer` called by `when`; does nothing if an earlier call is scheduled already."""
        if when < self.armed:
            when = min(when, time.monotonic() + MAX_SLEEP)  # epoll takes timeouts of at most 24 days
            self.armed = when
            self.loop.set_wake_time(when)

    def ready(self, pump: Pump) -> None:
        """Start accepting for a core that is ready, and call its program's `on_ready` unless it is stopping."""
        for hosted in self._hosted:
            if hosted.pump is pump:
                hosted.ready()

    def exited(self, pump: Pump) -> None:
        """Close the program of an exited core; if its exit code is not 0, stop the other programs, too."""
        for hosted in self._hosted:
            if hosted.pump is pump:
                hosted.exited()
        if pump.outcome is not None and pump.outcome.code:
            self._waker.post(self.stop)
        self._waker.post(self._finish_if_done)

    def stop(self, grace: float | None = None) -> None:
        """Stop accepting, and give `Stopping` to every core, unless it is stopping already.

        A core has `grace` s to finish (None: the host's grace), or its program's `patience` if that is longer.
        """
        for hosted in self._hosted:
            hosted.stop(self._grace if grace is None else grace)

    def reload(self) -> None:
        """Give `Reloading` to every core that has not exited; what is reloaded is the core's decision."""
        for hosted in self._hosted:
            hosted.pump.feed(Reloading())

    def workers(self) -> tuple[ThreadPool, ThreadPool, ThreadPool, ThreadPool]:
        """Return the pools of readers, writer, resolvers and computers."""
        return self._readers, self._writer, self._resolvers, self._computers

    def children(self, pump: Pump) -> ChildService:
        """Return a service for child processes for this pump."""
        return ChildService(pump, self._spawners, self._reaper, self._waker.post)

    def stdio(self, pump: Pump) -> StdioListener:
        """Return a listener for standard input and output."""
        return StdioListener(pump, self._waker.post)

    def store_worker(self, store: Store | None) -> StoreWorker:
        """Return the single worker thread of a store; several cores may share one store."""
        return self._store_workers.setdefault(id(store), StoreWorker(self._waker.post))

    def _finish_if_done(self) -> None:
        if all(hosted.pump.outcome is not None for hosted in self._hosted):
            self.loop.finish()


class _HostedProgram:
    """A program with its pump, services and acceptors."""

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
        self._users = PeerUserLookup() if program.asks_for_users else None
        acceptors = [Acceptor(pump, listener, self._users) for listener in program.listeners]
        TlsReloadService(pump, readers, acceptors)
        self._acceptors: list[Acceptor | StdioListener] = [*acceptors]
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
        if self._users is not None:
            self._users.close()

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
