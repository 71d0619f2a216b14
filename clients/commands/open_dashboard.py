"""`svc open`: open the dashboard in a browser, or print how to reach it."""

import os
import sys

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.service_home.home import service_home_path
from runtimes.service_home.server_registry import find_running_server
from svc_proto.cli.errors import CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc open
  svc open --print  # the address only

Over SSH, or without a display, it prints the address and the command that leads a browser of your own computer to it.

Exit codes: 0; 1 when no dashboard runs.
"""


@click.command("open", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--print", "prints", is_flag=True, help="Print the address and open nothing.")
@json_option
def main(*, prints: bool, as_json: bool) -> None:
    """Open the dashboard in a browser, or print its address."""
    from runtimes.cli.terminal_qr import ssh_hint

    home = service_home_path(os.environ)
    board = find_running_server(home, "dashboard")
    if board is None:
        raise CliError(f"no dashboard runs on {home}: svc up")
    url = board.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:") + board.root_path
    hint = ssh_hint(url)
    if as_json:
        print_json({"url": url, "ssh": hint or None})
    elif prints or hint or not _has_display():
        print_lines([url, *([hint] if hint and not prints else [])])
    else:
        import webbrowser

        print_lines([url])
        if not webbrowser.open(url):
            raise CliError("no browser could be started: open the address yourself")


def _has_display() -> bool:
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
