"""`svc phone`: run the reference phone with the relay of this host; its screen is in the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS
from runtimes.cli.runtime_option import runtime_option

if TYPE_CHECKING:
    from runtimes.host.host import Program
    from runtimes.service_home.server_registry import HomeClaim
    from svc_proto.commands import Notify
    from svc_proto.relay_config import RelayConfig

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc phone  # its screen is the Phone tab of the dashboard
  svc phone --name "Pixel 9"
  svc phone --off  # start with Device Control off

The phone pairs itself, for the bridge and for talking with the agent (chat, tui, voice:realtime), and keeps its session
for the next start. The agent's calls and messages are confirmed on its screen and nowhere else.

Ctrl-C or svc down ends it. More options: python -m clients.phone --help

Exit codes: 0 after Ctrl-C; 1 when no relay runs, or it refuses; 2 for bad options and when one runs already.
"""
HOST = "127.0.0.1"
DEVICE_ID = "svc-phone"  # python -m clients.phone has another one, so that both can be connected


@click.command("phone", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--name", default="Reference phone", show_default=True, help="Device name.")
@click.option("--off", is_flag=True, help="Start with Device Control off.")
@runtime_option
def main(*, name: str, off: bool, runtime: str) -> None:
    """Run a simulated phone. The dashboard shows its screen."""
    import os

    from clients.commands.host_settings import read_relay_config, trust_for
    from clients.commands.service_runner import run_flow
    from servers.launch import claim_home, launch
    from svc_proto.basics.entropy import new_code
    from svc_proto.cli.durations import parse_preset
    from svc_proto.cli.operator_requests import local_relay, register
    from svc_proto.machines.pairing_codes import PairingMeta

    config = read_relay_config()
    home = Path(config.home).expanduser().absolute()
    relay, code = local_relay(config), new_code(os.urandom)
    meta = PairingMeta(grants=parse_preset(None, "chat,bridge,tui,voice:realtime"))

    def programs() -> list[Program]:
        claimed = claim_home(home, "phone")  # before registering a code that would stay unused
        run_flow(lambda engine: register(engine, relay, code, meta), runtime, home=home, client_tls=trust_for(config))
        return [_program(config, home, relay=relay.url, code=code, name=name, off=off, claim=claimed)]

    launch(programs, runtime)


def _program(
    config: RelayConfig, home: Path, *, relay: str, code: str, name: str, off: bool, claim: HomeClaim
) -> Program:
    import os

    from clients.commands.host_settings import trust_for
    from clients.phone.emulator import EmulatedPhone
    from clients.phone.emulator.record_apps import ALL_APPS
    from runtimes.host.host import Program, Services
    from runtimes.host.logs import setup_logging
    from runtimes.net.listener import bind
    from servers.launch import print_exit_reason
    from svc_proto.commands import Level
    from svc_proto.engine.core import Engine
    from svc_proto.phone.safety.settings import SafetySettings
    from svc_proto.phone.screen_server import PhoneScreenServer
    from svc_proto.phone.service import PhoneConfig

    listener = bind(HOST, 0)
    url = f"http://{HOST}:{listener.address.port}"

    def ready() -> None:
        claim.publish({"host": HOST, "port": listener.address.port, "inside": url})
        _say_where(home)

    phone = PhoneScreenServer(
        PhoneConfig(
            remote=relay.replace("http", "ws", 1),
            code=code,
            token=_token(home),
            device_name=name,
            device_id=DEVICE_ID,
            scheme=config.brand.scheme,
        ),
        EmulatedPhone(name=name, seed_apps=ALL_APPS),
        SafetySettings(armed=not off),
        url=url,
    )
    return Program(
        core=Engine(phone, entropy=os.urandom, log_level=Level.WARNING),
        listeners=[listener],
        services=Services(
            state=home, logger=setup_logging(int(Level.WARNING), name="svc.phone"), client_tls=trust_for(config)
        ),
        on_ready=ready,
        on_notify=_show,
        on_exit=print_exit_reason,
        claim=claim,
    )


def _token(home: Path) -> str | None:
    """Return the session token of the phone's last pairing from its file; None without a usable token.

    An expired token does no harm, as there is also a code.
    """
    from svc_proto.phone.screen_server import PHONE_SESSION

    try:
        text = (home / PHONE_SESSION).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if text.isprintable() and text else None


def _say_where(home: Path) -> None:
    from runtimes.service_home.server_registry import find_running_server

    dashboard = find_running_server(home, "dashboard")
    where = "in the dashboard, which does not run: svc up" if dashboard is None else f"{dashboard.inside}/#phone"
    print(f"Its screen: {where}", flush=True)


def _show(news: Notify) -> None:
    fields = news.fields
    match news.event:
        case "paired" | "online":
            print("online", flush=True)
        case "offline":
            print(f"offline: next try in {fields['retry_in']:.0f} s", flush=True)
        case "asked":
            print(f"It asks on its screen: allow {fields['action']}?", flush=True)
