"""The host's own engines, scripted in the simulated world. The real ones are tried in tests/loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runtimes.sim.child import Child, Script
from svc_proto.basics.pcm import wav_head
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.voice.contract import Recording, Transcript
from svc_proto.voice.providers import local
from svc_proto.voice.providers.local import MAX_LISTENERS, MAX_WAITING
from svc_proto.voice.providers.table import Providers
from tests.engine.service import ToyService
from tests.voice.providers.studio import Studio, problem

SPEAKER, LISTENER = "/usr/bin/espeak-ng", "/usr/bin/listener"
SOUND = bytes(range(256)) * 100
HEAD = wav_head(0x7FFF0000, 24_000)


class Speaker(Script):
    """Speaks when its input has ended: `output` in pieces, then it exits."""

    def __init__(
        self, child: Child, output: bytes, *, status: int = 0, error: bytes = b"", hangs: bool = False
    ) -> None:
        super().__init__(child)
        self._output = output
        self._status = status
        self._error = error
        self._hangs = hangs
        self.text = b""

    def on_input(self, data: bytes) -> None:
        self.text += data

    def on_input_closed(self) -> None:
        self._go_on()

    def on_room(self) -> None:
        self._go_on()

    def _go_on(self) -> None:
        piece, self._output = self._output[: self.child.room], self._output[self.child.room :]
        self.child.emit(piece)
        self.child.emit_error(self._error)
        if not self._output and not self._hangs:
            self.child.exit(self._status)


class Listener(Script):
    """Answers after some seconds."""

    def __init__(self, child: Child, answer: bytes, *, seconds: float = 2.0) -> None:
        super().__init__(child)
        self._answer = answer
        self._seconds = seconds

    def on_input_closed(self) -> None:
        self.child.after(self._seconds, self._tell)

    def _tell(self) -> None:
        self.child.emit(self._answer)
        self.child.exit(0)


def studio_with(
    speak: Callable[[Child], Script] | None = None,
    listen: Callable[[Child], Script] | None = None,
    mp3: Callable[..., object] | None = None,
) -> Studio:
    studio = Studio()
    studio.host.compute["voice.engines"] = lambda: {
        "speak": [SPEAKER, "--stdin"] if speak else [],
        "listen": [LISTENER] if listen else [],
        "mp3": mp3 is not None,
        "decode": True,
    }
    if speak:
        studio.host.programs[SPEAKER] = speak
    if listen:
        studio.host.programs[LISTENER] = listen
    if mp3:
        studio.host.compute["voice.mp3"] = mp3
    return studio


def speaking(output: bytes = HEAD + SOUND, **options: Any) -> tuple[Studio, list[Speaker]]:
    started: list[Speaker] = []

    def start(child: Child) -> Script:
        started.append(Speaker(child, output, **options))
        return started[-1]

    return studio_with(start), started


# --- speaking -----------------------------------------------------------------------------------------------------


def test_it_says_the_text_in_a_voice() -> None:
    studio, started = speaking()
    done = studio.render("local", "Grüße -v ssml", voice="en-us+f3")
    assert studio.sink.pcm == SOUND
    assert (done.provider, done.model, done.voice) == ("local", "espeak-ng", "en-us+f3")
    (speaker,) = started
    assert speaker.text == "Grüße -v ssml".encode()  # on its input: no text can be an option
    assert speaker.child.argv == (SPEAKER, "--stdin", "-v", "en-us+f3", "-s", "160", "-p", "50")


@pytest.mark.parametrize(
    ("request_", "voice", "words_per_minute"),
    [
        ({}, "en-us", "160"),
        ({"language": "de", "options": {"speed": 1.5}}, "de", "240"),
        ({"voice": "fr", "language": "de", "options": {"speed": 99}}, "fr", "320"),
        ({"expression": {"pace": "Slow"}}, "en-us", "128"),
        ({"expression": {"pace": "majestic"}}, "en-us", "160"),
    ],
)
def test_how_fast_and_in_which_voice(request_: dict[str, Any], voice: str, words_per_minute: str) -> None:
    studio, started = speaking()
    assert studio.render("local", **request_).voice == voice
    assert started[0].child.argv[3:6:2] == (voice, words_per_minute)


def test_at_the_rate_that_was_asked_for() -> None:
    studio, _ = speaking()
    done = studio.render("local", sample_rate=48_000)
    assert done.metadata == {"sample_rate": 48_000, "source_sample_rate": 24_000}
    assert len(studio.sink.pcm) == 2 * len(SOUND) - 4
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {48_000}


def test_the_first_sound_does_not_wait_for_the_last() -> None:
    studio, started = speaking(HEAD + SOUND, hangs=True)
    assert str(problem(lambda: studio.render("local"))) == "espeak-ng fell silent"
    assert studio.sink.pcm == SOUND
    assert not started[0].child.alive  # nor is it left behind


def test_a_slow_listener_holds_the_engine_back() -> None:
    studio, started = speaking(HEAD + bytes(3_000_000))
    studio.sink.pause = 0.05
    left: list[int] = []
    studio.sim.after(10.0, lambda: left.append(len(started[0]._output)))
    studio.render("local")
    assert left[0] > 1_000_000
    assert len(studio.sink.pcm) == 3_000_000


@pytest.mark.parametrize("voice", ["../../etc/passwd", "-q", "en us", "x" * 65, "en\n"])
def test_no_voice_is_a_path_or_an_option(voice: str) -> None:
    studio, started = speaking()
    assert str(problem(lambda: studio.render("local", voice=voice))) == (
        "the voice is not the name of one of espeak-ng"
    )
    assert not started


@pytest.mark.parametrize(
    ("output", "options", "words"),
    [
        (
            b"",
            {"status": 1, "error": b"Error: The specified espeak-ng voice does not exist.\n"},
            "espeak-ng has no voice en-us",
        ),
        (b"", {"status": 1, "error": b"out\nof " + b"x" * 500}, f"espeak-ng made no sound: out of {'x' * 393}"),
        (b"", {}, "espeak-ng made no sound"),
        (HEAD, {}, "espeak-ng made no sound"),
        (HEAD + b"\1", {}, "espeak-ng made no sound"),
        (HEAD + SOUND, {"status": -11}, "espeak-ng made no sound"),
        (b"Segmentation fault", {}, "espeak-ng gave something that is no sound"),
        (HEAD[:20], {}, "espeak-ng gave something that is no sound"),
    ],
)
def test_what_goes_wrong_is_told_in_words(output: bytes, options: dict[str, Any], words: str) -> None:
    studio, _ = speaking(output, **options)
    assert str(problem(lambda: studio.render("local"))) == words


def test_without_an_engine() -> None:
    assert "install svc-relay[voice]" in str(problem(lambda: Studio().render("local")))
    studio, _ = speaking()
    studio.host.programs.clear()
    assert str(problem(lambda: studio.render("local"))) == ("espeak-ng cannot be started: no such file or directory")


# --- files --------------------------------------------------------------------------------------------------------


def test_a_file_is_an_mp3() -> None:
    made: list[tuple[bytes, int]] = []

    def encode(pcm: bytes, rate: int) -> bytes:
        made.append((pcm, rate))
        return b"mp3"

    studio = studio_with(lambda child: Speaker(child, HEAD + SOUND), mp3=encode)
    spoken = studio.speak("local")
    assert (spoken.data, spoken.content_type) == (b"mp3", "audio/mpeg")
    assert made == [(SOUND, 24_000)]


def test_without_an_encoder_it_is_a_wav() -> None:
    studio, _ = speaking()
    spoken = studio.speak("local", language="en")
    assert (spoken.data, spoken.content_type) == (wav_head(len(SOUND), 24_000) + SOUND, "audio/wav")


def test_an_encoder_that_fails() -> None:
    studio = studio_with(lambda child: Speaker(child, HEAD + SOUND), mp3=lambda pcm, rate: 1 / 0)
    assert str(problem(lambda: studio.speak("local"))) == "the speech could not be made an MP3 file on this host"


def test_a_file_that_gets_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MAX_FILE_SOUND", 10_000)
    studio, _ = speaking()
    assert str(problem(lambda: studio.speak("local"))) == "the text is too long for one file"


# --- listening ----------------------------------------------------------------------------------------------------


def heard(text: str = "turn on the light", **options: Any) -> Studio:
    answer = json.dumps({"text": text}).encode() + b"\n"
    return studio_with(listen=lambda child: Listener(child, answer, **options))


@pytest.mark.parametrize("language", ["", "en", "en-US", "auto"])
def test_what_it_hears(language: str) -> None:
    studio = heard()
    assert studio.transcribe("local", language=language) == Transcript(text="turn on the light", provider="local")


def test_it_understands_english_only() -> None:
    assert "English" in str(problem(lambda: heard().transcribe("local", language="de")))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"error": "the WAV file is cut short"}', "the WAV file is cut short"),
        (b"", "the engine that listens broke down over the recording"),
        (b"[1]", "the engine that listens broke down over the recording"),
        (b'{"text": 5}', "the engine that listens broke down over the recording"),
    ],
)
def test_why_nothing_is_heard(answer: bytes, words: str) -> None:
    studio = studio_with(listen=lambda child: Listener(child, answer))
    assert str(problem(lambda: studio.transcribe("local"))) == words


def test_a_recording_that_takes_too_long() -> None:
    studio = heard(seconds=601.0)
    assert str(problem(lambda: studio.transcribe("local"))) == "listening to the recording took too long"


def test_without_an_engine_that_listens() -> None:
    assert "install svc-relay[voice]" in str(problem(lambda: Studio().transcribe("local")))
    studio = heard()
    studio.host.programs.clear()
    assert str(problem(lambda: studio.transcribe("local"))) == (
        "the engine that listens cannot be started: no such file or directory"
    )


class Crowd:
    """Many recordings at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.heard: list[str] = []
        self.problems: list[str] = []
        self.most = 0  # at the same time

    def plan(self, providers: Providers, engine: Engine) -> Flow[None]:
        recording = Recording(path="/spool/x", size=1, content_type="", suffix=".wav")
        listener = providers.transcriber("local")
        self.tasks = [
            engine.spawn(
                listener.transcribe(recording),
                on_done=lambda transcript: self.heard.append(transcript.text),
                on_error=lambda error: self.problems.append(str(error)),
            )
            for _ in range(self.size)
        ]
        yield from self.while_they_listen(engine)

    def while_they_listen(self, engine: Engine) -> Flow[None]:
        while len(self.heard) + len(self.problems) < self.size:
            yield from sleep(engine, 1.0)


