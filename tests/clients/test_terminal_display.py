import io
import os
import threading
from pathlib import Path

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.terminal_display import BlockingStream, PhoneDisplay, one_line, strip_terminal_escapes
from svc_proto.basics.moment import Moment
from svc_proto.commands import Notify
from svc_proto.phone.backend import PhoneCommand
from svc_proto.phone.safety.gate import SafetyGate

TOKEN = "1c2d3e4f-0000-4000-8000-000000000001"
NOW = Moment(1_000.0, 1_800_000_000.0)


def shown(*news: Notify, view: bool = False, print_token: bool = False, sound: Path | None = None) -> list[str]:
    out = io.StringIO()
    screen = PhoneDisplay(out, view=view, print_token=print_token, sound=sound)
    for tell in news:
        screen.on_notify(tell)
    return out.getvalue().splitlines()


def attachment(state: str, *, message: str = "", tap: bool = False, size: int = 0) -> Notify:
    fields = {"number": 1, "state": state, "message": message, "tap": tap, "size": size, "content_type": "image/png"}
    return Notify("attachment", fields)


@pytest.mark.parametrize(
    ("news", "line"),
    [
        (Notify("paired", {"token": TOKEN}), "paired: session 1c2d3e4f…"),
        (Notify("offline", {"retry_in": 1.25}), "offline: next try in 1.2 s"),
        (Notify("performed", {"method": "GET", "path": "/ping", "status": 200}), "GET /ping -> 200"),
        (Notify("performed", {"method": "GET", "path": "/\x1b[2J", "status": 404}), "'GET /\\x1b[2J' -> 404"),
        (Notify("note", {"text": "c1 allowed"}), "- c1 allowed"),
        (Notify("route", {"role": "lan\x1b", "url": "ws://h"}), "route: lan\ufffd (ws://h)"),
        (Notify("connected", {"url": "http://h:9119"}), "connected: http://h:9119"),
        (Notify("question", {"question": "Now?\x1b", "choices": ["Yes", "No"]}), "? Now?\ufffd (Yes, No)"),
        (Notify("answered", {"status": "error", "error": "it is full"}), "- it is full"),
        (attachment("LOADING"), "attachment 1: LOADING"),
        (attachment("LOADING", tap=True), "attachment 1: LOADING; tap 1 fetches it"),
        (attachment("READY", size=4), "attachment 1: READY, 4 bytes of image/png"),
        (
            attachment("unavailable card", message="relay offline", tap=True),
            "attachment 1: unavailable card (relay offline); tap 1 fetches it",
        ),
    ],
)
def test_lines_of_events(news: Notify, line: str) -> None:
    assert shown(news) == [line]
    assert shown(Notify("online", {"token": TOKEN}), print_token=True) == [f"online: session {TOKEN}"]


def test_a_terminal_and_an_agent_in_pieces() -> None:
    pieces = ("\x1b[2J\x1b[1;1H$ ls\r\n\n\n", "\x1b]0;title\x07a\x1b[0m  b\r", "\n$ ")
    told = [Notify("terminal", {"text": text}) for text in pieces]
    assert shown(*told, Notify("note", {"text": "shell: left"})) == ["$ ls", "", "a  b", "$ ", "- shell: left"]
    answer = [Notify("answer", {"text": text}) for text in ("It is ", "Mail.")]
    assert shown(*answer, Notify("answered", {"status": "complete"}), Notify("answered", {"status": "complete"})) == [
        "It is Mail."
    ]
    assert strip_terminal_escapes("a\x1b(Bb\x1b=c\x1b") == "abc"
    assert one_line("ü 4\r\x00") == "ü 4\ufffd\ufffd"


def test_spoken_answers_are_stored(tmp_path: Path) -> None:
    spoken = Notify("spoken", {"text": "Mail.\n", "sound": b"RIFF"})
    assert shown(spoken) == ["agent: Mail."]
    assert shown(spoken, sound=tmp_path / "a.wav") == ["agent: Mail.", f"  spoken into {tmp_path / 'a.wav'}"]
    assert (tmp_path / "a.wav").read_bytes() == b"RIFF"
    assert shown(spoken, sound=tmp_path) == ["agent: Mail.", f"- {tmp_path} cannot be written: is a directory"]
    assert shown(Notify("spoken", {"text": "Mail.", "sound": b""}), sound=tmp_path) == ["agent: Mail."]
    assert shown(Notify("heard", {"text": "lights\x1b[2J on"})) == ["heard: lights�[2J on"]


