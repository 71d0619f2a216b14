"""A relay as several processes on one host: the supervisor, and the worker.

They share a home, a port and a Redis: see docs/howto/cluster.md. The supervisor claims the home, publishes the relay's
address, runs the workers, and accepts no connections.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from attrs import evolve

from runtimes.host.host import Program, Services
from runtimes.host.logs import relay_log_line, setup_logging
from runtimes.net.listener import BindError, bind
from runtimes.net.reuseport_bpf import attach_source_steering
from servers import launch
from servers.relay_program import announce_relay, relay_program
from servers.supervision import inherited_address
from svc_proto.cli.worker_supervisor import TERM_TIMEOUT, ParentWatch, WorkerSpec, WorkerSupervisor
from svc_proto.commands import Exit
from svc_proto.engine.core import Engine
from svc_proto.relay_config import RelayConfig

__all__ = ["WORKER_VARIABLE", "supervisor_program", "worker_command", "worker_programs"]

# variable of a worker: "first" for the worker that initializes the home, otherwise "next"
WORKER_VARIABLE = "RELAY_WORKER"
INSIDE = "RELAY_WORKER_INSIDE"  # variable of a worker: port of the listener for programs of this host, if any
READY_LINE = "the worker is ready"
REDIS = ("redis-server", "valkey-server")
# Runs a program in a folder of its own until its input ends. A TERM reaches the whole process group, and ends only the
# first `wait`.
REDIS_WRAPPER_SCRIPT = """
mkdir -m 700 "$0" 2>/dev/null || [ -O "$0" ] || exit 1
exec 3<&0
"$@" & child=$!
(read -r _ <&3; kill $child) 2>/dev/null & watch=$!
trap : TERM
wait $child; code=$?
wait $child
kill $watch 2>/dev/null
wait $watch
rm -f "$0/redis.sock"
rmdir "$0"
exit $code
"""
NO_REDIS = (
    "several workers need a Redis or Valkey between them: install redis-server or valkey-server, "
    "or name one that runs with SVC_CLUSTER_URL"
)


def supervisor_program(config: RelayConfig, options: Mapping[str, object], runtime: str) -> Program:
    """Build the supervisor of the workers. Raises `CannotStartError`: code 1 for TLS files, else 2."""
    redis = None if config.cluster is not None else next(filter(None, map(shutil.which, REDIS)), None)
    if config.cluster is None and redis is None:
        raise launch.CannotStartError(NO_REDIS, code=2)
    if inherited_address(os.environ, "relay"):
        raise launch.CannotStartError("several workers cannot share the socket that a supervisor has opened", code=2)
    logger = setup_logging(int(config.log_level), as_json=config.log_json)
    warn_of_costs(logger, config.workers, os.cpu_count())
    with ExitStack() as undo:
        home = launch.private_home(config.home)
        claim = launch.claim_home(home, "relay")
        undo.callback(claim.release)
        listener = launch.bind_server(config, "relay", shared=True, listen=False)
        undo.callback(listener.sock.close)
        inner = launch.open_inner_listener(listener, shared=True, listen=False)
        undo.pop_all()
    env = [(INSIDE, "" if inner is None else str(inner.address.port)), ("NOTIFY_SOCKET", "")]
    folder = Path(tempfile.mkdtemp(prefix="svc-redis-"))
    needed = None
    if redis is not None:
        needed = _redis_job(redis, folder)
        env.append(("SVC_CLUSTER_URL", f"unix://{quote(str(folder / 'redis.sock'))}"))
    argv = worker_command({**options, "port": listener.address.port, "runtime": runtime})
    jobs = [
        WorkerSpec(
            name=f"worker {n + 1}",
            argv=argv,
            env=(*env, (WORKER_VARIABLE, "next")),
            first=() if n else ((WORKER_VARIABLE, "first"),),
            ready=READY_LINE,
        )
        for n in range(config.workers)
    ]
    bound = evolve(config, port=listener.address.port)

    def ready() -> None:
        launch.publish_running_server(claim, config, listener, inner, brand=config.brand.name, workers=config.workers)
        announce_relay(bound)

    def over(outcome: Exit) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        launch.print_exit_reason(outcome)

    return Program(
        core=Engine(WorkerSupervisor(needed, jobs), entropy=os.urandom, log_level=config.log_level),
        reserved=[listener] if inner is None else [listener, inner],
        services=Services(logger=logger),
        on_ready=ready,
        on_exit=over,
        on_notify=lambda news: relay_log_line(logger, str(news.fields["text"])),
        claim=claim,
        patience=2 * TERM_TIMEOUT + 1.0,
    )


def warn_of_costs(logger: logging.Logger, workers: int, processors: int | None) -> None:
    """Log a warning if there are more workers than processors; None: the number of processors is unknown."""
    if processors is not None and workers > processors:
        logger.warning("more workers than processors make commands slower: docs/explanation/cluster-design.md")


def worker_programs(config: RelayConfig) -> list[Program]:
    """Build a worker's relay, and the program that ends it with its supervisor. Raises `CannotStartError`."""
    first, inside = os.environ[WORKER_VARIABLE] == "first", os.environ[INSIDE]
    config = evolve(config, shares_home=True, begins=first)
    listener = launch.bind_server(config, "relay", shared=True)
    try:
        inner = bind("127.0.0.1", int(inside), shared=True) if inside else None
        own = bind("127.0.0.1", 0)  # here the other workers fetch the files registered with this one
    except BindError as error:
        raise launch.CannotStartError(str(error), code=2) from error
    config = evolve(
        config, node_url=config.node_url or f"http://{launch.format_authority('127.0.0.1', own.address.port)}"
    )
    relay = relay_program(config, listener=listener, inner=inner, on_ready=lambda bound: print(READY_LINE, flush=True))
    for listener in relay.listeners:
        if not attach_source_steering(listener.sock, config.workers) and first:
            relay.services.logger.warning("connections are spread over the workers at random: docs/howto/cluster.md")
    relay = evolve(relay, listeners=[*relay.listeners, own])
    return [relay, Program(core=Engine(ParentWatch(), entropy=os.urandom), stdio=True)]


def worker_command(options: Mapping[str, object]) -> tuple[str, ...]:
    """Return the command that starts a relay with these parsed options; those that are None are left out."""
    words = [sys.executable, "-P", "-m", "servers.relay"]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [] if value is None else [flag] if value is True else [flag, str(value)]
    return tuple(words)


def _redis_job(program: str, folder: Path) -> WorkerSpec:
    """Return the process specification of a Redis without persistence, whose socket only this user may open."""
    settings = {
        "port": "0", "unixsocket": str(folder / "redis.sock"), "unixsocketperm": "600", "dir": str(folder), "save": "",
        "appendonly": "no", "daemonize": "no", "logfile": "",
    }  # fmt: skip
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return WorkerSpec(
        name="redis", argv=("/bin/sh", "-c", REDIS_WRAPPER_SCRIPT, str(folder), program, *words), ready="eady to accept"
    )
