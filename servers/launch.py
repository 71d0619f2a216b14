"""Start-up that the servers and other long-running programs share: private home, opened resources, exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from attrs import evolve

from runtimes.files.installed_version import installed_version
from runtimes.files.private_files import ensure_private_folder
from runtimes.host.exit_process import exit_process
from runtimes.host.logs import LogMessage
from runtimes.net.listener import BindError, Listener, adopt_listener, bind
from runtimes.run import run
from runtimes.service_home.home import EnvFileError, with_env_file
from runtimes.service_home.log_file import add_log_file
from runtimes.service_home.server_registry import HomeClaim, HomeInUseError, lock_home
from runtimes.store.store_factory import configured_store, open_store
from runtimes.store.store_service import Store, StoreError
from runtimes.tls.contexts import ServerContext, TlsFileError, context_for_certificates, server_context
from servers.garbage_collection import GarbageCollection
from servers.options import INTERRUPTED, exit_with_error
from servers.supervision import inherited_socket, readiness_programs
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.basics.variable_names import find_unknown_variables, unknown_variable_text
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES

if TYPE_CHECKING:
    import ssl

    from runtimes.host.host import Program
    from runtimes.loops.waker import HostHandle
    from svc_proto.api.config import ApiConfig
    from svc_proto.commands import Exit
    from svc_proto.dashboard.config import DashboardConfig
    from svc_proto.relay_config import RelayConfig

__all__ = [
    "CannotStartError",
    "format_authority",
    "bind_server",
    "claim_home",
    "open_inner_listener",
    "inner_url",
    "set_malloc_trim_threshold",
    "launch",
    "open_home_store",
    "open_resources",
    "private_home",
    "print_exit_reason",
    "read_environment",
    "publish_running_server",
    "trust_certificates",
]

OTHER_HOME = "SVC_HOME names another folder"
MALLOC_KEEP_BYTES = 512 * 1024  # bytes; twice as many freed bytes stay with the process


class CannotStartError(Exception):
    """A program cannot start: one line for the person that started it, and the exit code."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def private_home(path: str) -> Path:
    """Return the folder for state, created with mode 0700 if missing.

    Raises `CannotStartError` if it cannot be used, or another user could change it.
    """
    home = Path(path).expanduser().absolute()
    if home.exists() and not home.is_dir():
        raise CannotStartError(f"cannot use {home} for state: not a folder; {OTHER_HOME}", code=2)
    try:
        ensure_private_folder(home)
    except OSError as error:
        raise CannotStartError(f"cannot use {home} for state: {error.strerror}; {OTHER_HOME}", code=2) from error
    problem = _foreign_access(home)
    if problem:
        raise CannotStartError(f"cannot use {home} for state: {problem}", code=2)
    if not os.access(home, os.W_OK | os.X_OK):
        raise CannotStartError(f"cannot use {home} for state: not writable; {OTHER_HOME}", code=2)
    return home


def _foreign_access(home: Path) -> str:
    """Return how another user could change the home; empty if none could. Its settings name programs that we run."""
    status = home.stat()
    if status.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user, who could change the settings; use a folder of your own (SVC_HOME)"
    if status.st_mode & 0o022:
        return "other users can write to it; remove that with chmod go-w"
    return ""


