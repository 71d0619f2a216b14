"""`svc key rotate`: a new key for the API server of this host."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, Lazy, json_option, print_json, print_lines
from runtimes.option import runtime_option

__all__ = ["main", "rotate"]

EXAMPLES = """
\b
Examples:
  svc key rotate               after a phone was lost or revoked
  svc key rotate --json

\b
The key is changed wherever one is: as API_SERVER_KEY in ~/.svc/.env, in the configuration file, or in both. The
API that runs takes it at once; if it cannot, what is printed says why, and to start the servers anew. Pair phones that
are to go on chatting again: svc pair.
Exit codes: 0; 1 when the key cannot be changed here; 2 for bad options.
"""


@click.group(
    "key",
    cls=Lazy,
    modules={"rotate": ("clients.commands.key:rotate", "Make a new key: the old one is worth nothing any more.")},
    epilog="\b\nExample:\n  svc key rotate",
    context_settings=SETTINGS,
)
def main() -> None:
    """The key of the API server on this host."""


@click.command("rotate", epilog=EXAMPLES, context_settings=SETTINGS)
@json_option
@runtime_option
def rotate(*, as_json: bool, runtime: str) -> None:
    """Make a new key for the API server on this host, in the place of the old one.

    Every phone whose QR held the main key has the old one, which is refused as soon as the API has taken the new one.
    """
    from clients.commands.host import read_relay_config, service_home
    from clients.commands.perform import perform
    from svc_proto.client.key_rotation import rotate as rotated
    from svc_proto.client.report import rotated_lines

    config = read_relay_config()
    done = perform(lambda engine: rotated(engine, config), runtime, home=service_home())
    if as_json:
        told = {"in_environment": done.in_environment, "restart": bool(done.kept), "why": done.kept or None}
        print_json({"ok": True, "file": done.path, "also": done.also or None, **told})
    else:
        print_lines(rotated_lines(done))
