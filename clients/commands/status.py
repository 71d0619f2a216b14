"""`svc-relay status`: show the stored sessions of this desktop, without a connection (wire core 10.6)."""

import time

import click

from clients.commands.cli import SETTINGS, error_reason, json_option, print_json, print_lines
from svc_proto.cli.errors import CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay status
  svc-relay status --json | jq 'keys'
  svc-relay status --json --reveal-tokens  # with the tokens, which are secret
"""


@click.command("status", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--reveal-tokens", is_flag=True, help="Show session tokens.")
@json_option
def main(*, reveal_tokens: bool, as_json: bool) -> None:
    """Show the sessions that are stored here."""
    from clients.commands.host_settings import service_home
    from clients.commands.session_file import SessionFile
    from svc_proto.cli.desktop_output import status_lines
    from svc_proto.cli.session_store import parse_sessions, status_json

    file = SessionFile(service_home())
    try:
        sessions = parse_sessions(file.read())
    except OSError as error:
        raise CliError(f"{file.path} cannot be read: {error_reason(error)}") from None
    if as_json:
        print_json(status_json(sessions, reveal=reveal_tokens))
    else:
        print_lines(status_lines(sessions, time.time(), reveal=reveal_tokens))
