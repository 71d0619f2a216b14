"""Fuzz target of voice sessions: any messages, any order of sockets, and any passage of time.

The first byte of an input chooses the kind of session: output, lab or agent. Then each line is an action:

    ~1      the speaker's socket is lost, with the code selected by the digit
    +       another socket connects, and becomes the speaker
    -       the first open socket becomes the speaker
    |  and  /    the speaker stops reading, and reads again
    .2      time passes, as selected by the digit
    ?       the disk fails from now on
    else    the speaker sends this line; `{token}` stands for the resume token (without a speaker, `+`)
"""

from __future__ import annotations

import json
from typing import Any

from svc_proto.basics.errors import Refused
from svc_proto.commands import AppendFile, SweepFolder
from svc_proto.engine.websocket import WebSocketHandler
from svc_proto.relay.voice.subsystem import VOICE_SESSION_MANAGERS
from tests.voice.harness import PHONE, VoiceHarness, VoiceTestClient

ORDER = ("output", "lab", "agent")
NUMBERED = ("output", "agent")
LOST_WITH = (1006, 1000, 1001, 1005, 4999)
TIMES = (0.0, 0.3, 5.0, 29.9, 31.0, 61.0, 121.0, 400.0)  # s
CODES = (1000, 1001, 1008, 1009, 1011, 1013, 4000, 4003, 4008, 4009)
MAX_ACTIONS = 200
MAX_SOCKETS = 40
FOR_EVER = 10_000.0  # s: longer than any part of a session


def voice(data: bytes) -> None:
    """Run a script; check that no bug is logged, ids rise, replays are equal, codes are known, and all is freed."""
    game = _VoiceScript(ORDER[(data or b"0")[0] % len(ORDER)])
    for line in data[1:].split(b"\n")[:MAX_ACTIONS]:
        game.run_line(line.decode("utf-8", "replace"))
    game.end()


class _FuzzVoiceClient(VoiceTestClient):
    """Client that handles each event at once, and must get none after its end."""

    def __init__(self, game: _VoiceScript, handler: WebSocketHandler) -> None:
        self._game = game
        self.gone = False
        self.last = 0  # the last id, without replays
        super().__init__(game, handler)

    def send_text(self, text: str) -> bool:
        assert not self.gone, "something was said to a socket that has closed"
        self._game.on_event(self, json.loads(text), text)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        assert code in CODES, f"closed with {code}"
        assert len(reason.encode()) <= 123, "the reason does not fit a close frame"
        self.gone = True

    def set_ping_interval(self, seconds: float) -> None:
        assert seconds == 20.0, "another ping interval"

    def disconnect(self, code: int = 1006) -> None:
        self.gone = True
        super().disconnect(code)


class _VoiceScript(VoiceHarness):
    def __init__(self, family: str) -> None:
        super().__init__()
        self.numbered = family in NUMBERED
        self.known: dict[int, str] = {}  # events by id
        self.clients: list[_FuzzVoiceClient] = []
        self.speaker: _FuzzVoiceClient | None = None
        self.family = VOICE_SESSION_MANAGERS[family](self.voice)
        self.answer = self.create(self.family, provider="stub")
        self.token = str(self.answer.get("resume_token", "none"))
        self.connect_client()

    # --- actions ---

    def run_line(self, line: str) -> None:
        speaker = self.speaker
        match line[:1]:
            case "~":
                if speaker is not None:
                    self.disconnect(speaker, LOST_WITH[_digit(line) % len(LOST_WITH)])
            case "+":
                self.connect_client()
            case "-":
                self.next_speaker()
            case "|":
                if speaker is not None:
                    speaker.writable = False
            case "/":
                if speaker is not None and not speaker.writable:
                    speaker.read()
            case ".":
                self.after(TIMES[_digit(line) % len(TIMES)])
            case "?":
                self.refuse = (AppendFile, SweepFolder)
            case _:
                self.send_line(line)
        self.sweep()

    def send_line(self, line: str) -> None:
        speaker = self.speaker
        if speaker is None:
            self.connect_client()
        elif line.startswith("\x00"):
            speaker.send_binary(line.encode())
        else:
            speaker.send(line.replace("{token}", self.token))

    def connect_client(self) -> None:
        if len(self.clients) >= MAX_SOCKETS:
            return
        try:
            handler = self.within(lambda: self.family.open(PHONE, self.answer["session_id"]))
        except Refused as refused:
            if refused.status not in (404, 410):
                raise
            return
        self.speaker = _FuzzVoiceClient(self, handler)
        self.clients.append(self.speaker)
        self.sweep()

    def disconnect(self, client: _FuzzVoiceClient, code: int) -> None:
        self.clients.remove(client)
        client.disconnect(code)

    def next_speaker(self) -> None:
        self.speaker = self.clients[0] if self.clients else None

    def sweep(self) -> None:
        for client in [client for client in self.clients if client.gone]:
            self.disconnect(client, 1000)
        if self.speaker not in self.clients:
            self.next_speaker()

    def on_event(self, client: _FuzzVoiceClient, event: dict[str, Any], text: str) -> None:
        assert isinstance(event["type"], str), "an event without a type"
        assert isinstance(event["at_ms"], float), "an event without a time"
        if not self.numbered:
            assert "event_id" not in event, "an id where there is none"
            return
        number = event["event_id"]
        if event.pop("replayed", False):
            before = self.known.get(number)  # sent while no client was connected
            assert before is None or json.loads(before) == event, "a replay that is not as it was"
            text = json.dumps(event)
        else:
            assert number > client.last, "ids that do not rise"
            client.last = number
        self.known.setdefault(number, text)

    def end(self) -> None:
        self.refuse = ()
        for client in list(self.clients):
            self.disconnect(client, 1006)
        self.after(FOR_EVER)
        assert not self.family.sessions(), "a session is left"
        assert self.engine.next_deadline() is None, "a timer is left"
        assert "bug" not in self.events()
        logs = [self.disk.get(path) for path in self.disk.paths() if path.endswith(".jsonl")]
        for line in b"".join(logs).splitlines():
            assert isinstance(json.loads(line)["unix_ms"], int), "a line without a time"


def _digit(line: str) -> int:
    return ord(line[1]) - ord("0") if len(line) > 1 else 0
