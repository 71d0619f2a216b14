"""`svc-relay sessions`: the terminal sessions on the relay's host."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from clients.commands.cli import SETTINGS, Single, json_option, print_json, print_lines
from clients.commands.desktop import on_desktop, who_options, whom
from runtimes.option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay sessions
  svc-relay sessions --json
  svc-relay shell --session work        attach one of them
"""


@click.command("sessions", cls=Single, epilog=EXAMPLES, context_settings=SETTINGS)
@who_options
@json_option
@runtime_option
def main(remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """List the terminal sessions on the relay's host. Without tmux there they end with their connection."""
    from svc_proto.client.desk import find_session
    from svc_proto.client.remote import list_terminals, terminal_rows
    from svc_proto.client.shown import table
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow

    who = whom(remote, token)

    def plan(engine: Engine) -> Flow[list[Mapping[str, object]]]:
        session = yield from find_session(engine, who)
        return (yield from list_terminals(engine, session))

    found = on_desktop(plan, runtime)
    if as_json:
        print_json(found)
    elif not found:
        print("No terminal sessions: svc-relay shell opens one, and it stays where the relay has tmux.")
    else:
        print_lines(table(("NAME", "STATE", "CLIENTS", "AGE", "SHELL"), terminal_rows(found, time.time())))


if __name__ == "__main__":
    main(prog_name="svc-relay sessions")
