"""Commands of the operator's own, scripted in the simulated world. A real one: tests/loops/test_voice.py."""

from __future__ import annotations

import pytest

from runtimes.sim.child import Child, Script
from svc_proto.commands import CreateBlob, FinishBlob, WriteBlob
from svc_proto.engine import files, flow
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.members import Members
from svc_proto.voice.contract import Recording, SpeechRequest
from svc_proto.voice.providers import command
from svc_proto.voice.providers.command import Command, CommandLine
from tests.voice.providers.studio import Studio, problem

PROGRAM = "/opt/talk"


class Talk(Script):
    """Leaves `sound` in the last of its words, says `says`, and ends."""

    def __init__(self, child: Child, studio: Studio, *, says: bytes, sound: bytes | None, status: int | None) -> None:
        super().__init__(child)
        self.heard = b""
        self._studio, self._says, self._sound, self._status = studio, says, sound, status

    def on_input(self, data: bytes) -> None:
        self.heard += data

    def on_input_closed(self) -> None:
        if self._sound is not None:
            self._studio.host.disk.put(self.child.argv[-1], self._sound)
        self.child.emit(self._says)
        if self._status is not None:
            self.child.exit(self._status)


def studio_with(*, says: bytes = b"", sound: bytes | None = None, status: int | None = 0) -> tuple[Studio, list[Talk]]:
    studio, started = Studio(), list[Talk]()

    def start(child: Child) -> Script:
        started.append(Talk(child, studio, says=says, sound=sound, status=status))
        return started[-1]

    studio.host.programs[PROGRAM] = start
    return studio, started


def line(words: str, **row: object) -> CommandLine:
    said = Members({"providers": {"Mine": {"type": "command", "command": f"{PROGRAM} {words}", **row}}})
    found = CommandLine.of("mine", said)
    assert found is not None
    return found


def speak(studio: Studio, own: CommandLine, text: str = "Grüße; rm -rf /") -> tuple[bytes, str]:
    spoken = studio.run(lambda _, engine: Command(engine, own).speak(SpeechRequest(text=text)))
    assert not studio.host.disk.paths(studio.host.spool), "files are left"
    return spoken.data, spoken.content_type


def listen(studio: Studio, own: CommandLine) -> str:
    path = f"{studio.host.spool}/upload.wav"
    studio.host.disk.put(path, b"RIFF")
    recording = Recording(path=path, size=4, content_type="audio/wav", suffix=".wav")
    heard = studio.run(lambda _, engine: Command(engine, own).transcribe(recording, model="no", language="no"))
    assert studio.host.disk.paths(studio.host.spool) == [path], "files are left"
    assert heard.provider == "mine"
    return heard.text


# --- what a section says ---


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"providers": []},
        {"providers": {"mine": 5}},
        {"providers": {"mine": {"command": "x"}}},
        {"providers": {"mine": {"type": "http", "command": "x"}}},
        {"providers": {"other": {"type": "command", "command": "x"}}},
    ],
)
def test_what_is_no_command(said: dict[str, object]) -> None:
    assert CommandLine.of("mine", Members(said)) is None


@pytest.mark.parametrize(
    ("row", "words", "filled"),
    [
        ({"voice_id": "Ann", "model": "big"}, "{voice} {model} {nothing} {}", ("Ann", "big", "{nothing}", "{}")),
        ({"voice": "a b; c", "model_id": "$(x)"}, "'{voice}' --m={model}", ("a b; c", "--m=$(x)")),
        ({"voice": "{model}", "model": "m"}, "{voice}", ("{model}",)),
        ({"speed": 1.25, "format": "WAV", "language": "de"}, "{speed} {format} {language}", ("1.25", "wav", "de")),
        ({"speed": 2, "format": 5}, "{speed} {format} {voice}", ("2", "mp3", "")),
        ({"speed": "fast"}, "{speed} {output_path}", ("1", "{output_path}")),
    ],
)  # fmt: skip
def test_what_takes_the_place_of_a_placeholder(row: dict[str, object], words: str, filled: tuple[str, ...]) -> None:
    """Each stays within its word: no shell reads it."""
    assert line(words, **row).filled() == (PROGRAM, *filled)


# --- speaking ---


@pytest.mark.parametrize(("kind", "type_"), [*command.TYPES.items()])
def test_a_text_is_its_input_and_the_sound_a_file(kind: str, type_: str) -> None:
    studio, started = studio_with(sound=b"sound", says=b"chatter")
    assert speak(studio, line("-o {output_path}", format=kind)) == (b"sound", type_)
    assert started[0].heard == "Grüße; rm -rf /".encode()
    assert started[0].child.argv[-1].startswith(studio.host.spool)
    assert started[0].child.argv[-1].endswith(f".{kind}")