def asked(verb: str | None, text: str) -> Notify:
    return Notify("asked", {"confirmation": "c1", "action": "tap_text", "verb": verb, "text": text, "seconds": 25.0})


def test_a_question() -> None:
    question, first, second, how = shown(asked("send", "Send\x1b[1A\u202e it\nall"))
    assert question == '? c1: allow tap_text? It says "send":'
    assert (first, second) == ("    Send\ufffd[1A\ufffd it", "    all")
    assert "25 s" in how
    assert shown(asked(None, ""))[0] == "? c1: allow tap_text?"


def test_a_long_question_shows_the_omitted_length() -> None:
    lines = shown(asked("send", "x" * 4_001))
    assert lines[1] == "    " + "x" * 4_000
    assert lines[2] == "    … and 1 more characters that are not shown"


class Watched:
    """A safety gate and its terminal view, which `look` draws."""

    def __init__(self, build: str = "sideload") -> None:
        self.out = io.StringIO()
        self.screen = PhoneDisplay(self.out, view=True, print_token=False)
        self.backend = EmulatedPhone(build=build)
        self.gate = SafetyGate(self.backend, flavor=build, consents=self.backend.consents)

    def look(self) -> list[str]:
        self.screen.on_notify(Notify("safety", {"view": self.gate.view(NOW)}))
        lines = self.out.getvalue().splitlines()
        self.out.seek(0)
        self.out.truncate()
        return lines

    def perform(self, path: str, request_id: str, **body: object) -> None:
        self.gate.execute(PhoneCommand("POST", path, body, request_id), NOW)


def test_the_state_of_the_gates() -> None:
    watched = Watched()
    gate = watched.gate
    assert watched.look() == ["[Device Control is off]"]
    assert watched.look() == []
    gate.set_master(True, NOW)
    assert watched.look() == ["[Device Control is on (30 min idle turn it off)]"]
    gate.set_status_overlay(True)
    assert watched.look() == ["[Device Control is on (30 min idle turn it off) | status chip shown]"]
    gate.set_unattended(True)
    (line,) = watched.look()
    assert line.endswith("| UNATTENDED ACCESS IS ON | status chip forced]")
    gate.set_master(False, NOW)
    assert watched.look() == ["[Device Control is off (turn off) | unattended access on | no screen capture]"]
    gate.set_unattended(False)
    gate.set_accessibility(False)
    gate.set_overlay_permission(False, NOW)
    (line,) = watched.look()
    assert line.endswith("| no accessibility | no screen capture | no overlay permission]")
    assert Watched("googlePlay").look() == ["[store build: no Device Control]"]


def test_lines_of_executed_commands() -> None:
    watched = Watched()
    watched.gate.set_master(True, NOW)
    watched.look()
    watched.perform("/press_key", "r1", key="home")
    watched.perform("/send_sms", "r2", to="1", body="x\x1b")
    (pressed,) = watched.look()
    assert pressed.endswith(' Success press_key {"key":"home"}')
    (confirmation,) = watched.gate.confirmations()
    watched.gate.decide(confirmation.confirmation_id, allow=True, remember=True, now=NOW)
    state, sent = watched.look()
    assert "not asked about: send_sms" in state
    assert "Success send_sms" in sent
    assert "\x1b" not in sent
    watched.perform("/press_key", "r3", key="nonsense")
    (failed,) = watched.look()
    assert "Failed  press_key" in failed
    assert shown(Notify("performed", {"method": "GET", "path": "/x", "status": 200}), view=True) == []


def test_a_stream_that_waits() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    text = "ü" * 200_000
    got = bytearray()

    def read() -> None:
        while data := os.read(reader, 4096):
            got.extend(data)

    thread = threading.Thread(target=read)
    thread.start()
    stream = BlockingStream(writer)
    assert stream.write(text) == len(text)
    assert not stream.isatty()
    os.close(writer)
    thread.join()
    os.close(reader)
    assert got.decode() == text
