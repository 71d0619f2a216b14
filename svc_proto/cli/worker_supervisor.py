"""Supervisor of a server that runs as several processes: starts, restarts and ends them.

The dependency (such as Redis) is started first, then one worker, then the others. A worker reports readiness by a line
on its standard output. A worker that ends before it was ready, or is not ready in time, ends all. One that ends later
is restarted after a pause, which doubles up to `MAX_PAUSE`. The workers are ended by SIGTERM, the dependency last; a
slow one is killed.
"""

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.cli.line_service import LineService
from svc_proto.commands import Level, Notify, Ready, SignalName
from svc_proto.engine.channel import Channel
from svc_proto.engine.child_process import ChildHandler, ChildProcess, spawn
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.sync import Condition, gather
from svc_proto.facts import Accepted, Failure
from svc_proto.machines.line_buffer import LineBuffer

__all__ = [
    "MAX_PAUSE",
    "TERM_TIMEOUT",
    "PAUSE",
    "READY_TIMEOUT",
    "STABLE_AFTER",
    "WorkerSupervisor",
    "WorkerSpec",
    "ParentWatch",
]

READY_TIMEOUT = 60.0  # s from the start of one until it is ready
PAUSE = 1.0  # s before one that has ended is restarted; each time twice as long
MAX_PAUSE = 30.0  # s, and no longer
STABLE_AFTER = 60.0  # s after which the pause is reset
TERM_TIMEOUT = 12.0  # s from SIGTERM to SIGKILL: a server has ten for work in progress
LONGEST = 64 * 1024  # bytes of a line; a longer one is cut
EVERYTHING = ("*",)  # of our environment: they are the same program
FOREVER = float("inf")


@frozen(kw_only=True)
class WorkerSpec:
    """A process to run: name, command line, environment, and the text by which it reports readiness."""

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    first: tuple[tuple[str, str], ...] = ()  # additional variables of its first start
    ready: str  # text in the line that reports readiness


