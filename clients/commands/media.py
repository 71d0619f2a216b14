"""`svc-relay media get`: fetch a file from the relay."""

import click

from clients.commands.cli import SETTINGS, json_option, print_json
from clients.commands.desktop_options import relay_selection, run_on_relay, session_options
from clients.commands.saved_file import SavedFile
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay media get MEDIA:svc-relay://k3yK…  # a marker from a chat
  svc-relay media get k3yK… -o picture.png
  svc-relay media get /home/me/.svc/workspace/report.pdf
  svc-relay media get k3yK… -o - | less
"""


@click.group("media", epilog=EXAMPLES, context_settings=SETTINGS)
def main() -> None:
    """Fetch files from the relay."""


@main.command("get", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("what", metavar="TOKEN|MARKER|PATH")
@click.option("-o", "--output", metavar="FILE", help="Output file; - is standard output.  [name of the file]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@session_options
@json_option
@runtime_option
def get(
    what: str, output: str | None, remote: str | None, token: str | None, *, force: bool, as_json: bool, runtime: str
) -> None:
    """Fetch a file by its token, its marker, or its path on the relay's host."""
    from svc_proto.cli.relay_requests import media_path, save_media

    path, who = media_path(what), relay_selection(remote, token)
    if output == "-" and as_json:
        raise CliError("--json and -o - exclude each other", code=USAGE_ERROR)

    target = SavedFile(output, force=force)
    try:
        found = run_on_relay(
            lambda engine, relay: save_media(engine, relay, path), who, runtime, on_tell=target.on_notify
        )
        file = target.finish()
    finally:
        target.abandon()
    if as_json:
        print_json({"ok": True, "file": file, "size": found.size, "content_type": found.content_type})
    elif file is not None:
        print(f"{file}: {found.size} bytes, {found.content_type}")
