"""`svc top`: show rates and load of this host's servers, live or once.

The values are chosen in `svc_proto.service_clients.server_stats`.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines, print_table
from clients.commands.quick_probe import metrics_headers
from runtimes.service_home.home import service_home_path
from svc_proto.cli.errors import CliError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from runtimes.service_home.server_registry import RunningServer
    from svc_proto.cli.cluster_nodes import ServiceNodes
    from svc_proto.service_clients.server_stats import MetricsReading, ServerStats, StatsHistory

    Wait = Callable[[float], bool]

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc top  # until q or Ctrl-C
  svc top --every 1
  svc top --once  # one table, for a mail or a ticket
  svc top --json | jq .memory  # bytes; rates are per second
  SVC_HOME=/srv/svc svc top  # of another service home

Rates are computed between two samples, --every seconds apart. The values come from /metrics, see
docs/reference/metrics.md; if SVC_METRICS_TOKEN is set, it is sent. The tab Load of the dashboard shows the last hour.

Exit codes: 0; 1 when nothing runs, or it has no metrics; 2 for bad options; 130 after Ctrl-C.
"""
MAX_READINGS = 120  # kept for the bars
ROLES = ("relay", "api", "dashboard")
BESIDE_BARS = 56  # columns left of the bars
LEAST_BARS = 8


@click.command("top", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option(
    "--every", type=click.FloatRange(0.1, 60), default=2.0, show_default=True, help="Seconds between two samples."
)
@click.option("--once", is_flag=True, help="Print one table and exit; the default without a terminal.")
@json_option
def main(*, every: float, once: bool, as_json: bool) -> None:
    """Show live phones, turns, commands, rates, memory and loop lag of the servers on this host."""
    from svc_proto.service_clients.server_stats import StatsHistory

    eyes = _StatsPoller(service_home_path(os.environ))
    history = StatsHistory(every=every, span=every * MAX_READINGS)
    history.add(eyes.poll(needed=True))
    if once or as_json or not sys.stdout.isatty():
        time.sleep(every)
        _print(history.add(eyes.poll(needed=True)), eyes, as_json=as_json)
    else:
        _follow(eyes, history, every)


class _StatsPoller:
    """Poller of the metrics of the servers of one service home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._fields = metrics_headers()
        self.found: list[RunningServer] = []
        self.services: dict[str, ServiceNodes] = {}  # by role of the server that lists them

    def poll(self, *, needed: bool = False) -> MetricsReading:
        """Return the present metrics. With `needed`, raises `CliError` where there are none."""
        from clients.commands.quick_probe import probe
        from runtimes.service_home.server_registry import find_running_servers
        from svc_proto.basics.moment import Moment
        from svc_proto.cli.cluster_nodes import parse_nodes
        from svc_proto.cli.top_view import explain_missing
        from svc_proto.schema.openmetrics import MetricSamples
        from svc_proto.service_clients.server_stats import MetricsReading

        now = Moment(time.monotonic(), time.time())
        self.found = [one for one in find_running_servers(self._home) if one.role in ROLES]
        answers = {one.role: probe(one.inside, "/metrics", self._home, *self._fields) for one in self.found}
        servers = {
            role: MetricSamples(body.decode("utf-8", "replace"))
            for role, (status, body) in answers.items()
            if status == 200 and body.endswith(b"# EOF\n")  # complete: a truncated counter would look like a restart
        }
        if needed and not servers:
            if not answers:
                raise CliError(f"nothing runs on {self._home}: svc up")
            raise CliError(explain_missing((role, status) for role, (status, _) in answers.items()))
        said = {role: parse_nodes(numbers) for role, numbers in servers.items()}
        self.services = {role: service for role, service in said.items() if service is not None}
        return MetricsReading(now, servers)

    def nodes(self, now: ServerStats) -> list[str]:
        """Return lines on the nodes of the clustered services that the last `poll` found."""
        return [line for role, service in self.services.items() for line in service.lines(role, now.at)]


def _print(now: ServerStats, eyes: _StatsPoller, *, as_json: bool) -> None:
    from svc_proto.cli.top_view import COLUMNS, once_rows
    from svc_proto.service_clients.server_stats import NAMES

    if as_json:
        numbers = dict(zip(NAMES, now.numbers(), strict=True))
        services = {role: service.members() for role, service in eyes.services.items()}
        print_json({"servers": [one.role for one in eyes.found], **numbers, "services": services})
    else:
        print_table(COLUMNS, once_rows(now))
        print_lines(eyes.nodes(now))


def _follow(eyes: _StatsPoller, history: StatsHistory, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with _keys() as leaves, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now = history.add(eyes.poll())
            live.update(_page(eyes, history, now, console.width, every), refresh=True)
            if leaves(every):
                return


def _page(eyes: _StatsPoller, history: StatsHistory, now: ServerStats, width: int, every: float) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from svc_proto.basics.duration_text import short_duration
    from svc_proto.cli.top_view import HEADS, stats_rows

    up = [f"{HEADS[one.role]} up {short_duration(now.at - one.since)}" for one in eyes.found]
    table = Table.grid(padding=(0, 2))
    for style in ("bold", "bold cyan", "", "cyan"):
        table.add_column(style=style, no_wrap=True, overflow="ellipsis")
    room = width - BESIDE_BARS
    for row in stats_rows(history, now, max(room, LEAST_BARS)):
        table.add_row(row.title, row.value, row.beside, *([row.bars] if room >= LEAST_BARS else []))
    head = Text(", ".join(up) or "nothing runs", style="" if up else "bold red", no_wrap=True, overflow="ellipsis")
    nodes = [Text(line, no_wrap=True, overflow="ellipsis") for line in eyes.nodes(now)]
    foot = Text(f"every {every:g} s; q leaves", style="dim")
    return Group(head, "", table, *([Text(), *nodes] if nodes else []), "", foot)


@contextmanager
def _keys() -> Iterator[Wait]:
    """Yield a function that waits some seconds, and returns True if q is pressed or standard input ends meanwhile.

    Without a terminal, the function only waits and returns False.
    """
    import select

    if not sys.stdin.isatty():
        yield _sleeps
        return
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def leaves(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                pressed = os.read(fd, 1024)
                if not pressed or b"q" in pressed.lower():
                    return True
        return False

    try:
        tty.setcbreak(fd)
        yield leaves
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _sleeps(seconds: float) -> bool:
    """Sleep without reading keys, and return False."""
    time.sleep(seconds)
    return False
