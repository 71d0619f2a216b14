"""Command line of the dashboard: `python -m servers.dashboard`."""

import click

from servers.options import HELP, ProgramCommand, dashboard_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers.dashboard  # http://127.0.0.1:9119, for this host only
  SVC_DASHBOARD_PASSWORD=… python -m servers.dashboard --host 0.0.0.0
  SVC_RELAY_PORT=8800 python -m servers.dashboard  # the relay at that port
  python -m servers.dashboard --no-chat  # without the chat

The dashboard finds the relay and the API of the service home, whatever their addresses; SVC_RELAY_PORT names another
relay. It reads the key for the chat from the same places as the API server.

SVC_DASHBOARD_NAMES lists the host names that browsers may use. SVC_DASHBOARD_SSL_CERT and SVC_DASHBOARD_SSL_KEY enable
TLS.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@dashboard_options
def main(runtime: str, *, chat: bool, **options: object) -> None:
    """Run the dashboard: a page with the paired devices, the agent's actions on the phone, and a chat."""
    from servers.dashboard_program import dashboard_programs
    from servers.launch import launch

    launch(lambda: dashboard_programs(options, chat=chat), runtime)


if __name__ == "__main__":
    main()
