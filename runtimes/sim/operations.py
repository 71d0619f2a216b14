"""Operations of a simulated process: files, uploads, configuration, store and work, each answered after virtual time.

An operation on files, the store or a child takes effect when it is answered; only `SendFile` sends before. If a store
request or a change in the state folder is cancelled or its process ends, the seed decides whether it takes effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define

from runtimes.failures import HostError, failure_of
from runtimes.files.file_service import READ_LIMIT
from runtimes.processes.reaper import MAX_CHILDREN
from runtimes.sim.child import SimChild, SimChildEnd
from runtimes.sim.connection import OutboxFile, SimEnd
from runtimes.sim.disk import DirectoryNode, FileNode, Node, as_file
from runtimes.sim.faults import SLOW
from runtimes.sim.network import SimHandshake
from svc_proto import commands
from svc_proto.facts import Done, Failed, Failure, FailureKind, OperationId

if TYPE_CHECKING:
    from runtimes.sim.process import SimProcess

__all__ = ["SimOperations"]

FILE_TIME = 0.0002  # s for one file operation
SPAWN_TIME = 0.01  # s until a child runs
WORK_TIME = 0.005  # s of named work
SUFFIX = re.compile(r"[A-Za-z0-9._-]{0,64}")  # of an upload, as in `runtimes.files.file_service`
MIN_SECRET = 16  # bytes, `EnsureSecret`


@define(eq=False)
class _Pending:
    op: OperationId
    effect: Callable[[], object]
    when: float = 0.0  # monotonic seconds
    durable: bool = False  # changes something that outlives the process
    cancelled: bool = False


@define(eq=False)
class _SimBlob:
    path: str
    file: FileNode
    spare: int


class SimOperations:
    """Service that performs the operations of one process's core in virtual time."""

    def __init__(self, process: SimProcess) -> None:
        self._process = process
        self._host = process.host
        self._spool = process.host.spools.get(process.name.partition("#")[0], process.host.spool)
        self._world = process.host.world
        self._pending: dict[OperationId, _Pending] = {}
        self._durable: list[_Pending] = []  # including cancelled ones that continue
        self._give_up: dict[OperationId, Callable[[], None]] = {}  # cancellation of network operations
        self._queues: dict[object, float] = {}  # when the last operation of each ordered sequence is done
        self._files: dict[int, Node] = {}
        self._blobs: dict[int, _SimBlob] = {}
        self._finished: dict[int, _SimBlob] = {}  # uploads that have ended
        self._handles = 0
        self.handlers: dict[type, Callable[[Any], None]] = {
            commands.Connect: self._connect,
            commands.ReloadTls: self._reload_tls,
            commands.SendFile: self._send_file,
            commands.OpenFile: self._open_file,
            commands.ReadFile: self._read_file,
            commands.ReleaseFile: self._release_file,
            commands.CreateBlob: self._create_blob,
            commands.WriteBlob: self._write_blob,
            commands.FinishBlob: self._finish_blob,
            commands.DiscardBlob: self._discard_blob,
            commands.DeleteBlob: self._delete_blob,
            commands.ReadConfig: self._read_config,
            commands.WriteConfig: self._write_config,
            commands.WriteFile: self._write_file,
            commands.AppendFile: self._append_file,
            commands.SweepFolder: self._sweep_folder,
            commands.EnsureSecret: self._ensure_secret,
            commands.Query: self._query,
            commands.Compute: self._compute,
            commands.Spawn: self._spawn,
            commands.Signal: self._signal,
            commands.ResizeTerminal: self._resize,
        }

    @property
    def open_handles(self) -> int:
        """Return the number of open files and uploads, which grows in a core that leaks."""
        return len(self._files) + len(self._blobs)

    def unserved(self, command: commands.Operation[Any]) -> None:
        """Fail an operation that this runtime does not have, as `UNSUPPORTED`."""
        failure = Failure(FailureKind.UNSUPPORTED, f"this runtime has no {type(command).__name__}")
        self._process.post(Failed(command.op, failure))

    def cancel(self, op: OperationId) -> None:
        """Perform `Cancel`: post `Failed` with `CANCELLED`, unless an answer is posted already or comes anyway."""
        pending, give_up = self._pending.get(op), self._give_up.get(op)
        if pending is None and give_up is None:
            return
        if self._world.draw(self._world.faults.late_answer):
            return
        if give_up is not None:
            give_up()
            self._give_up.pop(op, None)
        if pending is not None:
            self._pending.pop(op)
            pending.cancelled = True
            if pending.durable and self._world.rng.random() < 0.5:
                self._durable.remove(pending)  # not begun; otherwise it continues without an answer
        self._process.post(Failed(op, Failure(FailureKind.CANCELLED)))

    def end(self, *, killed: bool) -> None:
        """End the operations with the process; a random number of the first durable ones still take effect.

        A process that exits deletes its unfinished uploads; a killed one leaves them.
        """
        for give_up in list(self._give_up.values()):
            give_up()
        made = sorted(self._durable, key=_when)
        for pending in made[: self._world.rng.randint(0, len(made))] if made else []:
            _attempt(pending.effect)
        self._durable.clear()
        self._pending.clear()
        self._files.clear()
        blobs, self._blobs = self._blobs, {}
        for blob in blobs.values():
            if not killed:
                self._host.disk.remove(blob.path)

    # --- network -------------------------------------------------------------------------------------------------

    def _connect(self, command: commands.Connect) -> None:
        def outcome(result: SimEnd | Failure) -> None:
            del self._give_up[command.op]
            if isinstance(result, Failure):
                self._process.post(Failed(command.op, result))
            else:
                self._process.post(Done(command.op, commands.Connected(result.peer, result.connection.alpn)))
                self._process.adopt(command.ch, result)

        network, target = self._world.network, (command.host, command.port)
        attempt = SimHandshake(network, self._host, target, tls=command.tls, outcome=outcome, alpn=command.alpn)
        self._give_up[command.op] = attempt.cancel

    def _reload_tls(self, command: commands.ReloadTls) -> None:
        def effect() -> commands.TlsReloaded:
            tls_ports, pin = self._process.require_tls, self._host.certificate
            if tls_ports and pin is None:
                raise HostError(FailureKind.TLS, "cannot use the certificate with the key")
            return commands.TlsReloaded((pin or "",) * tls_ports)

        self._begin(command, effect)

    def _send_file(self, command: commands.SendFile) -> None:
        end = self._process.end_of(command.ch)
        if end is None or end.gone:
            self._process.post(Failed(command.op, Failure(FailureKind.CANCELLED, "the channel closed")))
            return
        if isinstance(end, SimChildEnd):
            refusal = Failure(FailureKind.UNSUPPORTED, "no file can be sent to a child process")
            self._process.post(Failed(command.op, refusal))
            return
        node = self._files[command.handle]
        failure = None if isinstance(node, FileNode) else Failure(FailureKind.INVALID, "not a regular file")
        data = bytes(node.data[command.offset : command.offset + command.n]) if isinstance(node, FileNode) else b""
        if failure is None and len(data) < command.n:
            failure = Failure(FailureKind.INVALID, "the file is shorter than what was to be sent")
        if self._world.draw(self._world.faults.file):
            data = data[: self._world.rng.randint(0, len(data))]
            failure = Failure(FailureKind.INTERNAL, "input/output error")

        def over(closed: Failure | None) -> None:
            self._give_up.pop(command.op, None)
            wrong = closed or failure
            self._process.post(Failed(command.op, wrong) if wrong is not None else Done(command.op, command.n))

        item = OutboxFile(len(data), over)
        self._give_up[command.op] = lambda: end.drop_file(item)
        end.send(data, item)

    # --- files ---------------------------------------------------------------------------------------------------

    def _open_file(self, command: commands.OpenFile) -> None:
        def effect() -> commands.OpenedFile:
            real, node = self._host.disk.open(command.path)
            handle = self._new_handle()
            self._files[handle] = node
            if isinstance(node, FileNode):
                return commands.OpenedFile(handle, real, len(node.data), node.modified)
            return commands.OpenedFile(handle, real, 0, 0.0, regular=False)

        self._begin(command, effect)

    def _read_file(self, command: commands.ReadFile) -> None:
        node = self._files[command.handle]

        def effect() -> bytes:
            if command.n > READ_LIMIT:
                raise HostError(FailureKind.TOO_LARGE, f"over {READ_LIMIT} bytes in one read")
            return bytes(as_file(node).data[command.offset : command.offset + command.n])

        self._begin(command, effect)

    def _release_file(self, command: commands.ReleaseFile) -> None:
        del self._files[command.handle]

    def _create_blob(self, command: commands.CreateBlob) -> None:
        def effect() -> int:
            if not SUFFIX.fullmatch(command.suffix):
                raise HostError(FailureKind.INVALID, "suffix of an upload")
            path = f"{self._spool}/{self._world.rng.randbytes(8).hex()}{command.suffix}"
            file = self._host.disk.create(path)
            handle = self._new_handle()
            self._blobs[handle] = _SimBlob(path, file, command.min_free_bytes)
            return handle

        self._begin(command, effect)

    def _write_blob(self, command: commands.WriteBlob) -> None:
        blob = self._blobs.get(command.handle)  # None: crossed with the `Done` of its `FinishBlob`
        self._begin(
            command,
            lambda: self._host.disk.append(_still(blob).file, command.data, spare=_still(blob).spare),
            queue=("blob", command.handle),
        )

    def _finish_blob(self, command: commands.FinishBlob) -> None:
        def effect() -> str:
            blob = self._finished[command.handle] = _still(self._blobs.pop(command.handle, None))
            return blob.path

        self._begin(command, effect, queue=("blob", command.handle))

    def _discard_blob(self, command: commands.DiscardBlob) -> None:
        """Delete an upload, even one that has just ended and whose `Done` is not delivered yet."""
        blob = self._blobs.pop(command.handle, None) or self._finished.pop(command.handle, None)
        if blob is not None:
            self._host.disk.remove(blob.path)

    def _delete_blob(self, command: commands.DeleteBlob) -> None:
        disk, (folder, _, name) = self._host.disk, command.path.rpartition("/")
        try:
            real, _node = disk.resolve(folder)
            spool, _node = disk.resolve(self._spool)
        except HostError:
            return
        if real == spool and name in disk.files(real):
            disk.remove(f"{real}/{name}")

    # --- the state folder ----------------------------------------------------------------------------------------

    def _read_config(self, command: commands.ReadConfig) -> None:
        def effect() -> str:
            try:
                return self._host.disk.get(self._in_state(command.name)).decode("utf-8")
            except UnicodeDecodeError:
                raise HostError(FailureKind.INVALID, "not UTF-8") from None

        self._begin(command, effect, queue=("state", command.name))

    def _write_config(self, command: commands.WriteConfig) -> None:
        def effect() -> None:
            self._host.disk.replace(self._in_state(command.name), command.text.encode("utf-8"))

        self._begin(command, effect, queue=("state", command.name), durable=True)

    def _write_file(self, command: commands.WriteFile) -> None:
        def effect() -> str:
            path = self._in_state(command.name)
            self._host.disk.replace(path, command.data)
            return path

        folder = command.name.rpartition("/")[0]
        self._begin(command, effect, queue=("state", folder or command.name), durable=True)

    def _append_file(self, command: commands.AppendFile) -> None:
        def effect() -> int:
            path, disk = self._in_state(command.name), self._host.disk
            file = disk.regular(path) if disk.exists(path) else disk.create(path)
            size = disk.append(file, command.data)
            file.data[: len(command.head)] = command.head
            return size

        self._begin(command, effect, queue=("state", command.name), durable=True)

    def _sweep_folder(self, command: commands.SweepFolder) -> None:
        def effect() -> int:
            folder, disk = self._in_state(command.name), self._host.disk
            files = disk.files(folder).items()
            old = [name for name, file in files if name.startswith(command.prefix) and file.modified < command.before]
            for name in old:
                disk.remove(f"{folder}/{name}")
            return len(old)

        self._begin(command, effect, queue=("state", command.name), durable=True)

    def _ensure_secret(self, command: commands.EnsureSecret) -> None:
        def effect() -> bytes:
            path = self._in_state(command.name)
            if self._host.disk.exists(path) and len(secret := self._host.disk.get(path)) >= MIN_SECRET:
                return secret
            self._host.disk.replace(path, command.default)
            return command.default

        self._begin(command, effect, queue=("state", command.name), durable=True)

    def _in_state(self, name: str) -> str:
        root = self._host.state
        for room in self._host.rooms:
            if name == room:
                return room
            if name.startswith(f"{room}/"):
                root, name = room, name[len(room) + 1 :]
                break
        if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise HostError(FailureKind.INVALID, "name of a state file")
        return f"{root}/{name}"

    # --- store and work ------------------------------------------------------------------------------------------

    def _query(self, command: commands.Query[Any]) -> None:
        faults = self._world.faults
        self._begin(
            command,
            lambda: self._host.store.apply(command.request),
            queue="store",
            durable=True,
            seconds=self._host.store.seconds,
            fault=faults.store,
        )

    def _compute(self, command: commands.Compute) -> None:
        self._begin(command, lambda: self._host.work(command.name, command.args), seconds=WORK_TIME, fault=0.0)

    # --- children ------------------------------------------------------------------------------------------------

    def _spawn(self, command: commands.Spawn) -> None:
        host = self._host

        def effect() -> commands.Spawned:
            if not command.argv or (command.terminal is not None and command.stderr is not None):
                raise HostError(FailureKind.INVALID, "no program named, or a terminal with an error output")
            if command.cwd is not None and not isinstance(host.disk.resolve(command.cwd)[1], DirectoryNode):
                raise HostError(FailureKind.NOT_FOUND, "not a directory")
            path = host.which(command.argv[0])
            if path is None:
                raise HostError(FailureKind.NOT_FOUND, "no such file or directory")
            if len(host.children) >= MAX_CHILDREN:
                raise HostError(FailureKind.TOO_LARGE, f"over {MAX_CHILDREN} child processes")
            child = SimChild(host, command, host.pid())
            self._process.adopt(command.ch, child.output)
            if child.errors is not None and command.stderr is not None:
                self._process.adopt(command.stderr, child.errors)
            child.start(host.programs[path])
            return commands.Spawned(child.pid)

        self._begin(command, effect, seconds=SPAWN_TIME)

    def _signal(self, command: commands.Signal) -> None:
        end = self._process.end_of(command.ch)
        if isinstance(end, SimChildEnd) and not end.gone:
            end.child.signal(command.signal)

    def _resize(self, command: commands.ResizeTerminal) -> None:
        end = self._process.end_of(command.ch)
        if isinstance(end, SimChildEnd) and not end.gone:
            end.child.resize(command.size)

    # --- helpers -------------------------------------------------------------------------------------------------

    def _begin(
        self,
        command: commands.Operation[Any],
        effect: Callable[[], object],
        *,
        queue: object = None,
        durable: bool = False,
        seconds: float = FILE_TIME,
        fault: float | None = None,
    ) -> None:
        """Schedule `effect` in about `seconds`, after earlier operations of its `queue`; answer with its result.

        A fault delays the effect or makes it fail. A cancelled effect has no answer, and often does not take place.
        """
        world = self._world
        if world.draw(world.faults.file if fault is None else fault):
            effect, durable = _broken, False
        when = world.now + seconds * (0.5 + world.rng.random())
        if world.draw(world.faults.slow):
            when += world.rng.uniform(*SLOW)
        if fault is None:
            when = max(when, self._host.disk.busy_until)
        if queue is not None:
            when = self._queues[queue] = max(when, self._queues.get(queue, 0.0))
        pending = self._pending[command.op] = _Pending(command.op, effect, when, durable)
        if durable:
            self._durable.append(pending)
        world.at(when, lambda: self._complete(pending))

    def _complete(self, pending: _Pending) -> None:
        if not self._process.alive:
            return
        if pending.durable:
            if pending not in self._durable:
                return
            self._durable.remove(pending)
        elif pending.cancelled:
            return
        self._pending.pop(pending.op, None)
        result = _attempt(pending.effect)
        if pending.cancelled:
            return
        if isinstance(result, Failure):
            self._process.post(Failed(pending.op, result))
        else:
            self._process.post(Done(pending.op, result))

    def _new_handle(self) -> int:
        self._handles += 1
        return self._handles


def _attempt(effect: Callable[[], object]) -> object:
    try:
        return effect()
    except AssertionError:
        raise  # an error of the test, not of the effect
    except Exception as error:  # noqa: BLE001, RUF100 - as real runtimes answer: a failed effect is a fact
        return failure_of(error)


def _broken() -> object:
    raise HostError(FailureKind.INTERNAL, "input/output error")


def _still(blob: _SimBlob | None) -> _SimBlob:
    if blob is None:
        raise HostError(FailureKind.INVALID, "no such handle")
    return blob


def _when(pending: _Pending) -> float:
    return pending.when
