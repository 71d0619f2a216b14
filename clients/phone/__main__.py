"""The reference phone: `python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123`."""

from __future__ import annotations

import os
import sys
from typing import TextIO, cast

import click
from attrs import frozen

from clients.phone.handset import SimulatedHandset
from clients.phone.screen import Patient, Screen
from runtimes.compute import COMPUTE
from runtimes.host import Program, Services
from runtimes.logs import setup
from runtimes.option import runtime_option
from runtimes.tls import PinnedTls
from servers.launch import CannotStartError, launch, say_why
from servers.options import ProgramCommand
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.client.inputs import clean_remote
from svc_proto.client.pins import is_pin
from svc_proto.client.problem import Problem
from svc_proto.client.spans import parse_span
from svc_proto.commands import Level
from svc_proto.device.invite import Invite, read_invite
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.device.preferences import Preferences
from svc_proto.device.remote import DERIVED_PROBE, derived_relay
from svc_proto.device.route_choice import Candidate
from svc_proto.device.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.device.safety.confirmation import DEFAULT_TIMEOUT, MAX_TIMEOUT, MIN_TIMEOUT
from svc_proto.device.safety.master import DEFAULT_IDLE_MINUTES, MAX_IDLE_MINUTES, MIN_IDLE_MINUTES
from svc_proto.device.safety.settings import Answers, SafetySettings
from svc_proto.engine.core import Engine

__all__ = ["Face", "main", "phone_program"]

EXAMPLES = """
\b
Examples:
  python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123 --master on
  python -m clients.phone --remote ws://127.0.0.1:8767 --token 1c2d3e4f-… --allow
  python -m clients.phone --remote wss://relay.example --code ABC123 --runtime trio
  python -m clients.phone --api http://192.168.1.5:8642 --code ABC123
  python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123 --block com.example.mail --idle-minutes 5
  python -m clients.phone --pair-qr 'svc-relay://pair?payload=…' --allow-plain
  python -m clients.phone --remote ws://127.0.0.1:8767 --token 1c2d3e4f-… --fetch MEDIA:svc-relay://t0ken

\b
Register a code first, on the relay's host:
  curl -X POST http://127.0.0.1:8767/pairing

\b
Before a text with a verb like "send", a call or a message, the person is asked: y, n, or a (yes, and do not ask
again). At a terminal further words are heard: on and off for Device Control; unattended, chip, accessibility, capture
or overlay with on or off after it; show TEXT and tap N for attachments; notify TITLE: TEXT for a notification; wifi and
cellular for another network.

\b
Device Control is off until somebody turns it on, here, or with --master on at the start. Over wss the relay's key is
pinned at the first connection; --pin keeps one for the next start.

\b
It comes back after every loss of the connection. Exit codes: 0 after a signal, 1 when the relay refuses the
credential, 2 for bad options.
"""
SWITCHES = ("accessibility", "capture", "overlay")


