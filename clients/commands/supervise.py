"""`svc service`: the servers run from the start of this host on, under systemd or launchd."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clients.commands.cli import SETTINGS, Lazy

__all__ = ["install", "main", "remove"]

GROUP = """
\b
Examples:
  svc service install                  for this user, with systemd or launchd, at once
  svc service install -- --brand hermes --api-host 127.0.0.1
  svc service install --print          only show what would be written
  sudo svc service install --system --user svc --hardened
  svc service remove
"""
INSTALL = """
\b
Examples:
  svc service install
  svc service install -- --brand hermes --port 9000      what follows -- is for `svc up`
  sudo svc service install --system --user svc --hardened
  sudo svc service install --system --listen relay=443   systemd opens the socket: any port, and no gap at a new start
  svc service install --print > svc.service

\b
Settings belong into .env of the service home, which the servers read: variables of this shell are not taken over.
systemd hears when the servers answer, asks every half minute whether they still do, and starts them anew if not.
Exit codes: 0; 1 when it cannot be installed, and then it is as before; 2 for bad options.
"""
REMOVE = """
\b
Examples:
  svc service remove
  sudo svc service remove --system

\b
The service home stays as it is. Exit codes: 0, also when there was nothing; 1 when it cannot be removed.
"""
SystemOption = click.option("--system", is_flag=True, help="For the whole host (as root); else for this user.")


@click.group(
    "service",
    cls=Lazy,
    modules={
        "install": ("clients.commands.supervise:install", "Run the servers from the start of this host on."),
        "remove": ("clients.commands.supervise:remove", "No more."),
    },
    epilog=GROUP,
    context_settings=SETTINGS,
)
def main() -> None:
    """Have systemd or launchd run the servers."""


@click.command("install", epilog=INSTALL, context_settings=SETTINGS)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@SystemOption
@click.option("--user", metavar="NAME", help="Who runs them, with --system.  [who called sudo]")
@click.option("--hardened", is_flag=True, help="Also for shells of phones: no sudo, nothing written but in the home.")
@click.option("--listen", "listen", metavar="ROLE=[HOST:]PORT", multiple=True, help="A socket that systemd opens.")
@click.option("--now/--no-now", default=True, show_default=True, help="Start them at once.")
@click.option("--print", "only_print", is_flag=True, help="Show the files, and do nothing.")
def install(
    *,
    options: Sequence[str],
    system: bool,
    user: str | None,
    hardened: bool,
    listen: Sequence[str],
    now: bool,
    only_print: bool,
) -> None:
    """Run the servers from the start of this host on, and again when they end or answer no more."""
    from clients.commands import supervisor

    supervisor.install(options, system=system, user=user, hardened=hardened, listen=listen, now=now, show=only_print)


@click.command("remove", epilog=REMOVE, context_settings=SETTINGS)
@SystemOption
def remove(*, system: bool) -> None:
    """Stop the servers that the supervisor runs, and have it forget them."""
    from clients.commands import supervisor

    supervisor.remove(system=system)
