"""`svc-relay devices`: list, revoke and extend the devices of a relay (wire core 10.7)."""

import time
from typing import Any

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_table
from clients.commands.desktop_options import relay_selection, run_on_session, session_options
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay devices
  svc-relay devices revoke 1c2d3e4f
  svc-relay devices extend 1c2d3e4f --ttl 90d
  svc-relay devices --remote ws://192.168.1.5 --json

The relay is that of --remote or SVC_RELAY_URL, else the only stored one.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for bad options.
"""
REVOKING = """
\b
Example:
  svc-relay devices revoke 1c2d3e4f  # the PREFIX of svc-relay devices
"""
EXTENDING = """
\b
Examples:
  svc-relay devices extend 1c2d3e4f  # one day from now
  svc-relay devices extend 1c2d3e4f --ttl never
"""


@click.group("devices", invoke_without_command=True, epilog=EXAMPLES, context_settings=SETTINGS)
@session_options
@json_option
@runtime_option
@click.pass_context
def main(context: click.Context, remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """List the devices that are paired with a relay; revoke or extend one."""
    context.obj = {"remote": remote, "token": token, "as_json": as_json}
    if context.invoked_subcommand is not None:
        return
    from svc_proto.cli.desktop_output import DEVICE_COLUMNS, device_rows
    from svc_proto.cli.desktop_sessions import list_devices

    found = run_on_session(list_devices, relay_selection(remote, token), runtime)
    if as_json:
        print_json(found)
    else:
        print_table(DEVICE_COLUMNS, device_rows(found, time.time()))


@main.command("revoke", epilog=REVOKING, context_settings=SETTINGS)
@click.argument("prefix")
@session_options
@json_option
@runtime_option
@click.pass_obj
def revoke_device(
    outer: dict[str, Any], prefix: str, remote: str | None, token: str | None, *, as_json: bool, runtime: str
) -> None:
    """End the session whose token starts with PREFIX. Its device must pair again."""
    from svc_proto.cli.desktop_sessions import forget_session, relay_client_for
    from svc_proto.cli.operator_requests import KEY_IS_KNOWN, revoke, token_prefix
    from svc_proto.cli.session_store import StoredSession
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.schema.json_object import JsonObject

    who = relay_selection(remote or outer["remote"], token or outer["token"])
    token_prefix(prefix)

    def plan(engine: Engine, session: StoredSession) -> Flow[JsonObject]:
        relay = yield from relay_client_for(engine, session)
        answer = yield from revoke(engine, relay, prefix)
        if answer.get("revoked_self") is True:
            yield from forget_session(engine, session)
        return answer

    answer = run_on_session(plan, who, runtime)
    if as_json or outer["as_json"]:
        print_json(answer)
        return
    own = " It was this desktop's own." if answer.get("revoked_self") is True else ""
    print(f"Revoked {answer.get('revoked')}: its device has to pair again.{own}")
    if answer.get("knows_api_key") is True:
        print(KEY_IS_KNOWN)


@main.command("extend", epilog=EXTENDING, context_settings=SETTINGS)
@click.argument("prefix")
@click.option("--ttl", metavar="DURATION", default="86400", show_default=True, help="Lifetime from now on.")
@session_options
@json_option
@runtime_option
@click.pass_obj
def extend_device(
    outer: dict[str, Any],
    prefix: str,
    ttl: str,
    remote: str | None,
    token: str | None,
    *,
    as_json: bool,
    runtime: str,
) -> None:
    """Set a new lifetime for the session whose token starts with PREFIX."""
    from svc_proto.cli.desktop_sessions import extend_session
    from svc_proto.cli.durations import parse_duration, short_expiry
    from svc_proto.cli.operator_requests import token_prefix

    who = relay_selection(remote or outer["remote"], token or outer["token"])
    span, named = parse_duration(ttl, "--ttl"), token_prefix(prefix)

    answer = run_on_session(lambda engine, session: extend_session(engine, session, named, span), who, runtime)
    if as_json or outer["as_json"]:
        print_json(answer)
    else:
        print(
            f"Extended {answer.get('token_prefix')}: expires {short_expiry(answer.number('expires_at'), time.time())}."
        )
