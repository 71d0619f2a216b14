"""`svc devices`, `svc revoke`, `svc rename`, `svc extend`: list or change the devices paired with this host's relay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_table
from runtimes.cli.runtime_option import runtime_option

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.service_clients.relay_client import RelayClient

__all__ = ["devices", "extend", "rename", "revoke"]

DEVICES = """
\b
Examples:
  svc devices
  svc devices --json | jq -r '.[] | select(.online) | .device_name'

A device is named by its NAME or PREFIX: svc revoke, svc rename, svc extend.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for bad options.
"""
REVOKE = """
\b
Examples:
  svc revoke "Pixel 8"  # a phone that was lost
  svc revoke 1c2d3e4f  # by the PREFIX of svc devices

Its open connections end at once, and it has to pair again.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for an unknown or ambiguous name.
"""
RENAME = """
\b
Examples:
  svc rename "Pixel 8" "Phone of Ada"
  svc rename 1c2d3e4f Kitchen

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for an unknown or ambiguous name.
"""
EXTEND = """
\b
Examples:
  svc extend "Pixel 8"  # 30 days from now
  svc extend 1c2d3e4f --ttl never

Grants that have ended with the session are given again.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for an unknown or ambiguous name.
"""
Result = TypeVar("Result")


@click.command("devices", epilog=DEVICES, context_settings=SETTINGS)
@json_option
@runtime_option
def devices(*, as_json: bool, runtime: str) -> None:
    """List the devices that are paired with the relay of this host."""
    from svc_proto.cli.host_devices import HOST_DEVICE_COLUMNS, host_device_rows, list_host_devices

    found = _run(list_host_devices, runtime)
    if as_json:
        print_json(found)
    elif not found:
        print("No device is paired: svc pair")
    else:
        print_table(HOST_DEVICE_COLUMNS, host_device_rows(found, time.time()))


@click.command("revoke", epilog=REVOKE, context_settings=SETTINGS)
@click.argument("device", metavar="NAME|PREFIX")
@json_option
@runtime_option
def revoke(device: str, *, as_json: bool, runtime: str) -> None:
    """End the session of a device. It must pair again."""
    from svc_proto.cli.host_devices import describe_device, revoke_device
    from svc_proto.cli.operator_requests import KEY_IS_KNOWN

    found, answer = _run(lambda engine, relay: revoke_device(engine, relay, device), runtime)
    if as_json:
        print_json(answer)
        return
    print(f"Revoked {describe_device(found, time.time())}: it has to pair again.")
    if answer.get("knows_api_key") is True:
        print(KEY_IS_KNOWN)


@click.command("rename", epilog=RENAME, context_settings=SETTINGS)
@click.argument("device", metavar="NAME|PREFIX")
@click.argument("name", metavar="NEW")
@json_option
@runtime_option
def rename(device: str, name: str, *, as_json: bool, runtime: str) -> None:
    """Give a device another name."""
    from svc_proto.cli.host_devices import change_device

    found, answer = _run(lambda engine, relay: change_device(engine, relay, device, {"device_name": name}), runtime)
    if as_json:
        print_json(answer)
    else:
        print(f"Renamed {found.text('device_name')} ({answer.text('token_prefix')}) to {answer.text('device_name')}.")


@click.command("extend", epilog=EXTEND, context_settings=SETTINGS)
@click.argument("device", metavar="NAME|PREFIX")
@click.option("--ttl", metavar="DURATION", default="30d", show_default=True, help="Lifetime from now on.")
@json_option
@runtime_option
def extend(device: str, ttl: str, *, as_json: bool, runtime: str) -> None:
    """Give the session of a device another lifetime."""
    from svc_proto.cli.durations import parse_duration, short_expiry
    from svc_proto.cli.host_devices import change_device

    span = parse_duration(ttl, "--ttl")
    found, answer = _run(lambda engine, relay: change_device(engine, relay, device, {"ttl_seconds": span}), runtime)
    if as_json:
        print_json(answer)
    else:
        until = short_expiry(answer.number("expires_at"), time.time())
        print(f"Extended {found.text('device_name')} ({answer.text('token_prefix')}): expires {until}.")


def _run(plan: Callable[[Engine, RelayClient], Flow[Result]], runtime: str) -> Result:
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay

    return run_on_local_relay(plan, read_relay_config(), runtime)
