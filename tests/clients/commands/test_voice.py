"""Tests of `svc-relay voice` with real relays, some of which use the host's own speech engines."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from clients.commands.cli import terminal_safe
from clients.commands.voice import MAX_PIPED, player, recorder
from runtimes.speech.transcribe_program import SHOWN_FORMATS, UNKNOWN
from svc_proto.basics.resampler import Resampler
from svc_proto.cli.voice_chat import RECORDER_RATE
from tests.clients.commands.command_process import CommandHome, finish, paired
from tests.servers.program_process import LOCAL, ports_of, running, running_relay
from tests.voice.recordings import CLEAR_VOICE, SENTENCE, needs_engines, spoken, understood

VOICE = ("svc-relay", "voice")
CONFIG = f"tts: {{provider: local, local: {{voice: {CLEAR_VOICE}}}}}\n"


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandHome]:
    """Yield a home whose desktop is paired with a relay that has a voice which is easy to transcribe."""
    home = tmp_path_factory.mktemp("voice")
    (home / "svc").mkdir(mode=0o700)
    (home / "svc" / "config.yaml").write_text(CONFIG)
    with running_relay(home) as (_, port):
        made = CommandHome(home, port)
        paired(made)
        yield made


@needs_engines
def test_say_and_transcribe(linked: CommandHome, tmp_path: Path) -> None:
    file = str(tmp_path / "speech.mp3")
    done = linked.run(*VOICE, "say", SENTENCE, "-o", file)
    assert (done.code, done.out, done.err) == (0, f"{file}: audio/mpeg\n", "")
    heard = linked.run(*VOICE, "transcribe", file)
    assert (heard.code, understood(heard.out)) == (0, True), heard.out
    told = linked.run(*VOICE, "transcribe", file, "--json").json
    assert (told["provider"], told["text"]) == ("local", heard.out.strip())
    again = linked.run(*VOICE, "say", SENTENCE, "-o", file)
    assert (again.code, again.problem) == (1, f"{file} is there already: --force replaces it, -o names another")
    told = linked.run(*VOICE, "say", "Hi.", "-o", file, "--force", "--json").json
    assert told == {"ok": True, "file": file, "content_type": "audio/mpeg"}


@needs_engines
def test_invalid_recordings(linked: CommandHome, tmp_path: Path) -> None:
    (tmp_path / "cut.wav").write_bytes(spoken()[:30])
    (tmp_path / "silent.wav").write_bytes(spoken()[:44] + bytes(len(spoken()) - 44))
    for name, code, problem in (
        ("cut.wav", 1, f"the relay refuses: {UNKNOWN.format(SHOWN_FORMATS)} (status 500)"),
        ("silent.wav", 1, "nothing was heard in it"),
        ("absent.wav", 2, f"{tmp_path}/absent.wav cannot be read: no such file or directory"),
        ("-", 2, "standard input is empty"),
    ):
        done = linked.run(*VOICE, "transcribe", name if name == "-" else str(tmp_path / name))
        assert (done.code, done.problem) == (code, problem)


def test_config(linked: CommandHome) -> None:
    done = linked.run(*VOICE, "config")
    assert done.code == 0
    assert done.out.startswith(f"speaks:         local, {CLEAR_VOICE}\n")
    assert linked.run(*VOICE, "config", "--json").json["tts"]["provider"] == "local"


@pytest.mark.parametrize(
    ("words", "text", "problem"),
    [
        (("Hi", "--json", "-o", "-"), "", "--json and -o - exclude each other"),
        (("\udcff",), "", "the text is not UTF-8"),
        (("-",), " " * (MAX_PIPED + 10), f"standard input has more than {MAX_PIPED} bytes"),
    ],
)
def test_invalid_texts(linked: CommandHome, words: tuple[str, ...], text: str, problem: str) -> None:
    done = linked.run(*VOICE, "say", *words, text=text)
    assert (done.code, done.problem) == (2, problem)


def test_no_sound_onto_a_terminal(linked: CommandHome) -> None:
    status, told = finish(linked.spawn(*VOICE, "say", "Hi", "-o", "-"))
    assert (status, told.strip()) == (2, "error: sound is nothing for a terminal: pipe it, or name a file with -o")


def test_transcripts_cannot_control_the_terminal() -> None:
    said = "a\x1b]0;title\x07\x1b[31mred\tü\nnext\u202e"
    assert terminal_safe(said, on_terminal=True) == "a]0;title[31mred\tü\nnext"
    assert terminal_safe(said, on_terminal=False) == said


# --- conversations -------------------------------------------------------------------------------------------------

RECORDS = """
import sys, time
sys.stdout.buffer.write(open('{}', 'rb').read())
sys.stdout.flush()
time.sleep({})
"""
PLAYS = """
import sys
open('{}', 'ab').write(sys.stdin.buffer.read())
"""


def sounds(folder: Path, said: bytes, seconds: float) -> dict[str, str]:
    """Install a fake recorder, which prints `said` and ends `seconds` later, and a fake player that stores its input.

    Return the variable `PATH` that finds them first.
    """
    (folder / "said.pcm").write_bytes(said)
    for name, script in (
        ("arecord", RECORDS.format(folder / "said.pcm", seconds)),
        ("aplay", PLAYS.format(folder / "played.pcm")),
    ):
        (folder / name).write_text(f"#!{sys.executable}\n{script}")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[CommandHome]:
    """Yield a home whose desktop is paired with a relay with a stub voice provider; recorder and player are fakes."""
    env = {"RELAY_REALTIME_VOICE_PROVIDER": "stub", "RELAY_WEBAPI_URL": "http://127.0.0.1:9"}
    with running_relay(tmp_path, env=env) as (_, port):
        made = CommandHome(tmp_path, port, more=sounds(tmp_path, bytes(32_000), 30))
        paired(made)
        yield made


def test_talk_without_an_api_server_reports_the_reason(talking: CommandHome) -> None:
    done = talking.run(*VOICE, "talk", text="Hello there\n")
    assert done.code == 0
    assert "you: Hello there\n" in done.err
    assert "cannot be reached" in done.err or "not be reached" in done.err
    assert done.out == ""


def test_talk_at_a_terminal(talking: CommandHome) -> None:
    terminal: pexpect.spawn[str] = talking.spawn(*VOICE, "talk", "--mute")
    terminal.expect("Enter to speak, or type")
    terminal.sendline("")
    terminal.expect("recording; Enter to send")
    terminal.sendline("")
    terminal.expect("this provider does not listen")
    terminal.sendeof()
    terminal.sendintr()
    finish(terminal)


@needs_engines
def test_a_spoken_message_gets_a_spoken_answer(tmp_path: Path) -> None:
    """Speech is transcribed, the built-in agent answers, and the answer is played."""
    said = Resampler(22_050, RECORDER_RATE).feed(spoken()[44:])
    with running(tmp_path, "servers", *LOCAL, env={"API_SERVER_KEY": "sk-voice-1"}) as servers:
        made = CommandHome(tmp_path, ports_of(servers)["relay"], more=sounds(tmp_path, said, 0))
        paired(made)
        terminal: pexpect.spawn[str] = made.spawn(*VOICE, "talk", env={"NO_COLOR": "1"})
        terminal.expect("Enter to speak, or type")
        terminal.sendline("")
        terminal.expect(r"you: ([^\r]+)")
        found = terminal.match
        assert isinstance(found, re.Match)
        heard = str(found[1])
        terminal.expect("Enter to speak, or type")
        answer = str(terminal.before)
        terminal.sendeof()
        status, _ = finish(terminal)
    assert status == 0
    assert understood(heard), heard
    assert len(answer.strip()) > 20
    assert len((tmp_path / "played.pcm").read_bytes()) > 48_000


def test_selection_of_recorder_and_player(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if name in there else None)
    assert recorder(16_000) == ()
    assert player() is None
    for name, word in (("ffplay", "s16le"), ("sox", "signed"), ("aplay", "S16_LE")):
        there.add(name)
        found = player()
        assert found is not None
        argv = found(24_000)
        assert argv[0] == name
        assert {word, "24000"} <= set(argv)
    assert recorder(16_000)[0] == "sox"
    there.add("arecord")
    assert recorder(16_000)[0] == "arecord"
    assert json.dumps(recorder(8_000)).count("8000") == 1
