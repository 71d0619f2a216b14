"""Set-up of the reference phone: builds its program from the options of the command line."""

import os
import sys
import wave
from array import array
from pathlib import Path
from typing import TextIO, cast

from attrs import frozen

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.record_apps import ALL_APPS
from clients.phone.terminal_display import BlockingStream, PhoneDisplay
from runtimes.failures import HostError
from runtimes.host.compute import COMPUTE_FUNCTIONS
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.tls.contexts import PinnedTrust
from servers.launch import CannotStartError, print_exit_reason
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.certificate_pins import is_pin
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.resampler import Resampler
from svc_proto.cli.durations import parse_duration
from svc_proto.cli.errors import CliError
from svc_proto.cli.input_parsing import parse_relay_url
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.facts import FailureKind
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.phone.dashboard_phone import DashboardPhone, DashboardPhoneConfig
from svc_proto.phone.invite import Invite, parse_phone_invite
from svc_proto.phone.preferences import Preferences
from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig
from svc_proto.service_clients.relay_url import DERIVED_PROBE, derive_relay_url
from svc_proto.wire.urls import parse_url

__all__ = ["TerminalOptions", "phone_program", "phone_programs", "read_speech"]


@frozen(kw_only=True)
class TerminalOptions:
    """Options of the phone's terminal: keyboard input, display of the safety gates, printed token, file for speech."""

    keyboard: bool = False
    view: bool = False
    print_token: bool = False
    sound: Path | None = None  # WAV file for the agent's speech


def phone_programs(
    *,
    remote: str | None,
    pair_qr: str | None,
    api: str | None,
    dashboard: str | None,
    password: str | None,
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
    sound: str | None,
    view: bool | None,
    brand: str,
    verbose: bool,
) -> list[Program]:
    """Build the phone's program from the options of the command line.

    Raises `CannotStartError`, code 2, for options that cannot be used.
    """
    if dashboard:
        return [dashboard_phone_program(dashboard, password or "", verbose=verbose)]
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
        answers=ConfirmationPolicy(answers or ("ask" if terminal else "deny")),
        unattended=unattended,
        chip=chip,
        idle_minutes=idle_minutes,
        confirmation_timeout=confirm_within,
        blocklist=tuple(package for package in (*DEFAULT_BLOCKLIST, *block) if package not in unblock),
    )
    face = TerminalOptions(
        keyboard=terminal or answers == "ask",
        view=sys.stdout.isatty() if view is None else view,
        print_token=print_token,
        sound=None if sound is None else Path(sound),
    )
    emulated = EmulatedPhone(name=name, seed_apps=ALL_APPS, build="googlePlay" if store_build else "sideload")
    emulated.device.permissions.accessibility = "accessibility" not in without
    emulated.device.permissions.screen_capture = "capture" not in without
    emulated.device.permissions.overlay = "overlay" not in without
    return [phone_program(config, emulated, safety, face, verbose=verbose)]


def phone_program(
    config: PhoneConfig,
    emulated: EmulatedPhone,
    safety: SafetySettings,
    face: TerminalOptions,
    *,
    verbose: bool = False,
) -> Program:
    """Build the program that runs a phone on an emulator and shows it on the terminal."""
    level = Level.DEBUG if verbose else Level.INFO
    phone = Phone(config, emulated, safety, watched=face.view)
    out, err = _streams(waiting=face.keyboard)
    pins = PinnedTrust()
    screen = PhoneDisplay(out, view=face.view, print_token=face.print_token, sound=face.sound)
    return Program(
        core=Engine(phone, entropy=os.urandom, log_level=level),
        stdio=face.keyboard,
        services=Services(
            logger=setup_logging(int(level), name="svc.phone", stream=err),
            client_tls=pins,
            compute={**COMPUTE_FUNCTIONS, "tls.expect": pins.expect, "tls.seen": pins.seen, "speech.read": read_speech},
        ),
        on_notify=screen.on_notify,
        on_exit=print_exit_reason,
    )


