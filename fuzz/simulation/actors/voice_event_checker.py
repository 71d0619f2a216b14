"""Checker of the events of one voice session, against its requests and earlier events."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping
from typing import Any

from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import violated
from fuzz.simulation.servers.speech_server import NUMBER, PIECES, SAMPLES, sample_value

PER_SECOND = 120  # characters of the stub's speech a second, wire terminal-voice 8
SHORTEST, LONGEST = 0.25, 1.5  # s
BYTES = 2  # of a sample
SPEECH_RATE = 24_000  # Hz, of a text that is read over HTTP
SOUND = ("voice.audio.delta", "voice.output_audio.delta")
SOUND_ENDS = ("voice.audio.done", "voice.output_audio.done")
CONTROL = ("voice.session.", "voice.replay.")  # wire 4.8: not counted by a cursor


def seconds_of(text: str) -> float:
    """Return the duration of the stub's tone for a text, in seconds."""
    return min(max(len(text.strip()) / PER_SECOND, SHORTEST), LONGEST)


class VoiceEventChecker:
    """Event checker of one session; `check_event` raises a violation.

    A native provider answers in responses with ids, several in a turn. With another provider there is one response at a
    time, without an id.
    """

    def __init__(self, name: str, rate: int, *, numbered: bool, native: bool = False) -> None:
        self.name = name
        self.rate = rate
        self.event = 0  # greatest id of an event that a cursor counts
        self.audio = 0
        self.speaking = False  # a response has begun, and not ended
        self.responses = 0  # that have ended
        self.errors = 0
        self.text: str | None = None  # requested text, where the sound follows from it
        self.numbers: dict[int, None] = {}  # of all requested texts
        self.read = False  # the text is read by a vendor over HTTP
        self._native = native
        self._over: dict[str, bool] = {}  # responses with ids, and whether they have ended
        self._silent: dict[str | None, None] = {}  # responses whose sound has ended
        self._told: dict[str, str] = {}  # their words
        self._numbered = numbered
        self._last = 0  # last id on this socket, without replays
        self._known: dict[int, dict[str, Any]] = {}
        self._frames = 0
        self._sounded = False

    def open(self) -> None:
        """Begin with a new socket: its last event id starts at 0; all other numbers continue."""
        self._last = 0

    @property
    def event_numbers(self) -> set[int]:
        """Return the numbers of all received events."""
        return set(self._known)

    @property
    def cursor(self) -> dict[str, int]:
        """Return the cursor for `session.resume`."""
        return {"last_event_id": self.event, "last_audio_event_id": self.audio}

    def knows(self, event: Mapping[str, Any]) -> bool:
        """Report whether the event was received before."""
        return event.get("event_id") in self._known

    def check_event(self, event: dict[str, Any]) -> bool:
        """Check an event; return False if it was received before."""
        kind = event["type"]
        if self._numbered and not self._is_new(event):
            return False
        if kind in SOUND:
            self._sound(event)
        elif kind in SOUND_ENDS:
            self._sound_ends(event)
        elif kind == "voice.response.started":
            self._begins(event)
        elif kind == "voice.response.delta" and self._native:
            self._told[event["response_id"]] = self._told.get(event["response_id"], "") + event["delta"]
        elif kind == "voice.response.done":
            self._ends(event)
        elif kind == "voice.error":
            self.errors += 1
            if not self.name.startswith("realtime-agent") and "provider" in event:
                self._ends(event)
        return True

    # --- numbers ---

    def _is_new(self, event: dict[str, Any]) -> bool:
        number, kind = event["event_id"], event["type"]
        if event.pop("replayed", False):
            before = self._known.get(number)
            if before is not None and before != event:
                violated(Invariant.VOICE_STREAM, f"{self.name}: event {number} is another one when it is replayed")
        else:
            before = None
            if number <= self._last:
                violated(Invariant.VOICE_STREAM, f"{self.name}: event {number} after {self._last}")
            self._last = number
        if "audio_event_id" in event and before is None:
            if event["audio_event_id"] != self.audio + 1:
                problem = f"sound {event['audio_event_id']} after {self.audio}"
                violated(Invariant.VOICE_STREAM, f"{self.name}: {problem}")
            self.audio += 1
        self._known[number] = event
        if not kind.startswith(CONTROL):
            self.event = max(self.event, number)
        return before is None

    # --- sound ---

    def _sound(self, event: Mapping[str, Any]) -> None:
        data = base64.b64decode(event["audio_base64"], validate=True)
        if (event["byte_count"], event["sample_rate"]) != (len(data), self.rate) or len(data) % BYTES:
            told = {**event, "audio_base64": len(data)}
            violated(Invariant.VOICE_STREAM, f"{self.name}, at {self.rate} Hz: {told}")
        if self._native:
            self._owned(event["response_id"], data)
            return
        if not self.speaking or self._sounded:
            violated(Invariant.ONE_END, f"{self.name}: sound without a response, or after its end")
        if self.read and self.text is not None and {*array("h", data)} != {sample_value(self.text)}:
            violated(Invariant.OWN_BYTES, f"{self.name} hears {[*array('h', data)][:5]} for {self.text!r}")
        label = event.get("label")
        if label is None:
            self._frames += len(data) // BYTES
            return
        first, last = map(int, label.removeprefix("frames:").split("-"))
        if first != self._frames or (last - first) * BYTES != len(data):
            violated(Invariant.VOICE_STREAM, f"{self.name}: {label} after {self._frames}, {len(data)} bytes")
        self._frames = last

    def _owned(self, response: str, data: bytes) -> None:
        """Check that the samples have the number of a requested text, so the sound is no other session's."""
        if self._over.get(response, True) or response in self._silent:
            violated(Invariant.ONE_END, f"{self.name}: sound of {response}, which has ended, or never began")
        values = set(array("h", data))
        if not values <= {0, *(number % 30_000 for number in self.numbers)}:
            violated(Invariant.OWN_BYTES, f"{self.name} hears {sorted(values)[:5]}, and asked for {[*self.numbers]}")

    def _sound_ends(self, event: Mapping[str, Any]) -> None:
        if self._native:
            response = event.get("response_id")
            if response in self._silent:
                violated(Invariant.ONE_END, f"{self.name}: the sound of {response} ends twice")
            self._silent[response] = None
            return
        if not self.speaking or self._sounded:
            violated(Invariant.ONE_END, f"{self.name}: the sound ends twice, or without a response")
        self._sounded = True
        if self.read:
            seconds = SAMPLES * PIECES / SPEECH_RATE
            if abs(self._frames / self.rate - seconds) > 1 / self.rate + 1 / SPEECH_RATE:
                violated(Invariant.VOICE_STREAM, f"{self.name}: {self._frames} frames at {self.rate} Hz")
        elif self.text is not None and self._frames != int(self.rate * seconds_of(self.text)):
            violated(Invariant.VOICE_STREAM, f"{self.name}: {self._frames} frames for {len(self.text)} characters")

    # --- responses ---

    def _begins(self, event: Mapping[str, Any]) -> None:
        if self._native:
            if event["response_id"] in self._over:
                violated(Invariant.ONE_END, f"{self.name}: {event['response_id']} begins twice")
            self._over[event["response_id"]] = False
            self.speaking = True
            return
        if self.speaking:
            violated(Invariant.ONE_END, f"{self.name}: a response begins within another")
        if self.text is not None and event["text_chars"] != len(self.text):
            violated(Invariant.OWN_BYTES, f"{self.name}: {event['text_chars']} characters for {self.text!r}")
        self.speaking, self._frames, self._sounded = True, 0, False

    def _ends(self, event: Mapping[str, Any]) -> None:
        response = event.get("response_id")
        if self._native and response is not None:
            if self._over.get(response, True) and not event.get("cancelled"):
                violated(Invariant.ONE_END, f"{self.name}: {response} ends twice, or never began")
            self._over[response] = True
            words = NUMBER.findall(self._told.get(response, ""))
            strange = [number for number in words if int(number) not in self.numbers]
            if strange:
                violated(Invariant.OWN_BYTES, f"{self.name} is told {self._told[response]!r:.100}")
        elif not self.speaking and not self._native and not event.get("cancelled"):
            violated(Invariant.ONE_END, f"{self.name}: {event['type']} without a response")
        self.speaking = False
        self.responses += 1