@frozen(kw_only=True)
class Face:
    """How the phone meets its person: whether it reads the keyboard and shows the gates, and what may be printed."""

    keyboard: bool = False
    view: bool = False
    print_token: bool = False


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--remote", envvar="SVC_RELAY_URL", help="The relay's ws:// or wss:// address.")
@click.option(
    "--pair-qr",
    envvar="SVC_RELAY_PAIR_QR",
    metavar="PAYLOAD",
    help="Text or URL of a pairing QR, in place of --remote and --code: the routes in it are chosen from.",
)
@click.option(
    "--api",
    envvar="SVC_API_URL",
    metavar="URL",
    help="The API server's http:// or https:// address, in place of --remote: the relay is beside it, on port 8767.",
)
@click.option("--code", envvar="SVC_RELAY_CODE", help="Pairing code, six characters.")
@click.option("--token", envvar="SVC_RELAY_TOKEN", help="Session token of an earlier pairing.")
@click.option("--pin", metavar="sha256/…", help="The relay's certificate has to have this key.")
@click.option("--ttl", metavar="DURATION", help="Lifetime to ask for.  [7d over plain ws, else 30d]")
@click.option("--name", default="Reference phone", show_default=True, help="Device name.")
@click.option("--device-id", default="reference-phone", show_default=True, help="Stable id of this device.")
@click.option("--print-token", is_flag=True, help="Print the session token after pairing.")
@click.option("--ask", "answers", flag_value="ask", help="Ask about each confirmation (the default at a terminal).")
@click.option("--allow", "answers", flag_value="allow", help="Answer every confirmation with yes.")
@click.option("--deny", "answers", flag_value="deny", help="Answer with no (the default without a terminal).")
@click.option(
    "--master", type=click.Choice(["on", "off"]), default="off", show_default=True, help="Device Control, at the start."
)
@click.option("--unattended", is_flag=True, help="Let commands wake the phone.")
@click.option("--chip", is_flag=True, help="Show the status chip over other apps.")
@click.option("--store-build", is_flag=True, help="Be the build of the app store, which has no Device Control.")
@click.option("--block", multiple=True, metavar="PACKAGE", help="Block an app, beside those blocked by default.")
@click.option("--unblock", multiple=True, metavar="PACKAGE", help="Do not block this app.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(SWITCHES),
    help="Start without this permission of the system (all are granted).",
)
@click.option(
    "--idle-minutes",
    type=click.IntRange(MIN_IDLE_MINUTES, MAX_IDLE_MINUTES),
    default=DEFAULT_IDLE_MINUTES,
    show_default=True,
    help="Without a command for so long, Device Control turns itself off.",
)
@click.option(
    "--confirm-within",
    type=click.FloatRange(MIN_TIMEOUT, MAX_TIMEOUT),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="Seconds to answer a question; over 30 the caller has given up before.",
)
@click.option("--allow-plain", is_flag=True, help="Use routes of a QR that are not encrypted, too.")
@click.option("--cellular", is_flag=True, help="Be on a cellular network.")
@click.option("--fetch", multiple=True, metavar="TEXT", help="Fetch the media markers in this chat text.")
@click.option("--fetch-on-cellular", is_flag=True, help="Fetch on a cellular network without being asked.")
@click.option(
    "--max-attachment-mb",
    type=click.IntRange(5, 100),
    default=25,
    show_default=True,
    help="A larger attachment is not fetched.",
)
@click.option(
    "--auto-fetch-mb",
    type=click.IntRange(0, 50),
    default=2,
    show_default=True,
    help="Size up to which attachments come by themselves; stored, and not enforced.",
)
@click.option(
    "--media-cache-mb", type=click.IntRange(50, 500), default=200, show_default=True, help="Attachments that are kept."
)
@click.option("--notify", multiple=True, metavar="TEXT", help="A notification that has come: TITLE: TEXT.")
@click.option("--view/--no-view", default=None, help="Show the safety gates (the default at a terminal).")
@click.option("--brand", type=click.Choice(list(BRANDS)), default="svc", show_default=True, envvar="SVC_BRAND")
@runtime_option
@click.option("--verbose", is_flag=True, help="Log what is ignored, too.")
def main(
    *,
    remote: str | None,
    pair_qr: str | None,
    api: str | None,
    code: str | None,
    token: str | None,
    pin: str | None,
    ttl: str | None,
    name: str,
    device_id: str,
    print_token: bool,
    answers: str | None,
    master: str,
    unattended: bool,
    chip: bool,
    store_build: bool,
    block: tuple[str, ...],
    unblock: tuple[str, ...],
    without: tuple[str, ...],
    idle_minutes: int,
    confirm_within: float,
    allow_plain: bool,
    cellular: bool,
    fetch: tuple[str, ...],
    fetch_on_cellular: bool,
    max_attachment_mb: int,
    auto_fetch_mb: int,
    media_cache_mb: int,
    notify: tuple[str, ...],
    view: bool | None,
    brand: str,
    runtime: str,
    verbose: bool,
) -> None:
    """Be a phone: pair with a relay and answer every Device Control route from a simulated device."""

    def programs() -> list[Program]:
        preferences = Preferences(
            max_inbound_mb=max_attachment_mb,
            auto_fetch_threshold_mb=auto_fetch_mb,
            auto_fetch_on_cellular=fetch_on_cellular,
            cache_cap_mb=media_cache_mb,
            allow_plain=allow_plain,
        )
        probe = "/health"
        if pair_qr:
            where = _invited(pair_qr, preferences)
        elif api and not remote:
            where, probe = _beside(api, code), DERIVED_PROBE
        else:
            where = Invite(remote=_checked(remote), code=code or "")
        if pin is not None and not is_pin(pin):
            raise CannotStartError("--pin must be sha256/ and 44 characters of Base64", code=2)
        config = PhoneConfig(
            remote=where.remote,
            routes=where.routes,
            probe=probe,
            pin=pin,
            ttl_seconds=None if ttl is None else _span(ttl),
            code=where.code or None,
            token=token or None,
            device_name=name,
            device_id=device_id,
            scheme=BRANDS[brand].scheme,
            preferences=preferences,
            on_cellular=cellular,
            texts=fetch,
            notices=notify,
        )
        if config.code is None and config.token is None:
            raise CannotStartError("--code or --token is needed", code=2)
        terminal = _at_terminal(sys.stdin)
        if answers == "ask" and sys.stdin is None:
            raise CannotStartError("--ask needs standard input", code=2)
        safety = SafetySettings(
            armed=master == "on",
            answers=Answers(answers or ("ask" if terminal else "deny")),
            unattended=unattended,
            chip=chip,
            idle_minutes=idle_minutes,
            confirmation_timeout=confirm_within,
            blocklist=tuple(package for package in (*DEFAULT_BLOCKLIST, *block) if package not in unblock),
        )
        face = Face(
            keyboard=terminal or answers == "ask",
            view=sys.stdout.isatty() if view is None else view,
            print_token=print_token,
        )
        handset = SimulatedHandset(name=name, build="googlePlay" if store_build else "sideload")
        handset.device.permissions.accessibility = "accessibility" not in without
        handset.device.permissions.screen_capture = "capture" not in without
        handset.device.permissions.overlay = "overlay" not in without
        return [phone_program(config, handset, safety, face, verbose=verbose)]

    launch(programs, runtime)


