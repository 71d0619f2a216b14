"""Command line of the reference phone: `python -m clients.phone --remote ws://127.0.0.1:8767 --code ABC123`."""

from typing import Any

import click

from runtimes.cli.runtime_option import runtime_option
from servers.options import HELP, ProgramCommand
from svc_proto.phone.safety.bounds import (
    DEFAULT_IDLE_MINUTES,
    DEFAULT_TIMEOUT,
    MAX_IDLE_MINUTES,
    MAX_TIMEOUT,
    MIN_IDLE_MINUTES,
    MIN_TIMEOUT,
)

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m clients.phone --remote ws://127.0.0.1 --code ABC123 --master on
  python -m clients.phone --remote ws://127.0.0.1 --token 1c2d3e4f-… --allow
  python -m clients.phone --remote wss://h.example --code ABC123 --view
  python -m clients.phone --api http://192.168.1.5:8642 --code ABC123
  python -m clients.phone --remote ws://127.0.0.1 --code ABC123 --cellular
  python -m clients.phone --remote ws://127.0.0.1 --code ABC123 --block a.mail
  python -m clients.phone --pair-qr 'svc-relay://pair?payload=…' --allow-plain
  python -m clients.phone --remote ws://127.0.0.1 --token … --fetch MEDIA:/x
  python -m clients.phone --dashboard http://192.168.1.5:9119

\b
Register a code first, on the relay's host:
  curl -X POST http://127.0.0.1:8767/pairing

The phone asks its user before a call, a message, or text with a verb like "send". Answers: y, n, or a (yes, and do not
ask again).

Commands at a terminal: on and off switch Device Control; unattended, chip, accessibility, capture and overlay, each
with on or off, change a setting; show TEXT and tap N open attachments; notify TITLE: TEXT creates a notification; wifi
and cellular change the network.

say TEXT, or say FILE.wav (PCM of 16 bits, at most two minutes), speaks to the agent, which answers aloud (--sound FILE
records that). chat TEXT sends text to the agent, shell LINE sends a line to a terminal on the relay's host, and leave
ends both.

Device Control is off until it is turned on at the terminal or by --master on. Over wss the relay's key is pinned at the
first connection; --pin keeps a pin for the next start.

With --dashboard the phone uses the app's standard connection: it signs in to the dashboard with the password in
SVC_DASHBOARD_PASSWORD, and chats on its gateway. There is no relay and no Device Control then. chat TEXT sends a
prompt; y, a, n or say TEXT answer a question; leave stops the turn.

The phone reconnects after each loss of the connection.

Exit codes: 0 after a signal; 1 when the relay refuses the credential; 2 for bad options.
"""
SWITCHES = ("accessibility", "capture", "overlay")


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
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
@click.option(
    "--dashboard",
    metavar="URL",
    help="A dashboard's http:// or https:// address: only chat there, by the app's standard connection.",
)
@click.option("--password", envvar="SVC_DASHBOARD_PASSWORD", help="The dashboard's password.", show_envvar=True)
@click.option("--code", envvar="SVC_RELAY_CODE", help="Pairing code, six characters.")
@click.option("--token", envvar="SVC_RELAY_TOKEN", help="Session token of an earlier pairing.")
@click.option("--pin", metavar="sha256/…", help="Required key of the relay's certificate.")
@click.option("--ttl", metavar="DURATION", help="Lifetime to ask for.  [7d over plain ws, else 30d]")
@click.option("--name", default="Reference phone", show_default=True, help="Device name.")
@click.option("--device-id", default="reference-phone", show_default=True, help="Stable id of this device.")
@click.option("--print-token", is_flag=True, help="Print the session token after pairing.")
@click.option("--ask", "answers", flag_value="ask", help="Ask about each confirmation (the default at a terminal).")
@click.option("--allow", "answers", flag_value="allow", help="Answer every confirmation with yes.")
@click.option(
    "--deny", "answers", flag_value="deny", help="Answer every confirmation with no (the default without a terminal)."
)
@click.option(
    "--master",
    type=click.Choice(["on", "off"]),
    default="off",
    show_default=True,
    help="State of Device Control at the start.",
)
@click.option("--unattended", is_flag=True, help="Let commands wake the phone.")
@click.option("--chip", is_flag=True, help="Show the status chip over other apps.")
@click.option("--store-build", is_flag=True, help="Emulate the build of the app store, which has no Device Control.")
@click.option("--block", multiple=True, metavar="PACKAGE", help="Block an app, in addition to the default blocklist.")
@click.option("--unblock", multiple=True, metavar="PACKAGE", help="Do not block this app.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(SWITCHES),
    help="Start without this system permission (default: all granted).",
)
@click.option(
    "--idle-minutes",
    type=click.IntRange(MIN_IDLE_MINUTES, MAX_IDLE_MINUTES),
    default=DEFAULT_IDLE_MINUTES,
    show_default=True,
    help="Idle time after which Device Control turns itself off.",
)
@click.option(
    "--confirm-within",
    type=click.FloatRange(MIN_TIMEOUT, MAX_TIMEOUT),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="Seconds to answer a confirmation; the client waits 30.",
)
@click.option("--allow-plain", is_flag=True, help="Also use routes of a QR that are not encrypted.")
@click.option("--cellular", is_flag=True, help="Emulate a cellular network.")
@click.option("--fetch", multiple=True, metavar="TEXT", help="Fetch the media markers in this chat text.")
@click.option("--fetch-on-cellular", is_flag=True, help="Also fetch on a cellular network.")
@click.option(
    "--max-attachment-mb",
    type=click.IntRange(5, 100),
    default=25,
    show_default=True,
    help="Largest attachment that is fetched.",
)
@click.option(
    "--auto-fetch-mb",
    type=click.IntRange(0, 50),
    default=2,
    show_default=True,
    help="Largest attachment that is fetched without a question; stored, not enforced.",
)
@click.option(
    "--media-cache-mb",
    type=click.IntRange(50, 500),
    default=200,
    show_default=True,
    help="Size of the attachment cache in MB.",
)
@click.option("--notify", multiple=True, metavar="TEXT", help="Notification to create at the start: TITLE: TEXT.")
@click.option(
    "--sound", metavar="FILE", type=click.Path(dir_okay=False), help="Record the agent's speech to this WAV file."
)
@click.option("--view/--no-view", default=None, help="Show the safety gates (the default at a terminal).")
@click.option("--brand", type=click.Choice(["svc", "hermes"]), default="svc", show_default=True, envvar="SVC_BRAND")
@runtime_option
@click.option("--verbose", is_flag=True, help="Also log ignored messages.")
def main(runtime: str, **options: Any) -> None:
    """Run a simulated phone: pair with a relay and answer every Device Control route."""
    from clients.phone.program import phone_programs
    from servers.launch import launch

    launch(lambda: phone_programs(**options), runtime)


if __name__ == "__main__":
    main()
