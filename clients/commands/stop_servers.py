"""`svc down` and `svc drain`: stop the servers of this host's home, `drain` only if other nodes remain."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, error_reason
from clients.commands.quick_probe import nodes_at, probe_json
from runtimes.service_home.home import service_home_path
from runtimes.service_home.server_registry import RunningServer, find_running_servers, is_held
from svc_proto.cli.errors import CliError

if TYPE_CHECKING:
    from svc_proto.cli.cluster_nodes import ServiceNodes

__all__ = ["down", "drain"]

DOWN = """
\b
Examples:
  svc down  # as Ctrl-C: running requests are answered first
  svc down && svc up

Exit codes: 0, also when nothing runs; 1 when the servers do not stop; 2 for bad options.
"""
DRAIN = """
The node takes no new work. It answers what it has accepted, and its phones reconnect to the other nodes, a few at a
time. SIGTERM and svc down do the same, but also where no other node would take the phones.

\b
Examples:
  svc drain  # before an update of this host, when others stay
  svc drain && svc up  # restart one node after another

Exit codes: 0, also when nothing runs; 1 when no other node is reachable, neither relay nor API runs, or the servers do
not stop; 2 for bad options.
"""
STOP_TIMEOUT = 30.0  # s; servers give requests in progress 10
POLL = 0.05  # s between two checks
NO_OTHERS = "no other node is reachable, so the {0} cannot be drained: svc down stops it"
NO_WORK = "no relay and no API runs here, so there is nothing to drain: svc down stops the {0}"


@click.command("down", epilog=DOWN, context_settings=SETTINGS)
def down() -> None:
    """Stop the servers that run on this host's service home, and the simulated phone."""
    home = service_home_path(os.environ)
    found = find_running_servers(home)
    if not found:
        print(f"Nothing runs on {home}.")
        return
    _stop(found, home)
    print(f"Stopped: {', '.join(one.role for one in found)}.")


@click.command("drain", epilog=DRAIN, context_settings=SETTINGS)
def drain() -> None:
    """Move the phones and turns of this host to the other nodes of the service, then stop its servers."""
    home = service_home_path(os.environ)
    found = find_running_servers(home)
    if not found:
        print(f"Nothing runs on {home}.")
        return
    plans: list[str] = []
    for one in found:
        if one.role in ("relay", "api"):
            service = nodes_at(one.inside, home)
            if service is None or not service.redis or len(service.nodes) <= one.workers:
                raise CliError(NO_OTHERS.format(one.role))
            plans.append(_plan(one, service, home))
    if not plans:
        raise CliError(NO_WORK.format(found[0].role))
    print("\n".join(plans))
    began = time.monotonic()
    _stop(found, home)
    print(f"Drained: {', '.join(one.role for one in found)}, in {time.monotonic() - began:.1f} s.")


def _plan(one: RunningServer, service: ServiceNodes, home: Path) -> str:
    """Return a line with the number of other nodes that take a server's work, and of a relay's clients if known."""
    others = len(service.nodes) - one.workers
    nodes = f"{others} other node{'' if others == 1 else 's'}"
    health = probe_json(one.inside, "/health", home) if one.role == "relay" else None
    clients = None if health is None else health.integer("clients")
    if clients is None:
        return f"The {one.role} leaves its work to {nodes}."
    return f"The relay moves {clients} client{'' if clients == 1 else 's'} to {nodes}."


def _stop(found: list[RunningServer], home: Path) -> None:
    """Send SIGTERM to the servers, and wait until they have released the home.

    Raises `CliError` if a signal cannot be sent, or a server still runs after `STOP_TIMEOUT` seconds.
    """
    for pid in sorted({one.pid for one in found}):
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError as error:
            raise CliError(f"process {pid} cannot be told to stop: {error_reason(error)}") from None
    until = time.monotonic() + STOP_TIMEOUT
    while left := [one for one in found if is_held(home, one.role)]:
        if time.monotonic() > until:
            raise CliError(f"the {left[0].role} (process {left[0].pid}) has not stopped within {STOP_TIMEOUT:.0f} s")
        time.sleep(POLL)
