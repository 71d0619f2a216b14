"""`svc pair` and `svc-pair`: create a pairing code with a QR; register a phone's code; revoke a session."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, SingleCommand, error_reason, json_option, print_json, print_lines
from runtimes.cli.click_help import version_option
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from svc_proto.cli.operator_pairing import NewInvite
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.machines.pairing_codes import PairingMeta
    from svc_proto.relay_config import RelayConfig
    from svc_proto.service_clients.relay_client import RelayClient

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc pair  # a QR with every route of this host
  svc pair --ttl never --grants terminal=7d,bridge=1h
  svc pair --grants terminal=none,tui=none  # a phone without a shell
  svc pair --only chat,bridge  # these channels and no others
  svc pair --only chat,manage  # may also change settings and end other devices
  svc pair --mode public --public-url https://home.example/relay
  svc pair --prefer mesh
  svc pair --no-wait  # do not wait until the phone has paired
  svc pair --register-code Q7M2ZK  # a code that the phone displays
  svc pair --revoke 1c2d3e4f  # end a session (see svc devices)
  svc pair --json | jq -r .pairing_url

Code, key and invite are printed on a terminal, or with --json or --show.

Durations: never, 0 (never), seconds, or a number with s, m, h, d, w or y.

Exit codes: 0; 1 when the relay refuses or nothing runs; 2 for bad options. If only the API server runs, the QR leads to
it, and the exit code is 0. With --no-relay no server is asked.
"""
CREDENTIALS = (
    "Warning: the QR holds credentials. Each person who sees it can use this host until the code is used or expired."
)


@click.command("pair", cls=SingleCommand, epilog=EXAMPLES, context_settings=SETTINGS)
@click.option(
    "--ttl", metavar="DURATION", help="Lifetime of the session; the phone cannot change it.  [SVC_PAIR_TTL; 30d]"
)
@click.option(
    "--grants",
    metavar="CHANNEL=DURATION,…",
    help="Grants, such as terminal=7d,bridge=1h; none withholds a channel.  [SVC_PAIR_SCOPE]",
)
@click.option("--only", metavar="CHANNEL,…", help="Grant these channels and withhold all others.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "lan", "mesh", "tailscale", "public"]),
    default="auto",
    show_default=True,
    help="Which routes go into the QR.",
)
@click.option(
    "--public-url", metavar="URL", help="Address of this host from outside: http:// or https://.  [SVC_PUBLIC_URL]"
)
@click.option("--prefer", metavar="ROLE", help="Route to put first: lan, mesh or public.")
@click.option("--register-code", metavar="CODE", help="Register a code that the phone made, and make no QR.")
@click.option("--transport-hint", type=click.Choice(["ws", "wss"]), help="Only with --register-code.")
@click.option("--keep", is_flag=True, help="Keep earlier sessions of the device that pairs; else they end.")
@click.option("--revoke", metavar="PREFIX", help="End the session whose token starts with PREFIX.")
@click.option(
    "--host", metavar="HOST", help="Address of this host in the local network, for API and relay.  [best interface]"
)
@click.option("--port", type=click.IntRange(1, 65_535), help="Port of the API server.  [configuration; 8642]")
@click.option("--dashboard-url", metavar="URL", help="Address of the dashboard for the QR.")
@click.option("--brand", help="Names in the invite's link: svc or hermes.  [that of the relay; SVC_BRAND; svc]")
@click.option("--show", is_flag=True, help="Print code, key and invite, even where there is no terminal.")
@click.option("--png", is_flag=True, help="Write the QR as a PNG file, even where there is no terminal.")
@click.option("--no-qr", is_flag=True, help="Draw no QR and write no file.")
@click.option("--no-wait", is_flag=True, help="On a terminal, do not wait for the phone.")
@click.option("--no-relay", is_flag=True, help="Make a QR for the API server only.")
@json_option
@runtime_option
@version_option()
def main(
    *,
    ttl: str | None,
    grants: str | None,
    only: str | None,
    mode: str,
    public_url: str | None,
    prefer: str | None,
    register_code: str | None,
    transport_hint: str | None,
    keep: bool,
    revoke: str | None,
    host: str | None,
    port: int | None,
    dashboard_url: str | None,
    brand: str | None,
    show: bool,
    png: bool,
    no_qr: bool,
    no_wait: bool,
    no_relay: bool,
    as_json: bool,
    runtime: str,
) -> None:
    """Make a pairing code and show it as a QR for a phone to scan. Run it on the relay's own host."""
    from clients.commands.host_settings import read_relay_config, trust_for
    from clients.commands.service_runner import run_flow
    from svc_proto.cli.durations import parse_duration, parse_preset
    from svc_proto.cli.operator_output import invite_json, invite_lines
    from svc_proto.cli.operator_pairing import PairingRequest, create_invite
    from svc_proto.cli.pairing_candidates import CandidateMode
    from svc_proto.machines.pairing_codes import PairingMeta

    config = _with_running_dashboard(read_relay_config(brand=brand))
    if transport_hint is not None and register_code is None:
        raise CliError("--transport-hint is only for --register-code", code=USAGE_ERROR)
    if register_code is not None and revoke is not None:
        raise CliError("--register-code and --revoke exclude each other", code=USAGE_ERROR)
    meta = PairingMeta(
        ttl_seconds=config.pair_ttl if ttl is None else parse_duration(ttl, "--ttl"),
        grants=config.pair_grants if grants is None and only is None else parse_preset(grants, only),
        transport_hint=transport_hint,
        keep_earlier=keep,
    )
    if revoke is not None:
        _revoke(config, revoke, runtime, as_json=as_json)
        return
    if register_code is not None:
        _register(config, register_code, meta, runtime, as_json=as_json)
        return
    order = PairingRequest(
        config=config,
        meta=meta,
        mode=CandidateMode("mesh" if mode == "tailscale" else mode),
        public_url=public_url,
        prefer=prefer,
        host=host,
        port=port,
        dashboard_url=(dashboard_url or "").strip().rstrip("/") or None,
        with_relay=not no_relay,
        keyed=_is_keyed(config),
    )
    home = _home(config)
    since = time.time()  # sessions paired before this moment do not count
    invite = run_flow(lambda engine: create_invite(engine, order), runtime, home=home, client_tls=trust_for(config))
    for warning in invite.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    terminal = sys.stdout.isatty()
    if as_json:
        file = _write_png(invite.qr_payload, required=True) if png else None
        print_json({**invite_json(invite), "png": file})
        return
    print_lines(invite_lines(invite, hidden=not (terminal or show)))
    on_screen = terminal and not no_qr
    file = _write_png(invite.qr_payload, required=png) if png or on_screen else None
    if file is not None:
        print(f"\nPNG   {file}")
    if on_screen or file is not None:
        print_lines([f"It is for {config.brand.reader}.", CREDENTIALS])
    waits = terminal and not no_wait and invite.expires_at is not None
    draw = partial(_show_qr, invite, home=home, below=0 if waits else 1) if on_screen else None
    if waits:
        _await(config, since, invite.expires_at or 0, runtime, draw=draw, spends=None if png else file)
    elif draw is not None:
        draw()


