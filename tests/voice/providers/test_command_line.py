"""Command providers of the operator, scripted in the simulated world; tests/loops/test_voice.py runs a real one."""

from typing import Any

import pytest

from svc_proto.commands import CreateBlob, FinishBlob, WriteBlob
from svc_proto.engine import files, flow
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import Recording, SpeechFile, SpeechRequest
from svc_proto.voice.providers import command_line
from svc_proto.voice.providers.command_line import CommandLineProvider, CommandTemplate
from tests.voice.providers.provider_harness import ProviderHarness, problem
from tests.voice.table_rows import rows

PROGRAM = "/opt/talk"


def line(words: str, **row: object) -> CommandTemplate:
    said = JsonObject({"providers": {"Mine": {"type": "command", "command": f"{PROGRAM} {words}", **row}}})
    found = CommandTemplate.of("mine", said)
    assert found is not None
    return found


def speak(studio: ProviderHarness, own: CommandTemplate, text: str = "Grüße; rm -rf /") -> SpeechFile:
    try:
        return studio.run(lambda _, engine: CommandLineProvider(engine, own).speak(SpeechRequest(text=text)))
    finally:
        assert not studio.host.disk.paths(studio.host.spool), "files are left"


def listen(studio: ProviderHarness, own: CommandTemplate) -> str:
    path = f"{studio.host.spool}/upload.wav"
    studio.host.disk.put(path, b"RIFF")
    recording = Recording(path=path, size=4, content_type="audio/wav", suffix=".wav")
    try:
        return studio.run(
            lambda _, engine: CommandLineProvider(engine, own).transcribe(recording, model="no", language="no")
        )
    finally:
        assert studio.host.disk.paths(studio.host.spool) == [path], "files are left"


NONE = """
{}
{providers: []}
{providers: {mine: 5}}
{providers: {mine: {command: x}}}
{providers: {mine: {type: http, command: x}}}
{providers: {other: {type: command, command: x}}}
"""
FILLED = r"""
{voice_id: Ann, model: big} -> "{voice} {model} {nothing} {}" -> [Ann, big, "{nothing}", "{}"]
{voice: a b; c, model_id: $(x)} -> "'{voice}' --m={model}" -> [a b; c, --m=$(x)]
{voice: "{model}", model: m} -> "{voice}" -> ["{model}"]
{speed: 1.25, format: WAV, language: de} -> "{speed} {format} {language}" -> ["1.25", wav, de]
{speed: 2, format: 5} -> "{speed} {format} {voice}" -> ["2", mp3, ""]
{speed: fast} -> "{speed} {output_path}" -> ["1", "{output_path}"]
"""


@pytest.mark.parametrize("said", [said for (said,) in rows(NONE)])
def test_invalid_command_sections(said: dict[str, object]) -> None:
    assert CommandTemplate.of("mine", JsonObject(said)) is None


def test_command_with_an_open_quote_cannot_be_run() -> None:
    own = CommandTemplate.of("mine", JsonObject({"providers": {"mine": {"type": "command", "command": "say 'a"}}}))
    assert own is not None
    assert own.words is None


@pytest.mark.parametrize(("row", "words", "filled"), rows(FILLED))
def test_placeholders_are_filled(row: dict[str, object], words: str, filled: list[str]) -> None:
    """Check that each value stays within its word, since no shell parses the command."""
    assert line(words, **row).filled() == (PROGRAM, *filled)


@pytest.mark.parametrize(("kind", "type_"), command_line.TYPES.items())
def test_text_is_piped_in_and_audio_is_a_file(kind: str, type_: str) -> None:
    studio = ProviderHarness()
    started = studio.program(PROGRAM, leaves=b"sound", says=b"chatter")
    assert speak(studio, line("-o {output_path}", format=kind)) == SpeechFile(b"sound", type_)
    assert started[0].heard == "Grüße; rm -rf /".encode()
    path = started[0].child.argv[-1]
    assert (path.startswith(studio.host.spool), path.endswith(f".{kind}")) == (True, True)


