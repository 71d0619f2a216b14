"""The host's own engines, scripted in the simulated world; tests/loops runs the real ones."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc_proto.basics.pcm import wav_head
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.voice.provider_interface import Recording
from svc_proto.voice.providers import local
from svc_proto.voice.providers.local import MAX_LISTENERS, MAX_WAITING, LocalSpeechPrograms
from svc_proto.voice.providers.provider_factory import ProviderFactory
from tests.engine.toy_service import ToyService
from tests.voice.providers.provider_harness import ProviderHarness, ScriptedSpeechProgram, problem
from tests.voice.table_rows import rows

SPEAKER, LISTENER = "/usr/bin/espeak-ng", "/usr/bin/listener"
SOUND = bytes(range(256)) * 100
HEAD = wav_head(0x7FFF0000, 24_000)


def installed(
    speaks: dict[str, Any] | None = None, hears: dict[str, Any] | None = None, mp3: Any = None
) -> tuple[ProviderHarness, list[ScriptedSpeechProgram]]:
    """Return a host with these speech engines, and a list that receives each started synthesis program."""
    studio = ProviderHarness()
    studio.host.compute["voice.engines"] = lambda: {
        "speak": [SPEAKER, "--stdin"] if speaks is not None else [],
        "listen": [LISTENER] if hears is not None else [],
        "mp3": mp3 is not None,
        "decode": True,
    }
    studio.host.compute["voice.mp3"] = mp3
    studio.program(LISTENER, **(hears or {}))
    return studio, studio.program(SPEAKER, **(speaks or {}))


def speaking(
    says: bytes = HEAD + SOUND, mp3: Any = None, **does: Any
) -> tuple[ProviderHarness, list[ScriptedSpeechProgram]]:
    return installed({"says": says, **does}, mp3=mp3)


def hearing(says: bytes = b'{"text": "turn on the light"}\n', after: float = 2.0) -> ProviderHarness:
    return installed(hears={"says": says, "after": after})[0]


# --- speech -------------------------------------------------------------------------------------------------------


def test_text_is_spoken_in_a_voice() -> None:
    studio, started = speaking()
    done = studio.render("local", "Grüße -v ssml", voice="en-us+f3")
    assert studio.sink.pcm == SOUND
    assert (done.provider, done.model, done.voice) == ("local", "espeak-ng", "en-us+f3")
    (speaker,) = started
    assert speaker.heard == "Grüße -v ssml".encode()  # the text is standard input, so that it cannot be an option
    assert speaker.child.argv == (SPEAKER, "--stdin", "-v", "en-us+f3", "-s", "160", "-p", "50")


PACES = """
{} -> en-us -> 160
{language: de, options: {speed: 1.5}} -> de -> 240
{voice: fr, language: de, options: {speed: 99}} -> fr -> 320
{expression: {pace: Slow}} -> en-us -> 128
{expression: {pace: majestic}} -> en-us -> 160
"""


@pytest.mark.parametrize(("how", "voice", "words_per_minute"), rows(PACES))
def test_how_fast_and_in_which_voice(how: dict[str, Any], voice: str, words_per_minute: int) -> None:
    studio, started = speaking()
    assert studio.render("local", **how).voice == voice
    assert started[0].child.argv[3:6:2] == (voice, str(words_per_minute))


@pytest.mark.parametrize(("rate", "size"), [(24_000, len(SOUND)), (48_000, 2 * len(SOUND) - 4)])
def test_header_in_two_pieces(rate: int, size: int) -> None:
    studio, _ = speaking(HEAD[20:] + SOUND, first=HEAD[:20], after=1.0)
    assert studio.render("local", sample_rate=rate).metadata["source_sample_rate"] == 24_000
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {rate}
    assert len(studio.sink.pcm) == size


def test_the_first_sound_does_not_wait_for_the_last() -> None:
    studio, started = speaking(status=None)
    assert str(problem(lambda: studio.render("local"))) == "espeak-ng fell silent"
    assert studio.sink.pcm == SOUND
    assert not started[0].child.alive  # the program was killed


def test_slow_listener_pauses_the_engine() -> None:
    studio, started = speaking(HEAD + bytes(3_000_000))
    studio.sink.pause = 0.05
    left: list[int] = []
    studio.sim.after(10.0, lambda: left.append(len(started[0].left)))
    studio.render("local")
    assert left[0] > 1_000_000
    assert len(studio.sink.pcm) == 3_000_000


@pytest.mark.parametrize("voice", ["../../etc/passwd", "-q", "en us", "x" * 65, "en\n"])
def test_no_voice_is_a_path_or_an_option(voice: str) -> None:
    studio, started = speaking()
    told = problem(lambda: studio.render("local", voice=voice))
    assert (str(told), started) == ("the voice is not the name of one of espeak-ng", [])


NO_VOICE = b"Error: The specified espeak-ng voice does not exist.\n"


@pytest.mark.parametrize(
    ("output", "options", "words"),
    [
        (b"", {"status": 1, "error": NO_VOICE}, "espeak-ng has no voice en-us"),
        (b"", {"status": 1, "error": b"out\nof " + b"x" * 500}, f"espeak-ng made no sound: out of {'x' * 393}"),
        *((output, {}, "espeak-ng made no sound") for output in (b"", HEAD, HEAD + b"\1")),
        (HEAD + SOUND, {"status": -11}, "espeak-ng made no sound"),
        *((output, {}, "espeak-ng gave something that is no sound") for output in (b"Segmentation fault", HEAD[:20])),
    ],
)
def test_error_texts(output: bytes, options: dict[str, Any], words: str) -> None:
    assert str(problem(lambda: speaking(output, **options)[0].render("local"))) == words


def test_without_an_engine() -> None:
    for work in (ProviderHarness.render, ProviderHarness.transcribe):
        assert "install svc-relay[voice]" in str(problem(lambda work=work: work(ProviderHarness(), "local")))  # type: ignore[misc]
    for studio, work, name in (
        (speaking()[0], ProviderHarness.render, "espeak-ng"),
        (hearing(), ProviderHarness.transcribe, "the engine that listens"),
    ):
        studio.host.programs.clear()
        told = problem(lambda studio=studio, work=work: work(studio, "local"))  # type: ignore[misc]
        assert str(told) == f"{name} cannot be started: no such file or directory"


# --- files --------------------------------------------------------------------------------------------------------


def test_a_file_is_an_mp3_or_without_an_encoder_a_wav(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = speaking(mp3=lambda pcm, rate: b"mp3 %d " % rate + pcm)[0].speak("local")
    assert (spoken.data, spoken.content_type) == (b"mp3 24000 " + SOUND, "audio/mpeg")
    monkeypatch.setattr(local, "MAX_FILE_SOUND", len(SOUND))
    spoken = speaking()[0].speak("local", language="en")
    assert (spoken.data, spoken.content_type) == (wav_head(len(SOUND), 24_000) + SOUND, "audio/wav")
    told = problem(lambda: speaking(mp3=lambda pcm, rate: 1 / 0)[0].speak("local"))
    assert str(told) == "the speech could not be made an MP3 file on this host"
    monkeypatch.setattr(local, "MAX_FILE_SOUND", len(SOUND) - 1)
    assert str(problem(lambda: speaking()[0].speak("local"))) == "the text is too long for one file"


# --- transcription ------------------------------------------------------------------------------------------------


def test_transcription() -> None:
    for language in ("", "en", "en-US", "auto"):
        found = hearing().transcribe("local", language=language)
        assert found == "turn on the light"


BROKE_DOWN = "the engine that listens broke down over the recording"


@pytest.mark.parametrize(
    ("does", "language", "words"),
    [
        ({"says": b'{"error": "the WAV file is cut short"}'}, "", "the WAV file is cut short"),
        *(({"says": output}, "", BROKE_DOWN) for output in (b"", b"[1]", b'{"text": 5}')),
        ({"after": 601.0}, "", "listening to the recording took too long"),
        ({}, "de", "the engine of this host understands English only"),
    ],
)
def test_transcription_errors(does: dict[str, Any], language: str, words: str) -> None:
    assert str(problem(lambda: hearing(**does).transcribe("local", language=language))) == words


def crowd(studio: ProviderHarness, size: int, gives_up: Sequence[int] = ()) -> tuple[int, list[str], int]:
    """Transcribe `size` recordings at once and cancel some of them.

    Return the number of transcripts, the error texts of the failed ones, and the most programs seen at a time.
    """
    heard, problems, most = list[str](), list[str](), 0

    def plan(providers: ProviderFactory, engine: Engine) -> Flow[None]:
        nonlocal most
        recording = Recording(path="/spool/x", size=1, content_type="", suffix=".wav")
        listener = providers.transcriber("local")
        tasks = [
            engine.spawn(
                listener.transcribe(recording), on_done=heard.append, on_error=lambda error: problems.append(str(error))
            )
            for _ in range(size)
        ]
        yield from sleep(engine, 0.5)
        for number in gives_up:
            tasks[number].cancel()
        while len(heard) + len(problems) + len(gives_up) < size:
            most = max(most, len(studio.host.children))
            yield from sleep(engine, 0.5)

    studio.run(plan)
    return len(heard), problems, most


def test_transcriptions_are_queued_and_limited() -> None:
    told = "this host listens to too many recordings already; try again in a while"
    heard = MAX_LISTENERS + MAX_WAITING
    assert crowd(hearing(), heard + 3) == (heard, [told] * 3, MAX_LISTENERS)
    told = "this host has been listening to other recordings for too long"
    assert crowd(hearing(after=500.0), MAX_LISTENERS + 1) == (MAX_LISTENERS, [told], MAX_LISTENERS)


def test_cancelled_transcription_frees_its_slot() -> None:
    studio = hearing()
    heard, problems, _ = crowd(studio, MAX_LISTENERS + 3, gives_up=[0, MAX_LISTENERS, -1])
    assert (heard, problems) == (MAX_LISTENERS, [])
    assert studio.transcribe("local") == "turn on the light"


# --- available engines --------------------------------------------------------------------------------------------


def test_installed_programs() -> None:
    def plan(providers: ProviderFactory, engine: Engine) -> Flow[LocalSpeechPrograms]:
        return providers.host.engines()

    missing = ["espeak-ng", "pocketsphinx", "lameenc", "av"]
    assert ProviderHarness().run(plan).missing == missing
    assert installed({}, {}, bytes)[0].run(plan).missing == []
    studio = ProviderHarness()
    studio.host.compute["voice.engines"] = lambda: "nonsense"
    assert studio.run(plan) == LocalSpeechPrograms()


@pytest.mark.parametrize("missing", ["speak", "listen"])
def test_installation_is_cached(missing: str) -> None:
    studio = installed({}, {})[0]
    answer: Any = studio.host.compute["voice.engines"]()
    answers = [{**answer, missing: []}] * 2 + [{**answer, "mp3": True}]

    def plan(providers: ProviderFactory, engine: Engine) -> Flow[list[bool]]:
        found = []
        for _ in range(8):
            found.append(not (yield from providers.host.engines()).missing)
            yield from sleep(engine, 30.0)
        return found

    studio.host.compute["voice.engines"] = lambda: answers.pop(0)
    assert studio.run(plan) == [False] * 4 + [True] * 4


def test_audio_ahead_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MAX_AHEAD", 4)
    ear, held = local._AudioOutput(Engine(ToyService(), entropy=bytes)), list[bool]()
    ear.child = cast("Any", SimpleNamespace(set_read_paused=held.append))
    ear.on_output(b"1234")
    assert held == []
    ear.on_output(b"5")
    assert held == [True]
