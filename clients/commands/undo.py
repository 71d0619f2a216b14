"""`svc undo`: list and undo what a device changed at the agent."""

import sys

import click

from clients.commands.cli import SETTINGS, SingleCommand, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc undo 1c2d3e4f  # list what this device changed, and ask
  svc undo "Kitchen tablet" --yes
  svc undo 1c2d3e4f --list --json

NAME is the prefix of a session (svc status), or the name of its device; the device may be revoked. Approvals for more
than one call, settings of the model and notes of the memory are undone. What was changed again since stays.

Exit codes: 0; 1 when something was not undone, or the API server does not answer; 2 for bad options.
"""


@click.command("undo", cls=SingleCommand, epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("name")
@click.option("--list", "only_list", is_flag=True, help="List the changes and undo nothing.")
@click.option("--yes", is_flag=True, help="Undo without asking.")
@json_option
@runtime_option
def main(name: str, *, only_list: bool, yes: bool, as_json: bool, runtime: str) -> int:
    """List and undo what a device changed at the agent."""
    from clients.commands.host_settings import read_relay_config, service_home
    from clients.commands.service_runner import run_flow
    from svc_proto.cli.undo_changes import change_lines, changes_of, undo_changes

    config = read_relay_config()
    found = run_flow(lambda engine: changes_of(engine, config, name), runtime, home=service_home())
    if only_list or not found:
        if as_json:
            print_json({"changes": found})
        else:
            print_lines(change_lines(found) or [f"{name} has changed nothing that is recorded."])
        return 0
    if not as_json:
        print_lines([f"{name} has changed:", *change_lines(found)])
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise CliError("--yes undoes without asking, --list only lists", code=2)
        click.confirm("Undo all of it?", abort=True)
    done = run_flow(lambda engine: undo_changes(engine, config, name), runtime, home=service_home())
    if as_json:
        print_json({"changes": done})
    else:
        print_lines(change_lines(done))
    return 0 if all(each.get("undone") is True for each in done) else 1
