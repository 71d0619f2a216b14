"""All servers in one process, with a way to pair a phone on the terminal: `python -m servers`. The relay for now."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Mapping
from typing import cast

import click
from attrs import evolve

from runtimes.host import Program, Services
from runtimes.tls import client_context
from servers.launch import ProgramCommand, launch, relay_options
from servers.relay import announce, open_listener, read_config, relay_program
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_code
from svc_proto.commands import Tell
from svc_proto.config import RelayConfig
from svc_proto.engine.client import fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.errand import Errand
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.machines.pairing import CODE_LIFETIME
from svc_proto.relay.access import LOOPBACK

__all__ = ["main"]

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # bind addresses that loopback is part of
WITHIN = f"within {CODE_LIFETIME / 60:.0f} minutes"

EXAMPLES = """
\b
Examples:
  python -m servers                       everything on its default port, with a QR to scan
  python -m servers --host 127.0.0.1      for this host only
  python -m servers --runtime trio        on another event loop
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@relay_options
@click.option("--qr/--no-qr", default=True, show_default=True, help="Make a pairing code at the start and show it.")
def main(runtime: str, *, qr: bool, **options: object) -> None:
    """Run every server in one process and show how to pair a phone."""

    def programs() -> list[Program]:
        config = read_config(os.environ, options)
        return _with_invite(config) if qr else [relay_program(config)]

    launch(programs, runtime)


def _with_invite(config: RelayConfig) -> list[Program]:
    listener = open_listener(config)
    host = ANYWHERE.get(listener.address.host, listener.address.host)
    if host in LOOPBACK:
        return [relay_program(config, listener=listener), _inviter(config, host, listener.address.port)]
    # Only programs that come from loopback may ask for a code (wire core 2), and there this relay is not: it is
    # born with one instead.
    coded = evolve(config, pairing_code=config.pairing_code or new_code(os.urandom))
    return [relay_program(coded, listener=listener, on_ready=_show_code)]


# --- asking the relay ---------------------------------------------------------------------------------------------


class _Invitation(Errand):
    """A stop before the answer is no failure: the relay decides the exit code."""

    def on_stopping(self) -> None:
        self._engine.exit(0)


def _inviter(config: RelayConfig, host: str, port: int) -> Program:
    """Asks the relay, as a program on its host, for an invite, and shows it."""
    scheme = "https" if config.tls else "http"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/pairing/mint"

    def plan(engine: Engine) -> Flow[int]:
        answer = yield from fetch(engine, "POST", url, within=10.0)
        if isinstance(answer, Failure):
            engine.emit(Tell("no invite", {"why": f"{answer.kind.value} {answer.detail}".strip()}))
        elif answer.status != 200:
            engine.emit(Tell("no invite", {"why": f"it answered {answer.status}"}))
        else:
            engine.emit(Tell("invite", cast("dict[str, object]", strict_json.loads(answer.body))))
        return 0

    services = Services(client_tls=_trust_in(config.ssl_cert) if config.ssl_cert is not None else None)
    return Program(core=Engine(_Invitation(plan), entropy=os.urandom), services=services, on_tell=_show)


def _trust_in(certificate: str) -> ssl.SSLContext:
    """Trust in this one certificate, whoever issued it and whatever name it bears: it is our own."""
    context = client_context(certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


# --- showing ------------------------------------------------------------------------------------------------------


def _show(news: Tell) -> None:
    if news.event != "invite":
        print(f"No pairing code: the relay could not be asked ({news.fields['why']}).", file=sys.stderr, flush=True)
        return
    invite: Mapping[str, object] = news.fields
    if sys.stdout.isatty():
        _draw(str(invite["qr_payload"]))
    print(f"Scan the QR, or enter the code {invite['code']} at {invite['relay_url']} {WITHIN}.")
    print(f"Invite URL (holds credentials): {invite['pairing_url']}", flush=True)


def _show_code(config: RelayConfig) -> None:
    announce(config)
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"{'wss' if config.tls else 'ws'}://{host}:{config.port}"
    print(f"Enter the code {config.pairing_code} at {url} {WITHIN}.")
    print(
        f"No QR, and no further codes while the relay runs: for those it must listen on loopback too, and with "
        f"--host {config.host} it does not. Use --host 0.0.0.0.",
        flush=True,
    )


def _draw(text: str) -> None:
    import segno  # noqa: PLC0415, RUF100 - only where a QR is drawn

    segno.make(text, error="l", micro=False).terminal(compact=True)


if __name__ == "__main__":
    main()
