"""Command line of the gateway: JSON-RPC lines on standard input and output, requests to the API server."""

import click

from runtimes.cli.runtime_option import runtime_option
from servers.options import HELP, ProgramCommand

__all__ = ["main"]

EXAMPLES = """
\b
Example:
  echo '{"id": 1, "method": "session.list"}' | python -m clients.gateway

The relay starts this program for desktops that chat, unless SVC_TUI_COMMAND names another one.

RELAY_WEBAPI_URL is the address of the API server, and API_SERVER_KEY its key. RELAY_WEBAPI_PIN pins its certificate,
where the certificates of the system do not suffice.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@runtime_option
def main(runtime: str) -> None:
    """Serve JSON-RPC to a desktop on standard input and output, and chat with the API server."""
    import os

    from clients.gateway.program import gateway_program, read_settings
    from servers.launch import launch

    launch(lambda: [gateway_program(read_settings(os.environ))], runtime)


if __name__ == "__main__":
    main()