def read_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with `.env` of the service home added. Raises `CannotStartError` if that is unreadable."""
    try:
        return with_env_file(env)
    except EnvFileError as error:
        raise CannotStartError(str(error), code=2) from error


def claim_home(home: Path, role: str) -> HomeClaim:
    """Claim the home for a server. Raises `CannotStartError` if such a server runs already, or the home is unusable."""
    try:
        return lock_home(home, role, version=installed_version())
    except HomeInUseError as error:
        who = "" if error.pid is None else f" (process {error.pid})"
        text = f"the {role} of {home} runs already{who}: see svc status, or name another folder with SVC_HOME"
        raise CannotStartError(text, code=2) from error
    except OSError as error:
        raise CannotStartError(f"cannot use {home} for state: {error.strerror}", code=2) from error


class ServerResources(NamedTuple):
    """Resources of a server: its home and the claim of the home, its listeners, and the store."""

    home: Path
    claim: HomeClaim | None  # None: another process holds the claim
    listener: Listener
    inner: Listener | None  # for programs on this host
    store: Store

    @property
    def listeners(self) -> list[Listener]:
        """Return all listeners of the server."""
        return [self.listener] if self.inner is None else [self.listener, self.inner]


def open_resources(
    config: RelayConfig | ApiConfig,
    role: str,
    open_listener: Callable[[], Listener],
    *,
    claimed: HomeClaim | None,
    listener: Listener | None,
    inner: Listener | None,
    store: Store | None,
    claims: bool = True,
) -> ServerResources:
    """Open the resources that were not given. Raises `CannotStartError`.

    After any failure the listeners are closed and, with `claims`, the claim is released, also given ones.
    """
    with ExitStack() as undo:
        if claims and claimed is not None:
            undo.callback(claimed.release)
        for given in (listener, inner):
            if given is not None:
                undo.callback(given.sock.close)
        home = private_home(config.home)
        if claims and claimed is None:
            claimed = claim_home(home, role)
            undo.callback(claimed.release)
        if listener is None:
            listener = open_listener()
            undo.callback(listener.sock.close)
            inner = open_inner_listener(listener)
            if inner is not None:
                undo.callback(inner.sock.close)
        place = ServerResources(home, claimed, listener, inner, store or open_home_store(home))
        undo.pop_all()
    return place


def open_inner_listener(listener: Listener, *, shared: bool = False, listen: bool = True) -> Listener | None:
    """Open a plain loopback listener where local programs need one; None if `listener` serves them."""
    if listener.tls is None and _here(listener) in LOOPBACK:
        return None
    return bind("127.0.0.1", 0, shared=shared, listen=listen)


def inner_url(listener: Listener) -> str:
    """Return the plain HTTP URL of a listener for programs on this host."""
    return f"http://{format_authority(_here(listener), listener.address.port)}"


def publish_running_server(
    claimed: HomeClaim | None,
    config: RelayConfig | ApiConfig | DashboardConfig,
    listener: Listener,
    inner: Listener | None = None,
    **more: str | int,
) -> None:
    """Publish the address of a server that accepts connections, see `RunningServer`; do nothing without a claim."""
    if claimed is None:
        return
    tls = {"certificate": config.ssl_cert, "certificate_key": config.ssl_key, "root_path": config.root_path}
    where = {"host": config.host, "port": listener.address.port, "inside": inner_url(inner or listener)}
    claimed.publish({**where, **tls, **more})


def open_home_store(home: Path) -> Store:
    """Open the store of this home, see `configured_store`. Raises `CannotStartError`."""
    try:
        return open_store(configured_store(os.environ, read_environment(os.environ), home))
    except StoreError as error:
        raise CannotStartError(str(error), code=2) from error


def bind_server(
    config: RelayConfig | ApiConfig | DashboardConfig, role: str, *, shared: bool = False, listen: bool = True
) -> Listener:
    """Bind a server's address, or adopt a supervisor's socket; see `bind`.

    Raises `CannotStartError`: code 1 for TLS files, else 2.
    """
    tls = _certificate(config.ssl_cert, config.ssl_key)
    whose = "" if role == "relay" else f"{role}: "
    try:
        given = inherited_socket(os.environ, role)
        if given is not None:
            return adopt_listener(given, tls=tls)
        return bind(config.host, config.port, tls=tls, shared=shared, listen=listen)
    except OSError as error:
        text = f"{whose}the socket that was opened for it cannot be used: {error.strerror}"
        raise CannotStartError(text, code=2) from error
    except BindError as error:
        taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
        option = "--port" if role == "relay" else f"--port (of svc up: --{role}-port)"
        hint = f"; svc status shows what runs here, {option} names another" if taken else ""
        raise CannotStartError(f"{whose}{error}{hint}", code=2) from error


def trust_certificates(*certificates: str) -> ssl.SSLContext:
    """Build a client context that trusts the given certificates of this host's servers, whatever their issuer.

    It does not check host names. Raises `CannotStartError`, code 1.
    """
    try:
        return context_for_certificates(*certificates)
    except TlsFileError as error:
        raise CannotStartError(f"cannot use a certificate of this host: {error}", code=1) from error


def format_authority(host: str, port: int) -> str:
    """Return `host:port` for a URL, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _collect_garbage(collection: GarbageCollection, on_ready: Callable[[], None] | None) -> None:
    """Call `on_ready`, then start garbage collection for all but the present objects, most of which are permanent."""
    if on_ready is not None:
        on_ready()
    collection.start()