def phone_program(
    config: PhoneConfig,
    handset: SimulatedHandset,
    safety: SafetySettings,
    face: Face,
    *,
    verbose: bool = False,
) -> Program:
    """The phone as a program for a loop."""
    level = Level.DEBUG if verbose else Level.INFO
    phone = Phone(config, handset, safety, watched=face.view)
    out, err = _streams(waiting=face.keyboard)
    pins = PinnedTls()
    screen = Screen(out, view=face.view, print_token=face.print_token)
    return Program(
        core=Engine(phone, entropy=os.urandom, log_level=level),
        stdio=face.keyboard,
        services=Services(
            logger=setup(int(level), name="svc.phone", stream=err),
            client_tls=pins,
            compute={**COMPUTE, "tls.expect": pins.expect, "tls.seen": pins.seen},
        ),
        on_tell=screen.tell,
        on_exit=say_why,
    )


def _streams(*, waiting: bool) -> tuple[TextIO, TextIO]:
    """Standard output and error. Who reads the keyboard makes them not blocking, so whoever writes has to wait."""
    return (cast("TextIO", Patient(1)), cast("TextIO", Patient(2))) if waiting else (sys.stdout, sys.stderr)


def _at_terminal(stream: TextIO | None) -> bool:
    """Whether a person can be asked: the terminal is ours to read, which in the background it is not."""
    if stream is None or not stream.isatty():
        return False
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not the terminal that controls us
        return True


def _invited(text: str, preferences: Preferences) -> Invite:
    try:
        return read_invite(text, preferences)
    except Refused as refusal:
        hint = ": see --allow-plain" if refusal.code == "plain_route" else ""
        raise CannotStartError(f"--pair-qr cannot be used: {refusal.message}{hint}", code=2) from refusal


def _span(text: str) -> int:
    try:
        return parse_span(text, "--ttl")
    except Problem as problem:
        raise CannotStartError(str(problem), code=2) from problem


def _beside(api: str, code: str | None) -> Invite:
    """The relay that an API server has beside it, by convention."""
    try:
        relay = derived_relay(api)
    except RemoteProtocolError as error:
        raise CannotStartError(f"--api cannot be used: {error}", code=2) from error
    return Invite(remote=relay, code=code or "", routes=(Candidate("derived", 0, relay),))


def _checked(remote: str | None) -> str:
    if not remote:
        raise CannotStartError("--remote, --api or --pair-qr is needed", code=2)
    try:
        return clean_remote(remote)
    except Problem as problem:
        raise CannotStartError(str(problem), code=2) from problem


if __name__ == "__main__":
    main()