def _await(
    config: RelayConfig,
    since: float,
    expires_at: int,
    runtime: str,
    *,
    draw: Callable[[], None] | None,
    spends: str | None,
) -> None:
    """Draw the QR with `draw`, if given, wait until a device pairs, and print its name.

    There is no progress line, since the QR may fill the terminal. Ctrl-C ends the wait, not the code. The file `spends`
    is deleted however the wait ends. Raises `CliError` if the code expires first.
    """
    from clients.commands.host_settings import trust_for
    from clients.commands.service_runner import run_service
    from svc_proto.basics.sanitize import sanitize_line
    from svc_proto.cli.host_devices import wait_for_device
    from svc_proto.cli.one_shot_service import OneShotService
    from svc_proto.cli.operator_requests import local_relay

    relay = local_relay(config)

    def wait(engine: Engine) -> Flow[str | None]:
        print("Waiting for the phone. Ctrl-C ends the wait; the code still works.")
        if draw is not None:
            draw()
        return (yield from wait_for_device(engine, relay, since=since, until=expires_at))

    try:  # Ctrl-C is handled while the service runs, so nothing is shown before
        name = run_service(OneShotService(wait), runtime, home=_home(config), client_tls=trust_for(config))
    finally:  # after Ctrl-C, too: no later program would delete the credentials
        print()
        if spends is not None:
            Path(spends).unlink(missing_ok=True)
    if name is None:
        raise CliError("the code has expired, and no device has paired: make another one with svc pair")
    print(f"{sanitize_line(name)} is paired.")


