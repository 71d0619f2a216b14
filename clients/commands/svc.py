"""The program `svc`: run the servers, look at them, pair phones, and the switches of the relay on this host."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, Lazy

__all__ = ["main", "relay"]

EXAMPLES = """
\b
Examples:
  svc up                                run the servers, with a QR for a phone
  svc status                            what runs, which model answers, who is online
  svc top                               the same as it changes, with rates, memory and lag
  svc logs -f
  svc pair                              show a QR for another phone
  svc pair --ttl 90d --grants bridge=1d
  svc pair --revoke 1c2d3e4f
  svc doctor --public-url https://home.example
  svc phone                             a phone to try things with; the dashboard shows its screen
  svc mcp install claude                the phone for Claude Code; cursor, vscode or print likewise
  svc key rotate                        a new API key, after a phone was lost
  svc service install                   from the start of this host on, by systemd or launchd
  svc backup && svc status              safe while the servers run
  svc relay insecure-api-key status

\b
Shell completion (bash; zsh and fish likewise):
  eval "$(_SVC_COMPLETE=bash_source svc)"
"""


@click.group(
    cls=Lazy,
    modules={
        "up": ("servers.__main__:main", "Run the servers, and show how to pair a phone."),
        "status": ("clients.commands.service:status", "What runs on this host, and which phones are there."),
        "top": ("clients.commands.top:main", "Phones, turns, rates, memory and lag, as they change."),
        "logs": ("clients.commands.logs:main", "What the servers have logged; -f follows."),
        "down": ("clients.commands.service:down", "Stop the servers."),
        "doctor": ("clients.commands.doctor_host:main", "Is all well here, and seen from outside?"),
        "pair": ("clients.commands.pair:main", "Make a pairing code and show it as a QR."),
        "phone": ("clients.commands.phone:main", "A simulated phone, with a screen in the dashboard."),
        "service": ("clients.commands.supervise:main", "Run the servers from the start of this host on."),
        "backup": ("clients.commands.backup:backup", "All that lasts of the service home, as one file."),
        "restore": ("clients.commands.backup:restore", "The way back."),
        "db": ("clients.commands.db:main", "The database of this host's servers."),
        "mcp": ("clients.commands.mcp:main", "The phone for any agent that speaks MCP (Claude Code, Cursor, ...)."),
        "key": ("clients.commands.key:main", "The key of the API server on this host."),
        "relay": ("clients.commands.svc:relay", "Switches of the relay on this host."),
    },
    epilog=EXAMPLES,
    context_settings=SETTINGS,
)
@click.version_option(package_name="svc-relay", message="%(prog)s %(version)s")
def main() -> None:
    """Commands for the operator of a relay, on the relay's own host."""


@click.group(
    cls=Lazy,
    modules={
        "insecure-api-key": ("clients.commands.security:main", "Accept API keys over plain HTTP from other hosts?"),
    },
    epilog="\b\nExample:\n  svc relay insecure-api-key status",
    context_settings=SETTINGS,
)
def relay() -> None:
    """Switches of the relay on this host."""


if __name__ == "__main__":
    main(prog_name="svc")
