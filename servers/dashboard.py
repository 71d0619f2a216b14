"""The dashboard: `python -m servers.dashboard`."""

from __future__ import annotations

import click

from servers.options import HELP, ProgramCommand, dashboard_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers.dashboard                          http://127.0.0.1:9119, for this host only
  SVC_DASHBOARD_PASSWORD=… python -m servers.dashboard --host 0.0.0.0
                                                       for other hosts too, for those who know the password
  SVC_RELAY_PORT=8800 python -m servers.dashboard      watch the relay at that port
  python -m servers.dashboard --no-chat                watch only

\b
The relay and the API that run on the service home are found, wherever they listen; SVC_RELAY_PORT names another
relay. The key for the chat is looked for where the API server itself finds it. SVC_DASHBOARD_NAMES: names by which
browsers may call this host. SVC_DASHBOARD_SSL_CERT, SVC_DASHBOARD_SSL_KEY: serve TLS.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@dashboard_options
def main(runtime: str, *, chat: bool, **options: object) -> None:
    """Run the dashboard: a page to see paired devices, what the agent does with the phone, and to chat with it."""
    from servers.dashboard_program import dashboard_programs
    from servers.launch import launch

    launch(lambda: dashboard_programs(options, chat=chat), runtime)


if __name__ == "__main__":
    main()