def _show_qr(invite: NewInvite, *, home: Path, below: int) -> None:
    """Draw the QR, or print why it cannot be drawn; repeat this when the terminal is resized until the code expires."""
    from runtimes.cli.terminal_qr import on_resize, render_qr, ssh_hint
    from runtimes.service_home.server_registry import find_running_server
    from svc_proto.machines.compact_invites import compact_payloads

    forms, board = compact_payloads(invite.qr_payload), find_running_server(home, "dashboard")

    def draw() -> None:
        qr = render_qr(forms, below=below)
        if qr.problem:
            print_lines(["", f"{qr.problem} Scan it from the PNG or the dashboard, or type code and key."])
        elif qr.form > 1 and len(invite.routes) > 1:
            print_lines(["A larger window shows a QR with all routes; this one has the first alone."])
        sys.stdout.write(qr.text)
        sys.stdout.flush()

    hint = "" if board is None else ssh_hint(board.url)
    print_lines([*([f"The dashboard shows the QR, too. {hint}"] if hint else []), ""])
    draw()
    expires_at = invite.expires_at
    on_resize(lambda: draw() if expires_at is None or time.time() < expires_at else None)


def _register(config: RelayConfig, text: str, meta: PairingMeta, runtime: str, *, as_json: bool) -> None:
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.basics.errors import Refused
    from svc_proto.cli.operator_output import granted_durations, meta_lines
    from svc_proto.cli.operator_requests import PROBE_TIMEOUT, register
    from svc_proto.machines.pairing_codes import normalize_code

    try:
        code = normalize_code(text)
    except Refused:
        raise CliError("--register-code must be six characters of A-Z and 0-9", code=USAGE_ERROR) from None

    def plan(engine: Engine, relay: RelayClient) -> Flow[str]:
        yield from relay.health(engine, within=PROBE_TIMEOUT)
        yield from register(engine, relay, code, meta)
        return relay.url

    url = run_on_local_relay(plan, config, runtime)
    if as_json:
        print_json(
            {
                "ok": True,
                "code": code,
                "relay_url": url,
                "ttl_seconds": meta.ttl_seconds,
                "grants": granted_durations(meta, config.max_session_ttl),
            }
        )
    else:
        print_lines(
            [
                f"Registered {code} at {url}: it works once, for 10 minutes.",
                *meta_lines(meta, config.max_session_ttl),
            ]
        )


def _revoke(config: RelayConfig, prefix: str, runtime: str, *, as_json: bool) -> None:
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.cli.operator_requests import KEY_IS_KNOWN, revoke, revoked_changes

    answer = run_on_local_relay(lambda engine, relay: revoke(engine, relay, prefix), config, runtime)
    if as_json:
        print_json(answer)
    else:
        print(f"Revoked {answer.get('revoked')}: its device has to pair again.")
        if answer.get("knows_api_key") is True:
            print(KEY_IS_KNOWN)
        print_lines(revoked_changes(answer))


def _write_png(text: str, *, required: bool) -> str | None:
    """Write a QR as a private PNG file in the temporary folder; return its path.

    If the file cannot be written, return None, or raise `CliError` if the file is required.
    """
    import os
    import tempfile

    import segno

    path = None
    try:
        fd, path = tempfile.mkstemp(prefix="svc-pair-", suffix=".png")
        with os.fdopen(fd, "wb") as file:
            segno.make(text, error="l", micro=False).save(file, kind="png", scale=6)
    except OSError as error:
        if path is not None:
            os.unlink(path)
        if required:
            raise CliError(f"the QR cannot be written to a file: {error_reason(error)}") from None
        return None
    return path


def _is_keyed(config: RelayConfig) -> bool:
    """Report whether an API runs on this host and requires a key."""
    from runtimes.service_home.server_registry import find_running_server

    api = find_running_server(_home(config), "api")
    return api is not None and api.key != ""


def _with_running_dashboard(config: RelayConfig) -> RelayConfig:
    """Return the configuration with the address of the running dashboard, if phones can reach it, else unchanged.

    They can if an API runs beside it, and it listens beyond loopback without TLS.
    """
    from attrs import evolve

    from runtimes.service_home.server_registry import find_running_server
    from svc_proto.machines.auth_rate_limiter import LOOPBACK

    home = _home(config)
    runs = find_running_server(home, "dashboard")
    if runs is None or runs.certificate is not None or runs.host in LOOPBACK:
        return config
    return config if find_running_server(home, "api") is None else evolve(config, dashboard=(runs.host, runs.port))


def _home(config: RelayConfig) -> Path:
    return Path(config.home).expanduser().absolute()


if __name__ == "__main__":
    main(prog_name="svc-pair")
