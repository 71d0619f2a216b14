"""`svc-relay voice`: transcribe a recording, synthesize a text, show the engines, converse with the agent."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clients.commands.answer_writer import AnswerWriter
from clients.commands.cli import SETTINGS, error_reason, json_option, print_json, print_lines, terminal_safe
from clients.commands.desktop_options import relay_selection, run_desktop_service, run_on_relay, session_options
from clients.commands.saved_file import SavedFile
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from svc_proto.commands import Notify

__all__ = ["main", "player", "recorder"]

MAX_PIPED = 1 << 20  # bytes of a text from a pipe: 5000 characters and many blanks

RECORDERS = ("arecord -q -t raw -f S16_LE -c 1 -r {rate}", "sox -q -d -t raw -e signed -b 16 -c 1 -r {rate} -")
PLAYERS = (
    "aplay -q -t raw -f S16_LE -c 1 -r {rate}",
    "sox -q -t raw -e signed -b 16 -c 1 -r {rate} - -d",
    "ffplay -loglevel quiet -nodisp -autoexit -f s16le -ar {rate} -i -",
)
EXAMPLES = """
\b
Examples:
  svc-relay voice transcribe memo.m4a
  arecord -d 5 -f cd - | svc-relay voice transcribe -
  svc-relay voice say 'The backup is done.' -o done.mp3
  svc-relay voice say - -o - < news.txt | mpv -
  svc-relay voice say -- '-5 degrees tonight'
  svc-relay voice config
  svc-relay voice talk
"""
TALKING = """
\b
Examples:
  svc-relay voice talk
  svc-relay voice talk --session 5f0d… --mute  # continue, without sound

Enter starts a recording, and Enter again sends it. A line of text is sent as a message; while the agent works, it is
the next message. Enter interrupts the agent. Answer its questions with allow or deny. Ctrl-D or Ctrl-C ends.

