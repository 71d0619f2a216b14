"""`svc-relay chat`: send a message to the agent, and show its answer and tool calls as they arrive."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

import click

from clients.commands.answer_writer import AnswerWriter
from clients.commands.cli import SETTINGS, json_text
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from svc_proto.commands import Notify

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay chat 'What is on the phone?'
  svc-relay chat --session 5f0d… 'And now?'  # continue a session
  svc-relay chat --app com.example.mail 'Is there mail from Ada?'
  git diff | svc-relay chat -  # read the message from standard input
  svc-relay chat --json hello | jq -r '.data.delta // empty'

The answer goes to standard output; tool calls and the session's id go to standard error. --json prints each event of
the server on one line: {"event": …, "data": {…}}.

At a terminal the command asks before the agent acts: y allows the action once, "session" and "always" allow it from
then on, any other answer denies it. Ctrl-C stops the agent. At the end it lists the acts that failed, were denied or
changed nothing, and what was left open.

The API server is that of this host, else that of the invite by which this desktop was paired (svc-relay pair
--pair-qr), else that of the settings.

Exit codes: 0; 1 when the server refuses, cannot be reached, or the agent did not finish; 2 for bad options.
"""


@click.command("chat", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("message", required=False)
@click.option("--session", metavar="ID", help="Session to continue.  [a new one]")
@click.option(
    "--app", "apps", metavar="PACKAGE", multiple=True, help="App of the task: acts in others need a yes; repeatable."
)
@click.option(
    "--api-url", envvar="SVC_API_URL", metavar="URL", help="Address of the API server.  [SVC_API_URL; configuration]"
)
@click.option("--api-key", envvar="API_SERVER_KEY", help="Key of the API server.  [API_SERVER_KEY; configuration]")
@click.option("--json", "as_json", is_flag=True, help="Print each event as one JSON line.")
@runtime_option
def main(
    message: str | None,
    session: str | None,
    apps: tuple[str, ...],
    api_url: str | None,
    api_key: str | None,
    *,
    as_json: bool,
    runtime: str,
) -> int:
    """Send a message to the agent and stream its answer."""
    from clients.commands.host_settings import read_relay_config, trust_for_api
    from clients.commands.service_runner import run_service
    from svc_proto.cli.chat import ChatRequest, ChatService, find_api_client
    from svc_proto.settings import http_address

    if message in (None, "-"):
        if message is None and sys.stdin.isatty():
            raise CliError("a message is needed: as an argument, or on standard input", code=USAGE_ERROR)
        message = sys.stdin.read()
    if not message or not message.strip():
        raise CliError("the message is empty", code=USAGE_ERROR)
    if api_url is not None and http_address(api_url) is None:
        raise CliError("--api-url must be an http:// or https:// URL without a password", code=USAGE_ERROR)
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise CliError("--api-key must be printable ASCII", code=USAGE_ERROR)
    asks = _somebody_is_there()
    config = read_relay_config()
    order = ChatRequest(message=message, session=session, raw=as_json, asks=asks, apps=apps)
    address = None if api_url is None else api_url.rstrip("/")
    if address is None and config.webapi_inside is None and not (config.api_host or config.api_port):
        address, api_key = _paired_api(api_key)

    service = ChatService(
        lambda engine: find_api_client(engine, config, address, api_key), order, watched=sys.stderr.isatty()
    )
    writer = _ChatWriter()
    # A server named by --api-url must be trusted by the system.
    trust = trust_for_api() if address is None and config.webapi_inside is None else None
    try:
        end = run_service(service, runtime, client_tls=trust, on_tell=writer.on_notify, stdio=asks)
    except KeyboardInterrupt:
        writer.finish()
        if service.stopped is not None:
            print("[stopped]" if service.stopped else "[left; the agent may still be at work]", file=sys.stderr)
        raise
    finally:
        writer.finish()
    if not as_json and session is None:
        print(f"[session {end.session}]", file=sys.stderr)
    if not end.completed:
        raise CliError("the agent did not finish")
    return 0


def _paired_api(key: str | None) -> tuple[str | None, str | None]:
    """Return URL and key of the API server that the stored sessions name; a given `key` replaces its key.

    Returns (None, `key`) if no stored session names an API server, or the sessions are unreadable.
    """
    from clients.commands.host_settings import service_home
    from clients.commands.session_file import SessionFile
    from svc_proto.cli.session_store import latest_api, parse_sessions

    try:
        found = latest_api(parse_sessions(SessionFile(service_home()).read()))
    except OSError:
        found = None
    return (None, key) if found is None else (found.api_url, found.api_key if key is None else key)


def _somebody_is_there() -> bool:
    """Report whether standard input and error are a terminal and this process is in the terminal's foreground.

    A background job must not touch the terminal.
    """
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


class _ChatWriter(AnswerWriter):
    def on_notify(self, news: Notify) -> None:
        match news.event:
            case "event":
                line = {"event": news.fields["event"], "data": news.fields["data"]}
                print(json_text(line), flush=True)
            case "text":
                self.write(str(news.fields["text"]))
            case "question":
                self.finish()
                choices = "/".join(map(str, cast("list[object]", news.fields["choices"])))
                print(f"{news.fields['text']}\nMay it? [{choices}] ", end="", file=sys.stderr, flush=True)
            case "tool":
                self.write_note(str(news.fields["line"]))
