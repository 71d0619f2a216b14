"""Demonstration of the main functions in one command: `python -m clients.demo`, which `make demo` runs."""

import click

from runtimes.cli.runtime_option import runtime_option
from servers.options import HELP, ProgramCommand

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m clients.demo  # same as make demo
  python -m clients.demo --runtime curio  # on another event loop
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@runtime_option
def main(runtime: str) -> None:
    """Start a relay and an API on free ports, pair the reference phone, and control it by requests and by a chat."""
    import tempfile
    from pathlib import Path

    from clients.demo_program import demo_programs
    from runtimes.loops.waker import HostHandle
    from servers.launch import launch

    handle = HostHandle()
    with tempfile.TemporaryDirectory(prefix="svc-demo-") as home:
        launch(lambda: demo_programs(Path(home), handle), runtime, handle=handle)


if __name__ == "__main__":
    main()
