"""All servers in one process, with a way to pair a phone on the terminal: `svc up`, `python -m servers`."""

from __future__ import annotations

import click

from servers.options import HELP, ProgramCommand, relay_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc up                          everything on its default port, with a QR to scan
  svc up --brand hermes           for the Hermes-Relay app for Android; see SVC_BRAND
  svc up --host 127.0.0.1         for this host only
  svc up --runtime trio           on another event loop
  svc up --api-host 127.0.0.1     the API for this host only: no phone can chat
  svc up --no-dashboard           relay and API only

\b
python -m servers is the same as svc up.
The API listens where the relay does, unless API_SERVER_HOST or --api-host says otherwise; where other hosts can reach
it, it makes itself a key then, kept in ~/.svc/.env. It takes its other settings as `python -m servers.api` does. The
dashboard is for this host only, unless SVC_DASHBOARD_HOST and SVC_DASHBOARD_PASSWORD say otherwise.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@relay_options
@click.option("--api-host", help="Address that the API listens on.  [API_SERVER_HOST; that of --host]")
@click.option("--api-port", type=click.IntRange(0, 65_535), help="Port of the API; 0: any.  [API_SERVER_PORT; 8642]")
@click.option("--api/--no-api", default=True, show_default=True, help="Run the API server, too.")
@click.option("--dashboard/--no-dashboard", default=True, show_default=True, help="Run the dashboard, too.")
@click.option("--dashboard-port", type=click.IntRange(0, 65_535), help="Its port; 0: any.  [SVC_DASHBOARD_PORT; 9119]")
@click.option("--qr/--no-qr", default=True, show_default=True, help="On a terminal, make a pairing code and show it.")
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
    """Run every server in one process and show how to pair a phone."""
    from servers.all_programs import Wanted, all_programs
    from servers.launch import launch

    wanted = Wanted(
        qr=qr, api=api, api_host=api_host, api_port=api_port, dashboard=dashboard, dashboard_port=dashboard_port
    )
    launch(lambda: all_programs(wanted, options), runtime)


if __name__ == "__main__":
    main()
