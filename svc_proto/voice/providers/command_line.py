"""Provider by a command line of the operator, for speech or transcription (wire terminal-voice 3.5, decision 174).

    tts: {provider: mine, providers: {mine: {type: command, command: "espeak-ng -w {output_path}", format: wav}}}
    stt: {provider: ears, providers: {ears: {type: command, command: "listen {input_path}"}}}

The command is split into words once, as a shell would do, and runs without a shell: a placeholder's value stays within
its word. A text is the command's input, and in the file {input_path}; its sound is the content of {output_path}.
A recording is {input_path}; its transcript is in {output_path}, or else the command's output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from attrs import frozen

from svc_proto.commands import DeleteBlob
from svc_proto.engine.child_process import run_command
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file, spool_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import ProviderError, Recording, SpeechFile, SpeechRequest

__all__ = ["MAX_SOUND", "MAX_WORDS", "RUN_TIMEOUT", "CommandLineProvider", "CommandTemplate"]

RUN_TIMEOUT = 120.0  # s, wire terminal-voice 3.5
MAX_SOUND = 40_000_000  # bytes of one file of sound
MAX_WORDS = 1024 * 1024  # bytes of a transcript
TYPES = {  # content types of the sound, by `format`
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
}
_PLACEHOLDER = re.compile(r"\{(input_path|output_path|voice|model|format|speed|language)\}")


@frozen
class CommandTemplate:
    """Command of a configuration section; `words` is None for one that cannot be split, empty without one."""

    name: str
    words: tuple[str, ...] | None
    values: Mapping[str, str]  # of placeholders
    format: str

    @classmethod
    def of(cls, name: str, said: JsonObject) -> CommandTemplate | None:
        """Return the command that the row `name` of `providers:` configures; None without a row of type `command`."""
        row = next(
            (JsonObject.of(row) for known, row in said.get_object("providers").items() if known.lower() == name), None
        )
        if row is None or row.first_text("type").lower() != "command":
            return None
        speed, kind = row.number("speed"), row.first_text("format").lower() or "mp3"
        values = {
            "voice": row.first_text("voice_id", "voice"),
            "model": row.first_text("model", "model_id"),
            "language": row.first_text("language"),
            "speed": "1" if speed is None else f"{speed:g}",
            "format": kind,
        }
        return cls(name, _split(row.first_text("command")), values, kind)

    def filled(self, **paths: str) -> tuple[str, ...]:
        """Return the words with the placeholders replaced; raise `ProviderError` for an invalid command."""
        if not self.words:
            raise ProviderError(f"the command of the provider {self.name} cannot be read")
        values = {**self.values, **paths}
        return tuple(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in self.words)

    def needs(self, placeholder: str) -> bool:
        """Report whether the command uses that placeholder."""
        return any(f"{{{placeholder}}}" in word for word in self.words or ())


class CommandLineProvider:
    """Provider for speech files and transcription; every file that it makes is deleted."""

    def __init__(self, engine: Engine, line: CommandTemplate) -> None:
        self._engine = engine
        self._line = line

    def speak(self, request: SpeechRequest) -> Flow[SpeechFile]:
        """Return the audio file that the command makes of a text.

        Raise `ProviderError` if the command is unsuitable, fails, or makes no sound.
        """
        line, text = self._line, request.text.encode()
        if line.format not in TYPES:
            raise ProviderError(f"the provider {line.name} has a format other than {', '.join(TYPES)}")
        if line.words and not line.needs("output_path"):
            raise ProviderError(f"the command of the provider {line.name} has no {{output_path}}")
        files = {"input_path": (".txt", text), "output_path": (f".{line.format}", b"")}
        data = yield from self._work(files, MAX_SOUND, said=text)
        if not data:
            raise ProviderError(f"{line.name} made no sound")
        return SpeechFile(data, TYPES[line.format])

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[str]:
        """Return the command's transcript of a recording; raise `ProviderError` if it is unsuitable or fails."""
        line = self._line
        if line.words and not line.needs("input_path"):
            raise ProviderError(f"the command of the provider {line.name} has no {{input_path}}")
        words = yield from self._work({"output_path": (".txt", b"")}, MAX_WORDS, input_path=recording.path)
        return words.decode("utf-8", "replace").strip()

    # --- helpers ---

    def _work(
        self, files: Mapping[str, tuple[str, bytes]], limit: int, *, said: bytes = b"", **paths: str
    ) -> Flow[bytes]:
        """Run the command with the files that it needs; return the content of its output file, or its output."""
        line, made = self._line, dict[str, str]()
        try:
            for name, (suffix, data) in files.items():
                if line.needs(name):
                    made[name] = yield from self._file(suffix, data)
            output = yield from self._run(line.filled(**paths, **made), said)
            return (yield from self._read(made["output_path"], limit)) if "output_path" in made else output
        finally:
            for path in made.values():
                self._engine.emit(DeleteBlob(path))

    def _run(self, argv: tuple[str, ...], said: bytes = b"") -> Flow[bytes]:
        """Run a command and return its standard output, without its error output.

        Raise `ProviderError` if the command fails or runs longer than `RUN_TIMEOUT`.
        """
        finished = yield from run_command(self._engine, argv, said=said, within=RUN_TIMEOUT)
        name = self._line.name
        if isinstance(finished, Failure):
            if finished.kind is FailureKind.TIMED_OUT:
                raise ProviderError(f"{name} took more than {RUN_TIMEOUT:g} s")
            raise ProviderError(f"{name} cannot be started: {finished.kind.value}")
        if finished.status:
            raise ProviderError(f"{name} ended with status {finished.status}")
        return finished.output

    def _file(self, suffix: str, data: bytes = b"") -> Flow[str]:
        path = yield from spool_file(self._engine, suffix, data)
        if isinstance(path, Failure):
            raise ProviderError(f"no file could be made for {self._line.name}: {path.kind.value}")
        return path

    def _read(self, path: str, limit: int) -> Flow[bytes]:
        data = yield from read_file(self._engine, path, limit=limit)
        if isinstance(data, Failure):
            raise ProviderError(f"what {self._line.name} has left cannot be read: {data.kind.value}")
        return data


def _split(command: str) -> tuple[str, ...] | None:
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return None