class WorkerSupervisor:
    """Service that is `Ready` when all workers are; `needed`, if any, is the dependency of `workers`."""

    def __init__(self, needed: WorkerSpec | None, workers: Sequence[WorkerSpec]) -> None:
        self._needed = needed
        self._jobs = workers

    def bind(self, engine: Engine) -> None:
        """Store the engine, and register the handler of reloads."""
        self._engine = engine
        engine.on_reload = self._reload
        self._members: list[_Worker] = []
        self._ending = False

    def on_started(self) -> None:
        """Start a task that starts the processes in order, and emits `Ready` when all are ready."""
        self._starting = self._engine.spawn(self._start())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return None: the workers accept the connections."""
        return None

    def on_stopping(self) -> None:
        """End all processes."""
        self._end(0, "")

    def failed(self, status: int | None, why: str) -> None:
        """End all processes: one ended before it was ready."""
        self._end(status if status is not None and status > 0 else 1, why)

    def _reload(self) -> None:
        for member in self._members:
            if member.child is not None and member.job is not self._needed:
                member.child.signal(SignalName.HANGUP)

    def _start(self) -> Flow[None]:
        alone = [*([] if self._needed is None else [self._needed]), self._jobs[0]]
        for job in alone:
            if not (yield from self._bring_up(job)):
                return
        yield from gather(self._engine, [self._bring_up(job) for job in self._jobs[1:]])  # cancelled if one fails
        self._engine.emit(Ready())

    def _bring_up(self, job: WorkerSpec) -> Flow[bool]:
        member = _Worker(self._engine, self, job)
        self._members.append(member)
        member.start()
        yield from member.ready.wait(self._engine.now.mono + READY_TIMEOUT)
        if not member.was_ready:
            self._end(1, f"{job.name} was not ready within {READY_TIMEOUT:.0f} s")
        return member.was_ready

    def _end(self, code: int, why: str) -> None:
        if self._ending:
            return
        self._ending = True
        self._engine.spawn(self._shut_down(code, why))

    def _shut_down(self, code: int, why: str) -> Flow[None]:
        self._starting.cancel()
        for member in self._members:
            member.stop_restarting()
        below = [member for member in self._members if member.job is self._needed]
        above = [member for member in self._members if member.job is not self._needed]
        for members in (above, below):
            yield from gather(self._engine, [member.terminate() for member in members])
        self._engine.exit(code, why)


class _Worker:
    """A supervised process of one `WorkerSpec`, restarted after each end once it has been ready."""

    def __init__(self, engine: Engine, supervisor: WorkerSupervisor, job: WorkerSpec) -> None:
        self.job = job
        self.child: ChildProcess | None = None
        self.was_ready = False
        self.ready = Condition(engine)
        self._over = Condition(engine)
        self._status: int | None = None  # of the last one that ended
        self._last = ""  # line of its output
        self._engine = engine
        self._supervisor = supervisor

    def start(self) -> None:
        """Start the process, and restart it after each end once it has been ready."""
        self._task = self._engine.spawn(self._live())

    def stop_restarting(self) -> None:
        """Stop restarting the process."""
        self._task.cancel()

    def terminate(self) -> Flow[None]:
        """End the process by SIGTERM, or by SIGKILL if it still runs after `TERM_TIMEOUT` seconds."""
        if self.child is None:
            return
        self.child.signal(SignalName.TERMINATE)
        yield from self._over.wait(self._engine.now.mono + TERM_TIMEOUT)
        if self.child is not None:
            self._engine.log(Level.WARNING, "worker killed", name=self.job.name)
            self.child.kill()

    def on_output(self, data: bytes) -> None:
        """Split the output into lines, which may report readiness."""
        self._output.on_output(data)

    def on_exit(self, status: int | None) -> None:
        """Store the exit status, and wake the flows that wait for the end."""
        self.child, self._status = None, status
        self._over.notify_all()

    def _live(self) -> Flow[None]:
        engine, job, pause = self._engine, self.job, PAUSE
        env = (*job.env, *job.first)
        while True:
            began = engine.now.mono
            why = yield from self._run(env)
            if not self.was_ready:
                self._supervisor.failed(self._status, f"{job.name} {why}")
                return
            env = job.env
            if engine.now.mono - began >= STABLE_AFTER:
                pause = PAUSE
            engine.log(Level.WARNING, "worker ended", name=job.name, why=why, again_in=pause)
            yield from sleep(engine, pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _run(self, env: tuple[tuple[str, str], ...]) -> Flow[str]:
        """Run the process from its start to its end; return the reason of the end."""
        engine, job = self._engine, self.job
        self._output, errors = _LineHandler(self._on_line), _LineHandler(partial(_log_line, engine))
        child = yield from spawn(engine, job.argv, self, env=env, errors=errors, inherit=EVERYTHING)
        if isinstance(child, Failure):
            return f"cannot be started: {child.detail or child.kind.value}"
        child.stays = True
        self.child = child
        engine.log(Level.INFO, "worker started", name=job.name, pid=child.pid)
        yield from self._over.wait(FOREVER)
        return f"has ended with {self._status}" + (f": {self._last}" if self._last and not self.was_ready else "")

    def _on_line(self, line: str) -> None:
        self._last = line
        if self.job.ready in line:
            self.was_ready = True
            self.ready.notify_all()


class _LineHandler(ChildHandler):
    """`ChildHandler` that splits a child's output into lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._buffer = LineBuffer(LONGEST)

    def on_output(self, data: bytes) -> None:
        try:
            lines = self._buffer.feed(data)
        except RemoteProtocolError as error:
            self._buffer, lines = LineBuffer(LONGEST), [str(error).encode()]
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))


class ParentWatch(LineService):
    """Service beside the server in a worker: ends the worker when the supervisor has closed its standard input."""

    def on_line(self, line: bytes) -> None:
        """Ignore the line: the supervisor sends none."""

    def on_client_closed(self, problem: str) -> None:
        """End the worker, since the connection to its supervisor is lost."""
        self.engine.exit(1)

    def on_stopping(self) -> None:
        """Exit at once."""
        self.engine.exit(0)

    @property
    def is_busy(self) -> bool:
        """Return False: this service does no work."""
        return False


def _log_line(engine: Engine, line: str) -> None:
    engine.emit(Notify("line", {"text": line}))
