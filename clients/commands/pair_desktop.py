"""`svc-relay pair`: pair this desktop with a relay, by a code or an invite (wire core 10.3, 10.4)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from svc_proto.cli.desktop_sessions import PairingResult
    from svc_proto.cli.invites import DesktopInvite

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay pair Q7M2ZK --remote ws://192.168.1.5  # the code of svc pair
  svc-relay pair --remote wss://home.example  # asks for the code
  svc-relay pair --pair-qr 'svc-relay://pair?payload=…'
  SVC_RELAY_PAIR_QR="$(cat invite)" svc-relay pair
  svc-relay pair Q7M2ZK --remote ws://192.168.1.5 --only chat,tui

--pair-qr takes an invite URL, its payload, or the JSON text of the QR. --only chat,tui pairs without a terminal.

Options override variables, and an invite overrides a code. The default port is 8767.

The session is stored in ~/.svc/remote-sessions.json (SVC_HOME). If the relay uses TLS, its key is pinned.

Exit codes: 0; 1 when the relay refuses or cannot be reached; 2 for bad options.
"""
TRIES = 3  # wire core 10.3


@click.command("pair", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("code", required=False)
@click.option("--code", "code_option", metavar="CODE", help="Pairing code, as the argument.  [SVC_RELAY_CODE]")
@click.option("--remote", metavar="URL", help="The relay's ws:// or wss:// address.  [SVC_RELAY_URL]")
@click.option(
    "--pair-qr", metavar="INVITE", help="Invite: URL, payload or JSON; - reads standard input.  [SVC_RELAY_PAIR_QR]"
)
@click.option("--name", help="Name of this device.  [host name]")
@click.option(
    "--ttl",
    metavar="DURATION",
    help="Lifetime to ask for where none is preset.  [7d over plain ws, else 30d]",
)
@click.option(
    "--only",
    metavar="CHANNEL,…",
    help="Ask for these channels and have all others withheld, as far as none are preset.",
)
@click.option("--new-certificate", is_flag=True, help="Accept that the relay has another certificate now.")
@json_option
@runtime_option
def main(
    code: str | None,
    code_option: str | None,
    remote: str | None,
    pair_qr: str | None,
    name: str | None,
    ttl: str | None,
    only: str | None,
    *,
    new_certificate: bool,
    as_json: bool,
    runtime: str,
) -> None:
    """Pair this desktop with a relay, and store the session."""
    from clients.commands.desktop_options import session_path
    from svc_proto.cli.desktop_output import paired_json, paired_lines
    from svc_proto.cli.durations import parse_duration, parse_preset
    from svc_proto.cli.invites import parse_desktop_invite

    span = None if ttl is None else parse_duration(ttl, "--ttl")
    typed = code or code_option
    pair_qr = sys.stdin.read() if pair_qr == "-" else pair_qr
    invite = _invite(pair_qr, typed)
    pairing = _DesktopPairing(name, span, parse_preset(None, only), runtime, new_certificate)
    if invite is not None:
        paired = pairing.use(parse_desktop_invite(*invite), by_qr=True)
    else:
        typed = typed or os.environ.get("SVC_RELAY_CODE") or os.environ.get("HERMES_RELAY_CODE")
        paired = _by_code(pairing, typed, remote)
    if as_json:
        print_json(paired_json(paired))
    else:
        print_lines(paired_lines(paired, str(session_path())))


def _invite(pair_qr: str | None, typed: str | None) -> tuple[str, str] | None:
    """Return the invite and the name of its source, or None if no source has one.

    The sources in order: `--pair-qr`, `typed` if that looks like an invite, and only without `typed` the environment.
    """
    from svc_proto.cli.input_parsing import looks_like_invite

    if pair_qr is not None:
        return pair_qr, "--pair-qr"
    if typed is not None:
        return (typed, "the invite") if looks_like_invite(typed) else None
    for variable in ("SVC_RELAY_PAIR_QR", "HERMES_RELAY_PAIR_QR"):
        if os.environ.get(variable):
            return os.environ[variable], variable
    return None


def _by_code(pairing: _DesktopPairing, typed: str | None, remote: str | None) -> PairingResult:
    from svc_proto.cli.desktop_connection import CredentialRefusedError
    from svc_proto.cli.input_parsing import looks_like_invite, parse_pairing_code, parse_relay_url
    from svc_proto.cli.invites import DesktopInvite, parse_desktop_invite
    from svc_proto.machines.candidate_selection import Candidate

    variable = os.environ.get("SVC_RELAY_URL") or os.environ.get("HERMES_RELAY_URL")
    if not remote and not variable:
        remote = _prompt_line("Relay address (ws://host or wss://host): ", "--remote ws://… is needed, or --pair-qr")
    url = parse_relay_url(remote) if remote else parse_relay_url(variable or "", "SVC_RELAY_URL")
    if typed:
        return pairing.use(DesktopInvite(parse_pairing_code(typed), (Candidate("", 0, url),)), by_qr=False)
    for left in reversed(range(TRIES)):
        text = _prompt_line("Pairing code: ", "a code is needed: svc-relay pair CODE")
        try:
            if looks_like_invite(text):
                return pairing.use(parse_desktop_invite(text, "that"), by_qr=True)
            return pairing.use(DesktopInvite(parse_pairing_code(text), (Candidate("", 0, url),)), by_qr=False)
        except CliError as error:
            # A wrong or refused code may be typed again; retrying cannot help with an unreachable relay.
            again = error.code == USAGE_ERROR or isinstance(error, CredentialRefusedError)
            if not left or not again:
                raise
            print(f"{error}. Try again.", file=sys.stderr)
    raise AssertionError("unreachable")


def _prompt_line(prompt: str, otherwise: str) -> str:
    """Return a line that the user types at the terminal. Raises `CliError`, code 2, without a terminal or input."""
    if not sys.stdin.isatty():
        raise CliError(otherwise, code=USAGE_ERROR)
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        print(file=sys.stderr)
    if not line:
        raise CliError(otherwise, code=USAGE_ERROR)
    return line.decode("utf-8", "replace").rstrip("\n")


class _DesktopPairing:
    """Options of one `svc-relay pair`, used with a code or an invite."""

    def __init__(
        self,
        name: str | None,
        span: int | None,
        grants: Mapping[str, float | None] | None,
        runtime: str,
        new_certificate: bool,
    ) -> None:
        self._name = name
        self._span = span
        self._grants = grants
        self._runtime = runtime
        self._new_certificate = new_certificate

    def use(self, invitation: DesktopInvite, *, by_qr: bool) -> PairingResult:
        """Pair with the relay of an invite, store the session, and return the result."""
        from clients.commands.desktop_options import run_on_desktop
        from svc_proto.cli.desktop_sessions import PairRequest, pair_desktop

        wanted = PairRequest(
            invitation=invitation,
            name=self._name,
            ttl_seconds=self._span,
            grants=self._grants,
            by_qr=by_qr,
            new_certificate=self._new_certificate,
        )
        return run_on_desktop(lambda engine: pair_desktop(engine, wanted), self._runtime)