Recording needs arecord or sox; playback needs aplay, sox or ffplay.
"""


profile_option = click.option("--profile", metavar="NAME", help="Use the settings of this profile of the relay.")


@click.group("voice", epilog=EXAMPLES, context_settings=SETTINGS)
def main() -> None:
    """Use the voice engines of the relay."""


@main.command("transcribe", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("file", metavar="FILE|-")
@profile_option
@session_options
@json_option
@runtime_option
def transcribe(
    file: str, profile: str | None, remote: str | None, token: str | None, *, as_json: bool, runtime: str
) -> None:
    """Transcribe a recording: WAV, MP3, M4A, WebM, Ogg, FLAC or AAC, up to 25 MiB."""
    from svc_proto.cli.voice_requests import MAX_RECORDING, RecordingFile
    from svc_proto.cli.voice_requests import transcribe as ask

    who = relay_selection(remote, token)
    try:
        with click.open_file(file, "rb") as opened:
            data = opened.read(MAX_RECORDING + 1)
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error_reason(error)}", code=USAGE_ERROR) from None

    upload = RecordingFile("standard input" if file == "-" else Path(file).name, data)
    heard, provider = run_on_relay(lambda engine, relay: ask(engine, relay, upload, profile), who, runtime)
    if as_json:
        print_json({"ok": True, "text": heard, "provider": provider})
    elif heard:
        print(terminal_safe(heard, on_terminal=sys.stdout.isatty()))
    else:
        raise CliError("nothing was heard in it")


@main.command("say", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("text", metavar="TEXT|-")
@click.option("-o", "--output", metavar="FILE", help="Output file; - is standard output.  [speech.mp3]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--voice", metavar="NAME", help="Voice, if the engine of the relay has several.")
@click.option("--language", metavar="CODE", help="Language, if the engine of the relay has several.")
@profile_option
@session_options
@json_option
@runtime_option
def say(
    text: str,
    output: str | None,
    voice: str | None,
    language: str | None,
    profile: str | None,
    remote: str | None,
    token: str | None,
    *,
    force: bool,
    as_json: bool,
    runtime: str,
) -> None:
    """Synthesize a text into a file. A text that starts with a dash goes behind --."""
    from svc_proto.cli.voice_requests import save_speech

    who = relay_selection(remote, token)
    spoken = _given(text)
    choice = {name: value for name, value in (("voice", voice), ("language", language)) if value}
    if output == "-" and as_json:
        raise CliError("--json and -o - exclude each other", code=USAGE_ERROR)
    if output == "-" and sys.stdout.isatty():
        raise CliError("sound is nothing for a terminal: pipe it, or name a file with -o", code=USAGE_ERROR)

    target = SavedFile(output, force=force)
    try:
        kind = run_on_relay(
            lambda engine, relay: save_speech(engine, relay, spoken, profile=profile, choice=choice),
            who,
            runtime,
            on_tell=target.on_notify,
        )
        file = target.finish()
    finally:
        target.abandon()
    if as_json:
        print_json({"ok": True, "file": file, "content_type": kind})
    elif file is not None:
        print(f"{file}: {kind}")


@main.command("config", epilog=EXAMPLES, context_settings=SETTINGS)
@profile_option
@session_options
@json_option
@runtime_option
def config(profile: str | None, remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """Show the voice engines of the relay."""
    from svc_proto.cli.voice_requests import config_rows, fetch_voice_config

    found = run_on_relay(
        lambda engine, relay: fetch_voice_config(engine, relay, profile), relay_selection(remote, token), runtime
    )
    if as_json:
        print_json(found)
    else:
        print_lines([f"{name + ':':<15} {value}" for name, value in config_rows(found)])


@main.command("talk", epilog=TALKING, context_settings=SETTINGS)
@click.option("--session", metavar="ID", help="Chat session to continue.  [a new one]")
@click.option("--mute", is_flag=True, help="Do not play the answers.")
@profile_option
@session_options
@runtime_option
def talk(
    session: str | None, profile: str | None, remote: str | None, token: str | None, *, mute: bool, runtime: str
) -> None:
    """Converse with the agent by voice, or by typing."""
    from svc_proto.cli.desktop_sessions import find_relay
    from svc_proto.cli.voice_chat import RECORDER_RATE, VoiceChatRequest, VoiceChatService

    find = partial(find_relay, selection=relay_selection(remote, token))
    order = VoiceChatRequest(
        recorder=recorder(RECORDER_RATE), player=None if mute else player(), profile=profile, session=session
    )

    service, writer = VoiceChatService(find, order, watched=sys.stderr.isatty()), _VoiceWriter()
    try:
        run_desktop_service(service, runtime, on_tell=writer.on_notify, stdio=True)
    finally:
        writer.finish()


def recorder(rate: int) -> tuple[str, ...]:
    """Return the command of a program that records raw PCM of one channel at `rate` Hz; empty if none is installed."""
    return _found(RECORDERS, rate)


def player() -> Callable[[int], tuple[str, ...]] | None:
    """Return a function from sample rate to the command of a player; None if none is installed."""
    return partial(_found, PLAYERS) if _found(PLAYERS, 0) else None


def _found(lines: Sequence[str], rate: int) -> tuple[str, ...]:
    line = next((line for line in lines if shutil.which(line.partition(" ")[0])), "")
    return tuple(line.format(rate=rate).split())


def _given(text: str) -> str:
    """Return the text to synthesize, from standard input for `-`.

    Raises `CliError`, code 2, if the text is no UTF-8, or standard input has too many bytes.
    """
    if text == "-":
        data = sys.stdin.buffer.read(MAX_PIPED + 1)
        if len(data) > MAX_PIPED:
            raise CliError(f"standard input has more than {MAX_PIPED} bytes", code=USAGE_ERROR)
    else:
        data = os.fsencode(text)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CliError("the text is not UTF-8", code=USAGE_ERROR) from None


class _VoiceWriter(AnswerWriter):
    def on_notify(self, news: Notify) -> None:
        text = str(news.fields.get("text", ""))
        match news.event:
            case "prompt" if sys.stdin.isatty():
                self.write_note("[Enter to speak, or type]" if news.fields["records"] else "[type]")
            case "recording":
                self.write_note("[recording; Enter to send]")
            case "heard":
                self.write_note(f"you: {text}" if text else "[nothing was heard]")
            case "text":
                self.write(text)
            case "end":
                self.finish()
            case "tool":
                self.write_note(str(news.fields["line"]))
            case "question":
                self.write_note(f"{text or 'May it?'} [allow/deny]")
            case "problem":
                self.write_note(f"[{text}]")
