"""`svc key rotate`: replace the key of the API server of this host."""

import click

from clients.commands.cli import SETTINGS, LazyGroup, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main", "rotate"]

EXAMPLES = """
\b
Examples:
  svc key rotate  # after a phone was lost or revoked
  svc key rotate --json

The key is replaced in ~/.svc/.env (API_SERVER_KEY), in the configuration file, or in both. A running API server loads
the new key at once; if it cannot, the output names the reason, and the servers must be restarted. Phones that shall
continue to chat must pair again: svc pair.

Exit codes: 0; 1 when the key cannot be changed here; 2 for bad options.
"""


@click.group(
    "key",
    cls=LazyGroup,
    modules={"rotate": ("clients.commands.key:rotate", "Make a new key: the old one is worth nothing any more.")},
    epilog="\b\nExample:\n  svc key rotate",
    context_settings=SETTINGS,
)
def main() -> None:
    """Manage the key of the API server on this host."""


@click.command("rotate", epilog=EXAMPLES, context_settings=SETTINGS)
@json_option
@runtime_option
def rotate(*, as_json: bool, runtime: str) -> None:
    """Replace the key of the API server on this host by a new one.

    A phone whose QR contained the main key is refused as soon as the API server has loaded the new key.
    """
    from clients.commands.host_settings import read_relay_config, service_home
    from clients.commands.service_runner import run_flow
    from svc_proto.cli.key_rotation import rotate_key as rotated
    from svc_proto.cli.operator_output import rotated_lines

    config = read_relay_config()
    done = run_flow(lambda engine: rotated(engine, config), runtime, home=service_home())
    if as_json:
        told = {"in_environment": done.in_environment, "restart": bool(done.kept), "why": done.kept or None}
        print_json({"ok": True, "file": done.path, "also": done.also or None, **told})
    else:
        print_lines(rotated_lines(done))