def launch(programs: Callable[[], Sequence[Program]], runtime: str, *, handle: HostHandle | None = None) -> NoReturn:
    """Open the programs, run them, close their resources, and exit the process with their exit code.

    A `CannotStartError` exits with its text and code.
    """
    opened: Sequence[Program] = ()
    log: logging.Handler | None = None
    try:
        collection = GarbageCollection()
        opened = [evolve(each, on_ready=partial(_collect_garbage, collection, each.on_ready)) for each in programs()]
        log = _keep_log(opened)
        _log_version(opened)
        _report_unknown_variables(opened)
        set_malloc_trim_threshold()
        code = run([*opened, *readiness_programs(opened, inner_url, os.environ)], runtime, handle=handle)
    except CannotStartError as error:
        exit_with_error(str(error), error.code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        if log is not None:
            log.close()
        for program in opened:
            for listener in program.all_listeners:
                listener.sock.close()
            if program.services.store is not None:
                program.services.store.close()
            if program.claim is not None:
                program.claim.release()
    exit_process(code)


def _log_version(programs: Sequence[Program]) -> None:
    """Log the version, once for all servers of this process, if one of them has claimed its home."""
    servers = [program for program in programs if program.claim is not None]
    if servers and servers[0].services.logger is not None:
        servers[0].services.logger.info(LogMessage("starting", {"version": installed_version()}))


def set_malloc_trim_threshold() -> None:
    """Make glibc keep about 1 MiB of freed memory for reuse, by freeing one block of half that size.

    glibc returns free memory at the end of its heap from 128 KiB on. A few pieces of 64 KiB in transit exceed that, and
    each following piece pays for new pages. glibc derives the threshold from the largest freed mapping, mallopt(3).
    """
    bytes(MALLOC_KEEP_BYTES)


def print_exit_reason(outcome: Exit) -> None:
    """Print why a core failed, if it did (for `Program.on_exit`)."""
    if outcome.code and outcome.reason:
        print(f"error: {outcome.reason}", file=sys.stderr, flush=True)


def _certificate(cert: str | None, key: str | None) -> ServerContext | None:
    """Load a server's certificate; return None to serve without TLS. Raises `CannotStartError`, code 1."""
    if cert is None:
        return None
    try:
        return server_context(cert, key)
    except TlsFileError as error:
        raise CannotStartError(str(error), code=1) from error


def _keep_log(programs: Sequence[Program]) -> logging.Handler | None:
    """Add a log file, for `svc logs`, to the logger of the first program that has claimed a home.

    Return its handler, or None without such a program or file. With a file and a terminal, only errors are printed
    from then on, unless the level is DEBUG.
    """
    for program in programs:
        if program.claim is not None:
            logger = program.services.logger
            kept = add_log_file(logger, program.claim.home, program.claim.role)
            if kept is not None and sys.stderr.isatty() and logger.level > logging.DEBUG:
                logger.handlers[0].setLevel(logging.ERROR)  # a person reads the rest with svc logs
            return kept
    return None


def _report_unknown_variables(programs: Sequence[Program]) -> None:
    """Log the names in the environment and `.env` that no setting has; in a worker of a relay, do nothing."""
    if not programs or "RELAY_WORKER" in os.environ:
        return
    for name, nearest in find_unknown_variables(read_environment(os.environ)).items():
        problem = unknown_variable_text(sanitize_line(name), nearest)
        programs[0].services.logger.warning(LogMessage("variable not used", {"problem": problem}))


def _here(listener: Listener) -> str:
    return WILDCARD_ADDRESSES.get(listener.address.host, listener.address.host)
