"""All servers in one process, with a pairing QR on the terminal: `python -m servers`. The relay for now."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import cast

import click

from svc_proto.engine.errand import Errand
from runtimes.host import Program, Services
from servers.launch import launch, relay_options
from servers.relay import read_config, relay_program
from svc_proto.basics import strict_json
from svc_proto.commands import Tell
from svc_proto.engine.client import fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers                       everything on its default port, with a QR to scan
  python -m servers --host 127.0.0.1      for this host only
  python -m servers --runtime trio        on another event loop
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@relay_options
@click.option("--qr/--no-qr", default=True, show_default=True, help="Make a pairing code at the start and show it.")
def main(runtime: str, *, qr: bool, **options: object) -> None:
    """Run every server in one process and show how to pair a phone."""

    def programs() -> list[Program]:
        relay = relay_program(read_config(os.environ, options))
        port = relay.listeners[0].address.port
        tls = relay.listeners[0].tls is not None
        return [relay, _inviter(port)] if qr and not tls else [relay]

    launch(programs, runtime)


def _inviter(port: int) -> Program:
    """Asks the relay, as a program on its host, for a code, and shows it."""

    def plan(engine: Engine) -> Flow[int]:
        answer = yield from fetch(engine, "POST", f"http://127.0.0.1:{port}/pairing/mint", within=10.0)
        if isinstance(answer, Failure) or answer.status != 200:
            engine.emit(Tell("no invite", {}))
        else:
            engine.emit(Tell("invite", cast("dict[str, object]", strict_json.loads(answer.body))))
        return 0

    return Program(core=Engine(Errand(plan), entropy=os.urandom), services=Services(), on_tell=_show)


def _show(news: Tell) -> None:
    if news.event != "invite":
        print("No pairing code: the relay does not answer on 127.0.0.1.", file=sys.stderr)
        return
    invite: Mapping[str, object] = news.fields
    if sys.stdout.isatty():
        _draw(str(invite["qr_payload"]))
    print(f"Scan the QR, or enter the code {invite['code']} at {invite['relay_url']} within 10 minutes.")
    print(f"Invite URL (holds credentials): {invite['pairing_url']}", flush=True)


def _draw(text: str) -> None:
    import segno  # noqa: PLC0415, RUF100 - only where a QR is drawn

    segno.make(text, error="l", micro=False).terminal(compact=True)



if __name__ == "__main__":
    main()
