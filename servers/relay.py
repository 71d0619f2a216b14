"""Command line of the relay server: `python -m servers.relay`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from servers.options import HELP, ProgramCommand, relay_options, workers_option

if TYPE_CHECKING:
    from runtimes.host.host import Program

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers.relay  # listen on 0.0.0.0:8767
  python -m servers.relay --host 127.0.0.1 --port 0  # free port, this host only
  python -m servers.relay --runtime curio  # on another event loop
  python -m servers.relay --workers 4  # four processes
  RELAY_SSL_CERT=cert.pem RELAY_SSL_KEY=key.pem python -m servers.relay
  SVC_BRAND=hermes python -m servers.relay  # names for clients that are not recognized

Every option has an environment variable (RELAY_HOST, RELAY_PORT, …); the option wins. Variables may also stand in
~/.svc/.env; the environment wins over the file. State is kept in ~/.svc, or SVC_HOME.

SIGHUP loads certificate and key again, for new connections.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@relay_options
@workers_option
def main(runtime: str, **options: object) -> None:
    """Run the relay: pairing, sessions and the bridge to phones, over HTTP and WebSocket on one port."""
    import os

    from servers.launch import launch
    from servers.relay_program import read_relay_config, relay_program

    def programs() -> list[Program]:
        config = read_relay_config(os.environ, options)
        if "RELAY_WORKER" in os.environ:
            from servers.relay_workers import worker_programs

            return worker_programs(config)
        if config.workers > 1:
            from servers.relay_workers import supervisor_program

            return [supervisor_program(config, options, runtime)]
        return [relay_program(config)]

    launch(programs, runtime)


if __name__ == "__main__":
    main()