def test_a_text_in_a_file() -> None:
    studio, started = studio_with(sound=b"sound")
    read: list[bytes] = []
    own = line("{input_path} {output_path}")
    start = studio.host.programs[PROGRAM]

    def look(child: Child) -> Script:
        read.append(studio.host.disk.get(child.argv[1]))
        return start(child)

    studio.host.programs[PROGRAM] = look
    assert speak(studio, own) == (b"sound", "audio/mpeg")
    assert read == [started[0].heard]


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (line("x"), "the command of the provider mine has no {output_path}"),
        (line("{output_path}", format="au"), "the provider mine has a format other than mp3, wav, ogg, opus, flac"),
        (line("'{output_path}"), "the command of the provider mine cannot be read"),
        (line("{output_path}", command=""), "the command of the provider mine cannot be read"),
        (line("", command="/gone {output_path}"), "mine cannot be started: not_found"),
    ],
)
def test_a_command_that_cannot_speak(own: CommandLine, told: str) -> None:
    studio, started = studio_with(sound=b"sound")
    assert str(problem(lambda: speak(studio, own))) == told
    assert not started
    assert not studio.host.disk.paths(studio.host.spool)


@pytest.mark.parametrize(
    ("status", "sound", "told"),
    [
        (0, None, "mine made no sound"),
        (0, b"", "mine made no sound"),
        (3, b"sound", "mine ended with status 3"),
        (None, b"sound", "mine took more than 120 s"),
    ],
)
def test_a_command_that_does_not_speak(status: int | None, sound: bytes | None, told: str) -> None:
    studio, _ = studio_with(sound=sound, status=status)
    assert str(problem(lambda: speak(studio, line("{output_path}")))) == told
    assert not studio.host.disk.paths(studio.host.spool)


def test_the_longest_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_SOUND", 100)
    assert len(speak(studio_with(sound=bytes(100))[0], line("{output_path}"))[0]) == 100
    told = problem(lambda: speak(studio_with(sound=bytes(101))[0], line("{output_path}")))
    assert str(told) == "what mine has left cannot be read: too_large"


@pytest.mark.parametrize("step", [CreateBlob, WriteBlob, FinishBlob])
def test_a_disk_that_takes_no_file(step: type[object], monkeypatch: pytest.MonkeyPatch) -> None:
    studio, started = studio_with(sound=b"sound")

    def ask(engine: object, order: object, **options: float) -> object:
        if isinstance(order, step):
            return _failed()
        return flow.ask(engine, order, **options)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(files, "ask", ask)
    told = problem(lambda: speak(studio, line("{input_path} {output_path}")))
    assert str(told) == "no file could be made for mine: no_space"
    assert not started
    assert not studio.host.disk.paths(studio.host.spool)


def _failed() -> Flow[Failure]:
    yield from ()
    return Failure(FailureKind.NO_SPACE)


# --- listening ---


@pytest.mark.parametrize(
    ("words", "says", "leaves", "heard"),
    [
        ("{input_path}", b" turn on\nthe lamp\n", None, "turn on\nthe lamp"),
        ("{input_path}", b"Gr\xff\xc3\xbc\xc3\x9fe", None, "Gr\ufffdüße"),
        ("{input_path} {output_path}", b"chatter", b"the lamp\n", "the lamp"),
    ],
)
def test_a_recording_is_a_file_and_its_words_are_output(
    words: str, says: bytes, leaves: bytes | None, heard: str
) -> None:
    studio, started = studio_with(says=says, sound=leaves)
    assert listen(studio, line(words)) == heard
    assert started[0].child.argv[1].endswith("/upload.wav")
    assert started[0].heard == b""


@pytest.mark.parametrize(
    ("own", "status", "told"),
    [
        (line("{output_path}"), 0, "the command of the provider mine has no {input_path}"),
        (line("", command=""), 0, "the command of the provider mine cannot be read"),
        (line("{input_path}"), 1, "mine ended with status 1"),
        (line("{input_path} {output_path}"), None, "mine took more than 120 s"),
    ],
)
def test_a_command_that_does_not_listen(own: CommandLine, status: int | None, told: str) -> None:
    studio, _ = studio_with(says=b"x", sound=b"x", status=status)
    assert str(problem(lambda: listen(studio, own))) == told
