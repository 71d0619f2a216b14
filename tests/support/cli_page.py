"""Generator of docs/reference/cli.md: the help texts of the programs of `PROGRAMS`, as click prints them.

After a change: `python -m tests.support.cli_page` writes the page.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from clients.commands import svc, svc_relay
from clients.demo import main as demo
from clients.gateway.__main__ import main as gateway
from clients.phone.__main__ import main as phone
from servers.__main__ import main as servers
from servers.api import main as api
from servers.dashboard import main as dashboard
from servers.relay import main as relay

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
WIDTH = 80
PROGRAMS: dict[str, click.Command] = {
    "svc": svc.main, "svc-relay": svc_relay.main, "python -m servers": servers, "python -m servers.relay": relay,
    "python -m servers.api": api, "python -m servers.dashboard": dashboard, "python -m clients.phone": phone,
    "python -m clients.gateway": gateway, "python -m clients.demo": demo
}  # fmt: skip
ABOUT = """# Command line

The help text of every command. `python -m tests.support.cli_page` writes this page; a test compares it.

| Exit code | Meaning |
|---|---|
| 0 | Success; servers: stopped by SIGTERM or Ctrl-C |
| 1 | Failure; servers: a certificate or key that cannot be used |
| 2 | Invalid options; servers: a port, folder or database that cannot be used |
| 130 | A command was stopped by Ctrl-C |

A server that receives SIGTERM or Ctrl-C accepts no new connections, answers the requests in progress, closes WebSockets
with 1001 and exits. A second signal exits at once. SIGHUP reloads certificates and keys for new connections.
"""


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all its subcommands, each after its full name, which starts with `path`."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


def text() -> str:
    """Return the text of docs/reference/cli.md."""
    parts = [ABOUT]
    for program, main in PROGRAMS.items():
        parts.append(f"## {program}\n")
        for path, command in commands(main, program):
            settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
            context = click.Context(command, info_name=path, **settings)
            shown = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
            parts.append((f"### {path}\n\n" if path != program else "") + f"```text\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text())
