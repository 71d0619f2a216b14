"""A server as several processes: what starts them, one after the other, keeps them running, and ends them all.

First comes what the others need, then one of them by itself, since it makes what all find at the home, then the rest.
Who is ready says so in a line on its standard output. Until all were, who ends takes everything along. From then on it
is started again, after a pause that doubles while it does not last. What they write to their error output is told line
by line (`Notify("line", {"text": ...})`), since they keep no log of their own.

They end by SIGTERM, what they need last of all; who takes too long is killed. If this process is killed they see the
end of their standard input: see `ParentWatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.cli.line_service import LineService
from svc_proto.commands import Level, Notify, Ready, SignalName
from svc_proto.engine.channel import Channel
from svc_proto.engine.child_process import ChildProcess, spawn
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

READY_TIMEOUT = 60.0  # s from the start of one until it says that it is ready
PAUSE = 1.0  # s before one that has ended is started again; each time twice as long
MAX_PAUSE = 30.0  # s, and no longer
STABLE_AFTER = 60.0  # s after which one counts as lasting: its next pause is the first again
TERM_TIMEOUT = 12.0  # s from SIGTERM to SIGKILL: a server has ten for what is under way
LONGEST = 64 * 1024  # bytes of a line; what is longer is told in part
EVERYTHING = ("*",)  # of our environment: they are this program
FOREVER = float("inf")


@frozen(kw_only=True)
class WorkerSpec:
    """A process that is to run."""

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    first: tuple[tuple[str, str], ...] = ()  # beside that, when it is started for the first time
    ready: str  # is in the line that says so


class WorkerSupervisor:
    """The service. It is `Ready` when all are; `needed` is what `workers` cannot do without, if anything."""

    def __init__(self, needed: WorkerSpec | None, workers: Sequence[WorkerSpec]) -> None:
        self._needed = needed
        self._jobs = workers

    def bind(self, engine: Engine) -> None:
        """Keep the engine."""
        self._engine = engine
        engine.on_reload = self._reload
        self._members: list[_Worker] = []
        self._ending = False

    def on_started(self) -> None:
        """Set out."""
        self._starting = self._engine.spawn(self._start())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """The workers accept, not this."""
        return None

    def on_stopping(self) -> None:
        """End all."""
        self._end(0, "")

    def failed(self, status: int | None, why: str) -> None:
        """One has ended before it was ever ready."""
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
        yield from gather(self._engine, [self._bring_up(job) for job in self._jobs[1:]])  # cancelled if one is not
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
    """A job, and the process that does it now, if any."""

    def __init__(self, engine: Engine, crew: WorkerSupervisor, job: WorkerSpec) -> None:
        self.job = job
        self.child: ChildProcess | None = None
        self.was_ready = False
        self.ready = Condition(engine)
        self._over = Condition(engine)
        self._status: int | None = None  # of the last one that ended
        self._last = ""  # line of its output
        self._engine = engine
        self._crew = crew

    def start(self) -> None:
        """Start it, now and whenever it has ended."""
        self._task = self._engine.spawn(self._live())

    def stop_restarting(self) -> None:
        """Start it no more."""
        self._task.cancel()

    def terminate(self) -> Flow[None]:
        """End it."""
        if self.child is None:
            return
        self.child.signal(SignalName.TERMINATE)
        yield from self._over.wait(self._engine.now.mono + TERM_TIMEOUT)
        if self.child is not None:
            self._engine.log(Level.WARNING, "worker killed", name=self.job.name)
            self.child.kill()

    def on_output(self, data: bytes) -> None:
        """See `ChildHandler`."""
        self._output.on_output(data)

    def on_exit(self, status: int | None) -> None:
        """The same."""
        self.child, self._status = None, status
        self._over.notify_all()

    def _live(self) -> Flow[None]:
        engine, job, pause = self._engine, self.job, PAUSE
        env = (*job.env, *job.first)
        while True:
            began = engine.now.mono
            why = yield from self._run(env)
            if not self.was_ready:
                self._crew.failed(self._status, f"{job.name} {why}")
                return
            env = job.env
            if engine.now.mono - began >= STABLE_AFTER:
                pause = PAUSE
            engine.log(Level.WARNING, "worker ended", name=job.name, why=why, again_in=pause)
            yield from sleep(engine, pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _run(self, env: tuple[tuple[str, str], ...]) -> Flow[str]:
        """From its start to its end; why it has ended."""
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


class _LineHandler:
    """A `ChildHandler` that takes what a child writes line by line."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._buffer = LineBuffer(LONGEST)

    def on_output(self, data: bytes) -> None:
        try:
            lines = self._buffer.feed(data)
        except RemoteProtocolError as error:
            self._buffer, lines = LineBuffer(LONGEST), [str(error).encode()]
        for line in lines:
            self._take(line.decode("utf-8", "replace"))

    def on_exit(self, status: int | None) -> None:
        pass


class ParentWatch(LineService):
    """Beside the server in a worker: its standard input ends when the process that started it is gone."""

    def on_line(self, line: bytes) -> None:
        """Nothing is said there."""

    def on_client_closed(self, problem: str) -> None:
        """Go, too: whoever fails takes the server along."""
        self.engine.exit(1)

    def on_stopping(self) -> None:
        """Nothing is to be finished."""
        self.engine.exit(0)

    @property
    def is_busy(self) -> bool:
        """There is nothing to do."""
        return False


def _log_line(engine: Engine, line: str) -> None:
    engine.emit(Notify("line", {"text": line}))
