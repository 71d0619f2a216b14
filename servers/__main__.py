"""Command line for all servers in one process, with pairing on the terminal: `svc up`, `python -m servers`."""

import click

from servers.options import HELP, ProgramCommand, relay_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc up  # all servers on their default ports, with a QR to scan
  svc up --host 127.0.0.1  # for this host only
  svc up --runtime trio  # on another event loop
  svc up --api-host 127.0.0.1  # no phone can chat
  svc up --no-dashboard  # relay and API only

python -m servers is the same as svc up.

The API listens on the relay's address, unless API_SERVER_HOST or --api-host sets another one. If other hosts can reach
it, it creates a key in ~/.svc/.env. Its other settings are those of `python -m servers.api`.

The first start in a terminal opens the dashboard to phones, with a password that it shows once and keeps in
~/.svc/.env. Otherwise it is for this host only, unless SVC_DASHBOARD_HOST and SVC_DASHBOARD_PASSWORD are set.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@relay_options
@click.option("--api-host", help="Address that the API listens on.  [API_SERVER_HOST; that of --host]")
@click.option(
    "--api-port", type=click.IntRange(0, 65_535), help="Port of the API; 0 picks a free one.  [API_SERVER_PORT; 8642]"
)
@click.option("--api/--no-api", default=True, show_default=True, help="Run the API server.")
@click.option("--dashboard/--no-dashboard", default=True, show_default=True, help="Run the dashboard.")
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65_535),
    help="Port of the dashboard; 0 picks a free one.  [SVC_DASHBOARD_PORT; 9119]",
)
@click.option("--qr/--no-qr", default=True, show_default=True, help="On a terminal, create a pairing code and show it.")
def main(
    runtime: str,
    *,
    qr: bool,
    api: bool,
    api_host: str | None,
    api_port: int | None,
    dashboard: bool,
    dashboard_port: int | None,
    **options: object,
) -> None:
    """Run all servers in one process and show a QR for a phone."""
    from servers.all_programs import ServerSelection, all_programs
    from servers.launch import launch

    wanted = ServerSelection(
        qr=qr, api=api, api_host=api_host, api_port=api_port, dashboard=dashboard, dashboard_port=dashboard_port
    )
    launch(lambda: all_programs(wanted, options), runtime)


if __name__ == "__main__":
    main()