def test_a_text_in_a_file() -> None:
    studio = ProviderHarness()
    started = studio.program(PROGRAM, leaves=b"sound", after=1.0)
    read: list[bytes] = []
    studio.sim.after(0.5, lambda: read.append(studio.host.disk.get(started[0].child.argv[1])))
    assert speak(studio, line("{input_path} {output_path}")) == SpeechFile(b"sound", "audio/mpeg")
    assert read == [started[0].heard]


FORMATS = ", ".join(command_line.TYPES)
UNREADABLE = "the command of the provider mine cannot be read"


@pytest.mark.parametrize(
    ("work", "own", "told"),
    [
        (speak, line("x"), "the command of the provider mine has no {output_path}"),
        (speak, line("{output_path}", format="au"), f"the provider mine has a format other than {FORMATS}"),
        (speak, line("'{output_path}"), UNREADABLE),
        (speak, line("{output_path}", command=""), UNREADABLE),
        (speak, line("", command="/gone {output_path}"), "mine cannot be started: not_found"),
        (listen, line("{output_path}"), "the command of the provider mine has no {input_path}"),
        (listen, line("", command=""), UNREADABLE),
    ],
)
def test_unusable_command_is_refused(work: Any, own: CommandTemplate, told: str) -> None:
    studio = ProviderHarness()
    started = studio.program(PROGRAM, leaves=b"sound")
    assert (str(problem(lambda: work(studio, own))), started) == (told, [])


@pytest.mark.parametrize(
    ("work", "does", "told"),
    [
        (speak, {}, "mine made no sound"),
        (speak, {"leaves": b""}, "mine made no sound"),
        (speak, {"leaves": bytes(101)}, "what mine has left cannot be read: too_large"),
        (speak, {"leaves": b"x", "status": 3}, "mine ended with status 3"),
        (speak, {"leaves": b"x", "status": None}, "mine took more than 120 s"),
        (listen, {"leaves": b"x", "status": 1}, "mine ended with status 1"),
        (listen, {"leaves": b"x", "status": None}, "mine took more than 120 s"),
    ],
)
def test_failing_command(work: Any, does: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "MAX_SOUND", 100)
    studio = ProviderHarness()
    studio.program(PROGRAM, says=b"x", **does)
    assert str(problem(lambda: work(studio, line("{input_path} {output_path}")))) == told


def test_the_longest_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "MAX_SOUND", 100)
    studio = ProviderHarness()
    studio.program(PROGRAM, leaves=bytes(100))
    assert speak(studio, line("{output_path}")).data == bytes(100)


@pytest.mark.parametrize("step", [CreateBlob, WriteBlob, FinishBlob])
def test_failing_disk(step: type[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(engine: Engine, order: Any, **options: Any) -> Flow[object]:
        if isinstance(order, step):
            return Failure(FailureKind.NO_SPACE)
        return (yield from flow.run_operation(engine, order, **options))

    monkeypatch.setattr(files, "run_operation", ask)
    told = problem(lambda: speak(ProviderHarness(), line("{input_path} {output_path}")))
    assert str(told) == "no file could be made for mine: no_space"


@pytest.mark.parametrize(
    ("words", "does", "heard"),
    [
        ("{input_path}", {"says": b" turn on\nthe lamp\n"}, "turn on\nthe lamp"),
        ("{input_path}", {"says": b"Gr\xff\xc3\xbc\xc3\x9fe"}, "Gr\ufffdüße"),
        ("{input_path} {output_path}", {"says": b"chatter", "leaves": b"the lamp\n"}, "the lamp"),
    ],
)
def test_recording_is_a_file_and_transcript_is_output(words: str, does: dict[str, Any], heard: str) -> None:
    studio = ProviderHarness()
    started = studio.program(PROGRAM, **does)
    assert listen(studio, line(words)) == heard
    assert (started[0].child.argv[1].rpartition("/")[2], started[0].heard) == ("upload.wav", b"")
