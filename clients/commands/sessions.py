"""`svc-relay sessions`: list or end the terminal sessions on the relay's host."""

import time

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_table
from clients.commands.desktop_options import relay_selection, run_on_session, session_options
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay sessions
  svc-relay sessions --json
  svc-relay shell --session work  # attach to a session
  svc-relay sessions kill work  # end a session and its programs

The relay is that of --remote or SVC_RELAY_URL, else the only stored one.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for bad options.
"""
KILLING = """
\b
Example:
  svc-relay sessions kill work  # the NAME of svc-relay sessions
"""


@click.group("sessions", invoke_without_command=True, epilog=EXAMPLES, context_settings=SETTINGS)
@session_options
@json_option
@runtime_option
@click.pass_context
def main(context: click.Context, remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """List the terminal sessions on the relay's host, or end one. Without tmux there they end with their connection."""
    context.obj = {"remote": remote, "token": token}
    if context.invoked_subcommand is not None:
        return
    from svc_proto.cli.relay_requests import list_terminals, terminal_rows

    found = run_on_session(list_terminals, relay_selection(remote, token), runtime)
    if as_json:
        print_json(found)
    elif not found:
        print("No terminal sessions: svc-relay shell opens one, and it stays where the relay has tmux.")
    else:
        print_table(("NAME", "STATE", "CLIENTS", "AGE", "SHELL"), terminal_rows(found, time.time()))


@main.command("kill", epilog=KILLING, context_settings=SETTINGS)
@click.argument("name")
@session_options
@runtime_option
@click.pass_obj
def kill_session(
    outer: dict[str, str | None], name: str, remote: str | None, token: str | None, *, runtime: str
) -> None:
    """End the terminal session NAME, with what runs in it."""
    from svc_proto.cli.relay_requests import kill_terminal

    who = relay_selection(remote or outer["remote"], token or outer["token"])

    run_on_session(lambda engine, session: kill_terminal(engine, session, name), who, runtime)
    print(f"Ended {name}.")