def test_few_at_once_the_others_wait_and_too_many_are_refused() -> None:
    studio = heard()
    crowd = Crowd(MAX_LISTENERS + MAX_WAITING + 3)
    most: list[int] = []

    def watch() -> None:
        most.append(len(studio.host.children))
        studio.sim.after(0.5, watch)

    studio.sim.after(0.5, watch)
    studio.run(crowd.plan)
    assert len(crowd.heard) == MAX_LISTENERS + MAX_WAITING
    assert crowd.problems == ["this host listens to too many recordings already; try again in a while"] * 3
    assert max(most) == MAX_LISTENERS


def test_a_turn_that_does_not_come() -> None:
    studio = heard(seconds=500.0)
    crowd = Crowd(MAX_LISTENERS + 1)
    studio.run(crowd.plan)
    assert crowd.problems == ["this host has been listening to other recordings for too long"]
    assert len(crowd.heard) == MAX_LISTENERS


def test_who_gives_up_leaves_the_queue_and_the_place() -> None:
    studio = heard()

    class Fickle(Crowd):
        def while_they_listen(self, engine: Engine) -> Flow[None]:
            yield from sleep(engine, 0.5)
            self.tasks[0].cancel()  # it was listened to
            self.tasks[MAX_LISTENERS].cancel()  # has its place since just now
            self.tasks[-1].cancel()  # waits
            yield from sleep(engine, 20.0)

    crowd = Fickle(MAX_LISTENERS + 3)
    studio.run(crowd.plan)
    assert len(crowd.heard) == MAX_LISTENERS
    assert crowd.problems == []
    assert studio.transcribe("local").text == "turn on the light"


