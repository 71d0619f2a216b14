"""`svc-relay media get`: fetch a file that the relay hands out."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, json_option, print_json, runtime_option
from clients.commands.desktop import on_desktop, who_options, whom
from svc_proto.client.problem import MISUSED, Problem

if TYPE_CHECKING:
    from svc_proto.commands import Tell

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay media get MEDIA:svc-relay://k3yK…       a marker as it stands in a chat
  svc-relay media get k3yK… -o picture.png
  svc-relay media get /home/me/.svc/workspace/report.pdf
  svc-relay media get k3yK… -o - | less
"""


@click.group("media", epilog=EXAMPLES, context_settings=SETTINGS)
def main() -> None:
    """Files that the relay hands out."""


@main.command("get", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("what", metavar="TOKEN|MARKER|PATH")
@click.option("-o", "--output", metavar="FILE", help="Where to put it; - writes it to standard output.  [its own name]")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@who_options
@json_option
@runtime_option
def get(
    what: str, output: str | None, remote: str | None, token: str | None, *, force: bool, as_json: bool, runtime: str
) -> None:
    """Fetch a file by its token, its marker, or its path on the relay's host."""
    from svc_proto.client.desk import find_session, target_for
    from svc_proto.client.remote import Media, media_path, save_media
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow

    path, who = media_path(what), whom(remote, token)
    if output == "-" and as_json:
        raise Problem("--json and -o - exclude each other", code=MISUSED)

    def plan(engine: Engine) -> Flow[Media]:
        session = yield from find_session(engine, who)
        relay = yield from target_for(engine, session)
        return (yield from save_media(engine, relay, path))

    target = _Target(output, force=force)
    try:
        found = on_desktop(plan, runtime, on_tell=target.tell)
        file = target.finish()
    finally:
        target.give_up()
    if as_json:
        print_json({"ok": True, "file": file, "size": found.size, "content_type": found.content_type})
    elif file is not None:
        print(f"{file}: {found.size} bytes, {found.content_type}")


class _Target:
    """Where the pieces go: a file that gets its name only when it is whole."""

    def __init__(self, output: str | None, *, force: bool) -> None:
        self._output = output
        self._force = force
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._part: Path | None = None
        self._problem: OSError | None = None

    def tell(self, news: Tell) -> None:
        """Take a piece."""
        data = news.fields["data"]
        if news.event != "piece" or self._problem is not None or not isinstance(data, bytes):
            return
        try:
            if self._file is None:
                self._file = self._open(str(news.fields["name"]))
            self._file.write(data)
        except OSError as error:
            self._problem = error

    def finish(self) -> str | None:
        """Give it its name; None for standard output. Raises `Problem`."""
        file = self._file
        try:
            if self._problem is not None:
                raise self._problem
            if file is not None:
                file.flush()
            if self._path is None or file is None:
                return None
            file.close()
            if self._part is None:
                return str(self._path)
            if self._force:
                os.replace(self._part, self._path)
            else:
                os.link(self._part, self._path)
        except FileExistsError:
            raise Problem(f"{self._path} is there already: --force replaces it, -o names another") from None
        except OSError as error:
            where = self._path or "standard output"
            raise Problem(f"{where} cannot be written: {(error.strerror or 'failed').lower()}") from None
        return str(self._path)

    def give_up(self) -> None:
        """Leave nothing unfinished behind."""
        if self._path is not None and self._file is not None:
            with suppress(OSError):
                self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)

    def _open(self, name: str) -> IO[bytes]:
        if self._output == "-":
            return sys.stdout.buffer
        path = Path(self._output or name or "media.bin")
        self._path = path = Path(os.path.realpath(path / (name or "media.bin") if path.is_dir() else path))
        if path.exists() and not path.is_file():
            return open(path, "wb")  # a device or a pipe is written to, never replaced
        if path.exists() and not self._force:
            raise FileExistsError
        self._part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        return open(self._part, "xb")