def dashboard_phone_program(url: str, password: str, *, verbose: bool = False) -> Program:
    """Build the program of a phone that chats through a dashboard, which is the app's standard connection.

    Raises `CannotStartError`, code 2, for an unusable address.
    """
    try:
        scheme = parse_url(url).scheme
    except RemoteProtocolError as error:
        raise CannotStartError(f"--dashboard cannot be used: {error}", code=2) from error
    if scheme not in ("http", "https"):
        raise CannotStartError("--dashboard must be an address such as http://192.168.1.5:9119", code=2)
    level = Level.DEBUG if verbose else Level.INFO
    config = DashboardPhoneConfig(url=url.rstrip("/"), password=password)
    keyboard = sys.stdin is not None
    out, err = _streams(waiting=keyboard)
    screen = PhoneDisplay(out, view=False, print_token=False)
    return Program(
        core=Engine(DashboardPhone(config), entropy=os.urandom, log_level=level),
        stdio=keyboard,
        services=Services(logger=setup_logging(int(level), name="svc.phone", stream=err)),
        on_notify=screen.on_notify,
        on_exit=print_exit_reason,
    )


def _streams(*, waiting: bool) -> tuple[TextIO, TextIO]:
    """Return the streams for standard output and error; with `waiting`, ones whose writes block.

    Keyboard input that is read without blocking makes the terminal's output non-blocking as well.
    """
    return (
        (cast("TextIO", BlockingStream(1)), cast("TextIO", BlockingStream(2))) if waiting else (sys.stdout, sys.stderr)
    )


def _at_terminal(stream: TextIO | None) -> bool:
    """Report whether a stream is a terminal, unless this process is in the background of its controlling terminal."""
    if stream is None or not stream.isatty():
        return False
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not the controlling terminal
        return True


def _invited(text: str, preferences: Preferences) -> Invite:
    try:
        return parse_phone_invite(text, preferences)
    except Refused as refusal:
        hint = ": see --allow-plain" if refusal.code == "plain_route" else ""
        raise CannotStartError(f"--pair-qr cannot be used: {refusal.message}{hint}", code=2) from refusal


def _span(text: str) -> int:
    try:
        return parse_duration(text, "--ttl")
    except CliError as problem:
        raise CannotStartError(str(problem), code=2) from problem


def _beside(api: str, code: str | None) -> Invite:
    """Return an invite with the relay beside an API server, at the conventional address.

    Raises `CannotStartError`, code 2, for an unusable address.
    """
    try:
        relay = derive_relay_url(api)
    except RemoteProtocolError as error:
        raise CannotStartError(f"--api cannot be used: {error}", code=2) from error
    return Invite(remote=relay, code=code or "", routes=(Candidate("derived", 0, relay),))


def _checked(remote: str | None) -> str:
    if not remote:
        raise CannotStartError("--remote, --api or --pair-qr is needed", code=2)
    try:
        return parse_relay_url(remote)
    except CliError as problem:
        raise CannotStartError(str(problem), code=2) from problem


def read_speech(path: str, rate: int, longest: float) -> bytes:
    """Return the first channel of a WAV file (PCM of 16 bits) at `rate` Hz; `longest` is in seconds.

    Raises `HostError`, whose text is for the user.
    """
    try:
        with Path(path).expanduser().open("rb") as file, wave.open(file) as sound:
            of = sound.getparams()
            if of.sampwidth != 2:
                raise HostError(FailureKind.INVALID, f"it has {8 * of.sampwidth} bits a sample; 16 are understood")
            if not 0 < of.nframes <= longest * of.framerate:
                raise HostError(FailureKind.INVALID, f"it has to hold speech, of {longest:.0f} s at most")
            samples = array("h", sound.readframes(of.nframes))[:: of.nchannels]
    except OSError as error:
        raise HostError(FailureKind.NOT_FOUND, (error.strerror or "it cannot be read").lower()) from error
    except (wave.Error, EOFError, ValueError) as error:
        raise HostError(FailureKind.INVALID, "it is no WAV file of plain PCM, or ends too early") from error
    return Resampler(of.framerate, rate).feed(samples.tobytes())
