"""The reference phone: `python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123`."""

from __future__ import annotations

import os

import click

from clients.phone.handset import SimulatedHandset
from runtimes.host import Program, Services
from runtimes.logs import setup
from servers.launch import CannotStartError, ProgramCommand, launch, runtime_option, say_why
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Level, Tell
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.engine.core import Engine
from svc_proto.wire.urls import parse_url

__all__ = ["main", "phone_program"]

EXAMPLES = """
\b
Examples:
  python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123
  python -m clients.phone --remote ws://127.0.0.1:8767 --token 1c2d3e4f-…
  python -m clients.phone --remote wss://relay.example --code ABC123 --runtime trio

\b
Register a code first, on the relay's host:
  curl -X POST http://127.0.0.1:8767/pairing

\b
It comes back after every loss of the connection. Exit codes: 0 after a signal, 1 when the relay refuses the
credential, 2 for bad options.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--remote", required=True, envvar="SVC_RELAY_URL", help="The relay's ws:// or wss:// address.")
@click.option("--code", envvar="SVC_RELAY_CODE", help="Pairing code, six characters.")
@click.option("--token", envvar="SVC_RELAY_TOKEN", help="Session token of an earlier pairing.")
@click.option("--name", default="Reference phone", show_default=True, help="Device name.")
@click.option("--device-id", default="reference-phone", show_default=True, help="Stable id of this device.")
@click.option("--print-token", is_flag=True, help="Print the session token after pairing.")
@click.option("--brand", type=click.Choice(list(BRANDS)), default="svc", show_default=True, envvar="SVC_BRAND")
@runtime_option
@click.option("--verbose", is_flag=True, help="Log what is ignored, too.")
def main(
    *,
    remote: str,
    code: str | None,
    token: str | None,
    name: str,
    device_id: str,
    print_token: bool,
    brand: str,
    runtime: str,
    verbose: bool,
) -> None:
    """Be a phone: pair with a relay and answer every Device Control route from a simulated device."""

    def programs() -> list[Program]:
        config = PhoneConfig(
            remote=_checked(remote),
            code=code or None,
            token=token or None,
            device_name=name,
            device_id=device_id,
            scheme=BRANDS[brand].scheme,
        )
        if config.code is None and config.token is None:
            raise CannotStartError("--code or --token is needed", code=2)
        return [phone_program(config, print_token=print_token, verbose=verbose)]

    launch(programs, runtime)


def phone_program(config: PhoneConfig, *, print_token: bool = False, verbose: bool = False) -> Program:
    """The phone as a program for a loop."""
    level = Level.DEBUG if verbose else Level.INFO
    phone = Phone(config, SimulatedHandset(name=config.device_name))

    def tell(news: Tell) -> None:
        _show(news, print_token=print_token)

    return Program(
        core=Engine(phone, entropy=os.urandom, log_level=level),
        services=Services(logger=setup(int(level), name="svc.phone")),
        on_tell=tell,
        on_exit=say_why,
    )


def _show(news: Tell, *, print_token: bool) -> None:
    fields = news.fields
    match news.event:
        case "paired" | "online":
            token = str(fields["token"])
            print(f"{news.event}: session {token if print_token else token[:8] + '…'}", flush=True)
        case "offline":
            print(f"offline: next try in {fields['retry_in']:.1f} s", flush=True)
        case _:
            # Method and path are the relay's words: shown as they are only if a terminal can take it.
            command = f"{fields['method']} {fields['path']}"
            print(f"{command if command.isprintable() else ascii(command)} -> {fields['status']}", flush=True)


def _checked(remote: str) -> str:
    try:
        usable = parse_url(remote).scheme in ("ws", "wss")
    except RemoteProtocolError as error:
        raise CannotStartError(f"--remote cannot be used: {error}", code=2) from error
    if not usable:
        raise CannotStartError("--remote must be a ws:// or wss:// URL", code=2)
    return remote


if __name__ == "__main__":
    main()