# --- what there is ------------------------------------------------------------------------------------------------


def test_what_is_installed() -> None:
    def plan(providers: Providers, engine: Engine) -> Flow[tuple[bool, dict[str, object]]]:
        return (yield from providers.host.installed()), (yield from providers.host.report())

    missing = ["espeak-ng", "pocketsphinx", "lameenc", "av"]
    nothing = {"audio_available": False, "stt_available": False, "missing_packages": missing}
    assert Studio().run(plan) == (False, nothing)
    installed, report = studio_with(Script, Script, lambda pcm, rate: b"").run(plan)
    assert installed
    assert report == {"audio_available": True, "stt_available": True, "missing_packages": []}
    studio = Studio()
    studio.host.compute["voice.engines"] = lambda: "nonsense"
    assert studio.run(plan) == (False, nothing)


def test_it_is_looked_for_once_or_once_a_minute() -> None:
    studio = studio_with(Script, Script)
    answer = studio.host.compute["voice.engines"]
    asked: list[float] = []
    empty: list[bool] = [True]

    def engines() -> object:
        asked.append(studio.sim.now)
        return {**cast("Any", answer()), "listen": []} if empty[0] else answer()

    def plan(providers: Providers, engine: Engine) -> Flow[list[bool]]:
        found = []
        for number in range(8):
            empty[0] = number < 4
            found.append((yield from providers.host.installed()))
            yield from sleep(engine, 30.0)
        return found

    studio.host.compute["voice.engines"] = engines
    assert studio.run(plan) == [False] * 4 + [True] * 4
    assert len(asked) == 3


def test_so_much_may_be_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MAX_AHEAD", 4)
    ear, held = local._Ear(Engine(ToyService(), entropy=bytes)), list[bool]()
    ear.child = cast("Any", SimpleNamespace(hold=held.append))
    ear.on_output(b"1234")
    assert held == []
    ear.on_output(b"5")
    assert held == [True]
