"""`python -m bench`: run the benchmarks and print their tables."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import click
from attrs import evolve
from rich.console import Console

from bench.measure import FULL, QUICK, BenchError, Progress, Scale
from bench.report import Table, show, write_json

__all__ = ["main"]

WIDTH = 110  # columns at least, so that no figure is cut without a terminal

EXAMPLES = """
\b
Examples:
  python -m bench                                everything, about twenty minutes
  python -m bench --quick                        everything, roughly: about four minutes
  python -m bench --section core                 only what needs no socket
  python -m bench --section sockets --seconds 20 longer under load, for quieter figures
  python -m bench --json figures.json            the same figures for a program

\b
Compare figures of one run only: within it contestants take turns. Close what else runs.
docs/reference/performance.md says what each figure means.
"""

Section = Callable[[Scale, Progress], list[Table]]


def _core() -> Section:
    from bench.core import core_section

    return core_section


def _sockets() -> Section:
    from bench.sockets import sockets_section

    return sockets_section


def _http2() -> Section:
    from bench.http2 import http2_section

    return http2_section


def _websocket() -> Section:
    from bench.websocket import websocket_section

    return websocket_section


def _terminal() -> Section:
    from bench.terminal import terminal_section

    return terminal_section


def _media() -> Section:
    from bench.media import media_section

    return media_section


def _api() -> Section:
    from bench.api import api_section

    return api_section


def _mcp() -> Section:
    from bench.mcp import mcp_section

    return mcp_section


def _pairings() -> Section:
    from bench.pairings import pairings_section

    return pairings_section


def _nodes() -> Section:
    from bench.nodes import nodes_section

    return nodes_section


def _starts() -> Section:
    from bench.starts import starts_section

    return starts_section


def _memory() -> Section:
    from bench.memory import memory_section

    return memory_section


def _voice() -> Section:
    from bench.voice import voice_section

    return voice_section


def _words() -> Section:
    from bench.words import words_section

    return words_section


def _tokens() -> Section:
    from bench.tokens import tokens_section

    return tokens_section


def _simulation() -> Section:
    from bench.simulation import simulation_section

    return simulation_section


# Loaded when they run, so that the imports of one section cost the others no memory or time.
SECTIONS: dict[str, Callable[[], Section]] = {
    "core": _core,
    "sockets": _sockets,
    "http2": _http2,
    "websocket": _websocket,
    "terminal": _terminal,
    "media": _media,
    "api": _api,
    "mcp": _mcp,
    "pairings": _pairings,
    "nodes": _nodes,
    "starts": _starts,
    "memory": _memory,
    "simulation": _simulation,
    "tokens": _tokens,
    "voice": _voice,
    "words": _words,
}


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--section", "sections", multiple=True, type=click.Choice(list(SECTIONS)), help="Run only this section; repeatable."
)
@click.option("--seconds", type=click.FloatRange(0.1, 600), help="Seconds of load for each server.  [6; quick: 1]")
@click.option("--json", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
@click.option("--quick", is_flag=True, help="Run fewer rounds: a check that it runs, no comparison.")
def main(sections: tuple[str, ...], seconds: float | None, path: Path | None, quick: bool) -> None:
    """Run the benchmarks of all sections, or of the chosen ones, and print their tables.

    Comparable servers and libraries run beside this project in many of them.
    """
    scale = QUICK if quick else FULL
    if seconds is not None:
        scale = evolve(scale, seconds=seconds)
    machine = _machine()
    console, progress = Console(width=max(Console().width, WIDTH)), Progress()
    console.print(f"{machine['cores']} cores, Python {machine['python']}, {machine['system']}", highlight=False)
    tables: list[Table] = []
    try:
        for name in dict.fromkeys(sections or SECTIONS):
            for table in SECTIONS[name]()(scale, progress):
                show(table, console)
                tables.append(table)
        if path is not None:
            write_json(tables, machine, path)
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "python": f"{platform.python_version()}, {_build()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def _build() -> str:
    """Return how the interpreter was built, which changes the figures by up to a quarter."""
    options = str(sysconfig.get_config_var("CONFIG_ARGS"))
    if "--enable-optimizations" in options:
        return "built with profile-guided optimisation" + (" and LTO" if "--with-lto" in options else "")
    return "built without profile-guided optimisation"


if __name__ == "__main__":
    main()
