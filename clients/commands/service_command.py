"""`svc service`: run the servers from the start of this host on, under systemd or launchd."""

from collections.abc import Sequence

import click

from clients.commands.cli import SETTINGS, LazyGroup

__all__ = ["install", "main", "remove"]

GROUP = """
\b
Examples:
  svc service install  # for this user, with systemd or launchd
  svc service install -- --api-host 127.0.0.1
  svc service install --print  # show the files only
  sudo svc service install --system --user svc --hardened
  svc service remove
"""
INSTALL = """
\b
Examples:
  svc service install
  svc service install -- --port 9000  # options of `svc up`
  sudo svc service install --system --user svc --hardened
  sudo svc service install --system --listen relay=443
  svc service install --print > svc.service

With --listen, systemd opens the socket: any port is possible, and a restart refuses no connection.

Put settings into .env of the service home, which the servers read. Variables of this shell are not used.

The servers report to systemd when they are ready and twice a minute after that. systemd restarts them if the reports
stop.

Exit codes: 0; 1 when the installation fails, and then nothing has changed; 2 for bad options.
"""
REMOVE = """
\b
Examples:
  svc service remove
  sudo svc service remove --system

The service home does not change.

Exit codes: 0, also when no service was installed; 1 when the removal fails.
"""
system_option = click.option("--system", is_flag=True, help="For the whole host (as root); else for this user.")


@click.group(
    "service",
    cls=LazyGroup,
    modules={
        "install": ("clients.commands.service_command:install", "Start the servers with this host."),
        "remove": ("clients.commands.service_command:remove", "Stop the servers and uninstall the service."),
    },
    epilog=GROUP,
    context_settings=SETTINGS,
)
def main() -> None:
    """Run the servers as a service of systemd or launchd."""


@click.command("install", epilog=INSTALL, context_settings=SETTINGS)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@system_option
@click.option("--user", metavar="NAME", help="User of the servers, with --system.  [the user of sudo]")
@click.option(
    "--hardened", is_flag=True, help="Restrict the servers and the shells of phones: no sudo, writes in the home only."
)
@click.option("--listen", "listen", metavar="ROLE=[HOST:]PORT", multiple=True, help="A socket that systemd opens.")
@click.option("--now/--no-now", default=True, show_default=True, help="Start the servers now.")
@click.option("--print", "only_print", is_flag=True, help="Print the files and install nothing.")
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
    """Start the servers with this host, and restart them when they end or stop answering."""
    from clients.commands import service_manager

    service_manager.install(
        options, system=system, user=user, hardened=hardened, listen=listen, now=now, show=only_print
    )


@click.command("remove", epilog=REMOVE, context_settings=SETTINGS)
@system_option
def remove(*, system: bool) -> None:
    """Stop the servers of the service and uninstall it."""
    from clients.commands import service_manager

    service_manager.remove(system=system)
