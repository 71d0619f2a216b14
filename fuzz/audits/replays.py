"""What was told in a voice session that numbers its events, how far its client has come, and what it is told again.

The plainest model of wire terminal-voice 4.7 and 4.8: each event has the next number, and each sound one of its own;
what a client has acknowledged is the greatest of each; who comes back says how far it is, for as many of the four as it
likes, and the others are as acknowledged; nobody is further than what was told. What comes behind is told again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat

__all__ = ["FIELDS", "RING", "Replays"]

FIELDS = ("event_id", "audio_event_id", "played_audio_event_id", "input_chunk_id")
RING = 2_000  # events that are kept
Event = dict[str, Any]
LOST = "voice.session.detached"
ALONE = ("voice.session.resumed", "voice.replay.started", "voice.replay.done", "voice.session.resume_failed")
FAR = 10**6  # further than anybody is
REFUSED: tuple[Any, ...] = ("x", 1.5, -1, True, [], 1 << 64)


@define(eq=False)
class Replays:
    """One session's. `token` opens it again; `more` is what its kind adds to `voice.session.resumed`."""

    audit: Audit
    session: str
    token: str
    ttl_ms: int
    made: float
    event: int = 0  # the numbers given last
    audio: int = 0
    kept: list[Event] = field(factory=list)
    alone: list[Event] = field(factory=list)  # that was told to one socket
    acked: list[int] = field(factory=lambda: [0, 0, 0, 0])

    def take(self, seat: Seat) -> Event:
        """The next event, which has the next number."""
        told = seat.take()
        self.note(told)
        self.audit.near(told["at_ms"] / 1000.0, self.audit.now - self.made, "when it is said to be", 1.0)
        return told

    def note(self, told: Event) -> None:
        """It was told."""
        self.event += 1
        sound = "audio_base64" in told
        self.audio += sound
        numbers = (told.get("event_id"), told.get("audio_event_id"))
        self.audit.same(numbers, (self.event, self.audio if sound else None), f"the numbers of {told['type']}")
        (self.alone if told["type"] in ALONE else self.kept).append(self._known(told))

    def ack(self, seat: Seat) -> None:
        """Say how far one is, or was, of some of the four; nothing is answered."""
        message: Event = {}
        for place, name in enumerate(FIELDS):
            if self.audit.chance(0.6):
                message[name] = self._place(place)
                self.acked[place] = max(self.acked[place], self._clamped(place, message[name]))
        seat.tell({"type": "client.ack", **message})

    def lost(self) -> None:
        """The socket goes while nothing is said: that is the next event."""
        self.event += 1
        about = {"session_id": self.session, "reason": "websocket_disconnected", "resume_ttl_ms": self.ttl_ms}
        self.kept.append({"type": LOST, "event_id": self.event, **about})

    def _place(self, place: int, *, far: bool = True) -> int:
        audit, last = self.audit, (self.event, self.audio, self.audio, 5)[place]
        known = self.acked[place]
        places = (0, known, max(0, known - 1), audit.rng.randint(0, last), last)
        return int(audit.pick((*places, last + 1, FAR) if far else places))

    def _clamped(self, place: int, value: int) -> int:
        return min(value, (self.event, self.audio, self.audio, FAR)[place])

    def come_back(self, seat: Seat, about: Mapping[str, object], *, far: bool = True) -> list[Event]:
        """Show the token; what is told again is what was missed. What had not been told before, which is all of it if
        one is not `far`."""
        audit = self.audit
        asked: Event = {"type": audit.pick(("session.resume", "session.resume", "session.start"))}
        asked["resume_token"] = self.token
        cursor, before = [*self.acked], self.event
        for place, name in enumerate(FIELDS):
            if audit.chance(0.6):
                asked[f"last_{name}"] = self._place(place, far=far)
                cursor[place] = asked[f"last_{name}"]
        if audit.chance(0.15):  # which changes nothing
            seat.tell({**asked, f"last_{audit.pick(FIELDS)}": audit.pick(REFUSED)})
            told = seat.take()
            audit.same(told["type"], "voice.error", "a cursor that is none")
        seat.tell(asked)
        resumed, started = seat.take(), seat.take()
        last, sounds = resumed["event_id"] - 1, self.audio  # while nobody listened something may have been told
        again: list[Event] = []
        while (done := seat.take())["type"] != "voice.replay.done":
            audit.same(done.pop("replayed", None), True, f"whether {done['type']} was told before")
            again.append(done)
        fresh = [each for each in again if each["event_id"] > before]
        sounds += sum("audio_base64" in each for each in fresh)
        come = (min(cursor[0], last), *(min(each, sounds) for each in cursor[1:3]))
        heard = max(come[1:])
        told = {name: resumed.get(name) for name in resumed if name not in ("event_id", "at_ms")}
        names = ("last_event_id", "last_audio_event_id", "last_played_audio_event_id")
        is_ = {"type": "voice.session.resumed", "session_id": self.session, **dict(zip(names, come, strict=True))}
        audit.same(told, {**is_, **about}, f"how far who comes back is, behind {asked}, with {self.acked} acknowledged")
        is_ = {"session_id": self.session, "from_event_id": come[0], "from_audio_event_id": heard}
        self._same(started, {**is_, "type": "voice.replay.started", "replay_event_count": len(again)})
        self._same(done, {"type": "voice.replay.done", "session_id": self.session, "replay_event_count": len(again)})
        numbers = [resumed["event_id"] + each for each in (1, 2)]
        audit.same([started["event_id"], done["event_id"]], numbers, "the numbers of a return")
        due = [
            each
            for each in self.kept[-(RING - len(fresh)) :]
            if (each["audio_event_id"] > heard if "audio_event_id" in each else each["event_id"] > come[0])
        ]
        known = [self._known(each) for each in again if each["event_id"] <= before]
        audit.same(known, due, f"what is told again behind {come}")
        for each in fresh:
            self.event = each["event_id"] - 1
            self.note(each)
        self.alone += [resumed, started, done]
        self.event = done["event_id"]
        return fresh

    def _known(self, told: Event) -> Event:
        return told if told["type"] != LOST else {name: told[name] for name in told if name != "at_ms"}

    def _same(self, told: Event, is_: Event) -> None:
        shown = {name: value for name, value in told.items() if name not in ("event_id", "at_ms")}
        self.audit.same(shown, is_, told["type"])

    def look_at_log(self, path: str, kind: str) -> None:
        """All that was told is in its log, as it was, but for its sound; it begins and ends with the session."""
        audit = self.audit
        lines = [json.loads(line) for line in audit.world.home.disk.get(path).decode().splitlines()]
        audit.same(lines[0]["type"], f"{kind}.session.created", "the first of a log")
        audit.same(lines[-1]["type"], f"{kind}.session.closed", "the last of a log")
        by_number = {line["event_id"]: line for line in lines if "event_id" in line}
        audit.same([*by_number], sorted(by_number), "the order of a log")
        for told in (*self.kept, *self.alone):
            is_ = dict(told)
            if told["type"] == LOST:
                continue
            if "audio_base64" in is_:
                is_["audio_base64"] = f"<{is_['byte_count']} bytes>"
            line = dict(by_number.get(told["event_id"], {}))
            audit.near(line.pop("unix_ms", 0) / 1000.0, audit.wall, "the time of a line", 100_000.0)
            audit.same(line, is_, "a line of a log")
