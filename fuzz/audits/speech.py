"""Speech that is made: a session's life, each event and its number, who may come back, and what is told again then."""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, field

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import Paired, pair
from fuzz.audits.replays import Replays
from fuzz.terms import Wish
from fuzz.world import VOICES
from runtimes.sim.faults import SLOW

__all__ = ["SPEECH"]

UNATTENDED, RESUME = 120.0, 30.0  # s
EDGE = 1.0
ONE_TEXT = 5_000  # characters
OF_ONE = VOICES[1]  # sessions of one caller
KNOWN = SWEPT = 3_600.0  # s for which it is known that a session has ended, and between two looks at what is left


@define(eq=False)
class _Voice:
    """A session of voice, and what was told of it."""

    owner: Paired
    id: str
    path: str
    made: float
    rate: int
    heard: Replays
    log: str
    answered: bool = False
    seat: Seat = field(init=False)  # once somebody has come to it


class _Speech:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.owner = pair(audit, leaves=True)
        self.other = pair(audit, leaves=True)

    def make(self) -> _Voice:
        audit = self.audit
        rate = audit.pick((16_000, 24_000, 48_000))
        body = {"provider": "stub", "sample_rate": rate, "voice": "sine"}
        told = audit.right(audit.ask(self.owner.token, "POST", "/voice/output/session", body), 200)
        is_ = {"success": True, "resume_supported": True, "resume_ttl_ms": 30_000, "provider": "stub", "voice": "sine"}
        is_ |= {"sample_rate": rate, "protocol": "svc.voice.output.v0", "profile": None, "config_scope": "relay"}
        is_ |= {"config_path": None, "fallback_to_global": False}
        audit.same({name: told.get(name) for name in is_}, is_, "a voice session")
        session, path, token = told["session_id"], told["websocket_path"], told["resume_token"]
        audit.same((path, len(session), len(token)), (f"/voice/output/{session}", 24, 43), "what names a voice session")
        audit.world.secrets[token] = "a resume token"
        heard = Replays(audit, session, token, told["resume_ttl_ms"], audit.now)
        return _Voice(self.owner, session, path, audit.now, rate, heard, told["event_log_path"])

    def attach(self, voice: _Voice) -> None:
        audit = self.audit
        voice.seat = seat = audit.sit(voice.owner.host, voice.path, authorization=f"Bearer {voice.owner.token}")
        ready = self.take(voice)
        is_ = {"type": "voice.session.ready", "session_id": voice.id, "provider": "stub", "sample_rate": voice.rate}
        is_ |= {"last_event_id": 0, "last_audio_event_id": 0, "resume_supported": True}
        audit.same({name: ready.get(name) for name in is_}, is_, "a session that is ready")
        if seat.over:
            audit.wrong("a voice session has no socket")

    def take(self, voice: _Voice) -> dict[str, Any]:
        """The next event, which has the next number."""
        return voice.heard.take(voice.seat)

    def speak(self, voice: _Voice) -> None:
        """A text is read: begun, each piece of sound, and its end."""
        audit, seat = self.audit, voice.seat
        text = " ".join([audit.word()] * audit.rng.randint(1, 4))
        text = "x" * (ONE_TEXT + 1) if audit.chance(0.05) else text
        seat.tell({"type": "response.create", audit.pick(("text", "prompt")): text})
        started = self.take(voice)
        is_ = ("voice.response.started", "verbatim", min(len(text), ONE_TEXT))
        audit.same((started["type"], started["render_mode"], started["text_chars"]), is_, "the beginning of a text")
        pieces = 0
        while (event := self.take(voice))["type"] == "voice.audio.delta":
            pieces += 1
            audit.same(
                (event["audio_event_id"], event["sample_rate"], event["channels"]), (pieces, voice.rate, 1), "sound"
            )
        done = self.take(voice)
        audit.same((event["type"], done["type"]), ("voice.audio.done", "voice.response.done"), "the end of a text")
        voice.answered = True

    def nonsense(self, voice: _Voice) -> None:
        """What is refused leaves the socket open."""
        audit, seat = self.audit, voice.seat
        bad: tuple[dict[str, Any], ...] = (
            {"type": "response.create", "text": "  "},
            {"type": "other"},
            {"type": "client.ack", "event_id": "x"},
            {"type": "response.create", "text": 5},
        )
        bad += ({"type": "response.create", "text": "again"},) if voice.answered else ()
        seat.tell(audit.pick(bad))
        told = self.take(voice)
        audit.same(told["type"], "voice.error", "what is answered to nonsense")
        self.acknowledge(voice)

    def acknowledge(self, voice: _Voice) -> None:
        """Which is not answered."""
        seat = voice.seat
        voice.heard.ack(seat)
        self.audit.rest(0.3)
        if seat.heard or seat.over:
            self.audit.wrong(f"an acknowledgement is answered {seat.heard}, over: {seat.over}")

    def come_back(self, voice: _Voice) -> None:
        """The socket is lost; what is told again is what had not come."""
        audit, before = self.audit, voice.seat
        before.talker.hang_up(reset=True)
        voice.heard.lost()
        lost = audit.now
        late = audit.pick((0.5, RESUME - EDGE, RESUME + EDGE))
        audit.rest(late)
        headers = {"authorization": f"Bearer {voice.owner.token}"}
        seat = audit.sit(voice.owner.host, voice.path, **headers)
        if late > RESUME:
            audit.same((seat.over, seat.talker.status), (True, 410), "who comes back too late")
            return
        if seat.over:
            audit.wrong(f"who comes back after {audit.now - lost:.1f} s got {seat.talker.status}")
        if audit.chance(0.3):
            seat.tell({"type": "session.resume", "resume_token": "x" * 43, "last_event_id": 0})
            told = seat.take()
            audit.same(
                (told["type"], told["reason"]), ("voice.session.resume_failed", "invalid_resume_token"), "a wrong token"
            )
            seat.ends(4003, "the end of a socket with a wrong token")
            return
        audit.same(voice.heard.come_back(seat, {}), [], "what was told while nobody listened")
        voice.seat = seat

    def over(self, voice: _Voice) -> None:
        """It is closed, and opens no more."""
        audit, seat = self.audit, voice.seat
        if not seat.over:
            seat.tell({"type": "session.close"})
            seat.ends(1000, "the end of a session")
        audit.rest(0.5)
        audit.turned_away(voice.owner.host, voice.path, voice.owner.token, 410, "a session that is over")

    def look_at_log(self, voice: _Voice) -> None:
        """All that was told is in its log."""
        self.audit.rest(30.0)
        voice.heard.look_at_log(voice.log, "voice.output")

    def wrong_doors(self, voice: _Voice) -> None:
        audit = self.audit
        rows = (
            (voice.path, self.other.token, 403),
            ("/voice/output/none", self.owner.token, 404),
            (voice.path, "nonsense", 403),
        )
        path, token, status = audit.pick(rows)
        audit.turned_away(audit.host(), path, token, status, f"{path} with another token")
        poor = pair(audit, wish=Wish(None, {"voice:tts": None}), leaves=True)
        audit.right(audit.ask(poor.token, "POST", "/voice/output/session", {}), 403, about="no grant for speech")


def speech(audit: Audit) -> None:
    """Texts are read, and who was away hears the rest."""
    people = _Speech(audit)
    for _ in range(audit.rng.randint(1, 3)):
        voice = people.make()
        if audit.chance(0.4):
            people.wrong_doors(voice)
        late = audit.pick((0.0, 0.0, UNATTENDED - EDGE, UNATTENDED + EDGE))
        audit.rest_until(voice.made + late)
        if late > UNATTENDED:
            audit.turned_away(voice.owner.host, voice.path, voice.owner.token, 410, "a session that nobody came to")
            continue
        people.attach(voice)
        for _ in range(audit.rng.randint(0, 2)):
            people.nonsense(voice)
        if audit.chance(0.8):
            people.speak(voice)
            if audit.chance(0.4):
                people.nonsense(voice)
            for _ in range(audit.pick((0, 1, 2))):
                people.acknowledge(voice)
            if audit.chance(0.7):
                people.come_back(voice)
                if voice.seat.over:
                    audit.rest(RESUME + 5.0)
                    people.look_at_log(voice)
                    continue
        slow = 0.9 * audit.chance(0.5)
        audit.world.sim.faults = evolve(audit.world.sim.faults, slow=slow)
        if slow and not voice.seat.over:
            people.nonsense(voice)  # which is being written when the end comes
            audit.rest(0.2)
        people.over(voice)
        people.look_at_log(voice)
        audit.world.sim.faults = evolve(audit.world.sim.faults, slow=0.0)
        if slow:
            audit.rest(SLOW[1] + 1.0)  # until nothing is under way that was slow, nor waits behind it


def settings(audit: Audit) -> None:
    """What is set counts from then on, for all who ask; what is refused changes nothing."""
    one = pair(audit, leaves=True)
    base, audio = audit.pick((("/voice/output", True), ("/voice/realtime", False)))
    shown = audit.right(audit.ask(one.token, "GET", f"{base}/config"), 200)
    for _ in range(audit.rng.randint(3, 6)):
        provider = audit.pick(("stub", "openai_tts") if audio else ("openai_realtime", "xai_realtime"))
        good: dict[str, tuple[Any, str, Any]] = {
            "provider": (provider, "default_provider", provider),
            "voice": (f"v{audit.word()}", "default_voice", None),
            "model": (f"m{audit.word()}", "default_model", None),
            "sample_rate": (audit.pick((16_000, 48_000)), "sample_rate", None),
            "enabled": (audit.pick((True, False, "on", "no")), "enabled", None),
        }
        if audit.chance(0.6):
            names = audit.rng.sample([*good], audit.rng.randint(1, 3))
            body = {name: good[name][0] for name in names}
            told = audit.right(audit.ask(one.token, "PATCH", f"{base}/config", body), 200)
            audit.same(told["updated"], sorted(names), "what was set")
            for name in names:
                value = {"on": True, "no": False}.get(str(good[name][0]), good[name][0])
                shown[good[name][1]] = value
            if "provider" in names:  # what it does not know becomes what it has
                unset = {good[name][1] for name in ("model", "voice", "sample_rate") if name not in names}
                shown |= {name: told[name] for name in unset}
        else:
            bad: tuple[dict[str, Any], ...] = (
                {"sample_rate": 7_999},
                {"sample_rate": 96_001},
                {"voice": ""},
                {"voice": "x" * 161},
                {"other": 1},
                {},
            )
            bad += ({"enabled": "perhaps"}, {"provider": "nobody"}, {"voice": "new", "model": ""})
            body = audit.pick(bad)
            audit.right(audit.ask(one.token, "PATCH", f"{base}/config", body), 400, about=f"{body}")
        again = audit.right(audit.ask(one.token, "GET", f"{base}/config"), 200)
        names = ["default_provider", "default_model", "default_voice", "sample_rate", "enabled", "config_scope"]
        audit.same({name: again[name] for name in names}, {name: shown[name] for name in names}, "what is set")
        if audit.chance(0.15):
            audit.restart("relay", kill=audit.chance(0.5))
    if not shown["enabled"]:
        audit.right(
            audit.ask(one.token, "POST", f"{base}/session", {"provider": "stub"}), 404, about="what is turned off"
        )
    back = {"enabled": True, "provider": "stub" if audio else "openai_realtime"}
    audit.right(audit.ask(one.token, "PATCH", f"{base}/config", {**back, "voice": "sine", "model": "m"}), 200)


def many(audit: Audit) -> None:
    """A caller has so many sessions: one that nobody has come to makes room before one that was left, the oldest
    first; others' never do. What has ended is known for an hour, and what it has left on the disk for two weeks.
    """
    people, disk = _Speech(audit), audit.world.home.disk
    audit.rest(UNATTENDED + SWEPT)  # until none of before is there, and files are looked through again
    runs = f"{audit.world.home.state}-relay/voice-output-runs"
    rows = (("voice-output-a.jsonl", 15, False), ("voice-output-b.wav", 13, True), ("realtime-c.jsonl", 90, True))
    for name, days, _ in (*rows, ("note.txt", 90, True)):
        disk.put(f"{runs}/{name}", b"{}")
        node: Any = disk._nodes[f"{runs}/{name}"]
        node.modified = audit.wall - days * 86_400
    there = [people.make() for _ in range(OF_ONE)]
    audit.rest(0.5)
    left = {name: disk.exists(f"{runs}/{name}") for name, *_ in rows}
    audit.same(left, {name: stays for name, _, stays in rows}, "what sessions of before have left")
    others = audit.right(audit.ask(people.other.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
    listened = audit.rng.sample(there, audit.rng.randint(0, OF_ONE))
    for voice in listened:
        people.attach(voice)
    lost = [voice for voice in listened if audit.chance(0.4)]
    for voice in lost:
        people.speak(voice)
        voice.seat.talker.hang_up(reset=True)
    audit.rest(0.5)
    kept = [voice for voice in listened if voice not in lost]
    for _ in range(audit.rng.randint(1, 3) if len(kept) < OF_ONE else 0):
        order = [voice for voice in there if voice not in listened] + [voice for voice in there if voice in lost]
        there.append(people.make())
        there.remove(order[0])
        gone = order[0]
        audit.turned_away(gone.owner.host, gone.path, gone.owner.token, 410, "a session that made room for another")
        audit.same([voice.seat.over for voice in kept], [False] * len(kept), "those that are used")
    if len(kept) == OF_ONE:
        body = {"provider": "stub", "sample_rate": 24_000}
        caller = audit.ask(people.owner.token, "POST", "/voice/output/session", body)
        audit.right(caller, 503, about="a session too many")
    path = others["websocket_path"]
    seat = audit.sit(people.other.host, path, authorization=f"Bearer {people.other.token}")
    audit.same(seat.take()["type"], "voice.session.ready", "another's session")
    seat.tell({"type": "session.close"})
    audit.wait(lambda: seat.over, 5.0, "a session that is closed keeps its socket")
    ended = audit.now
    late = audit.chance(0.5)
    audit.rest_until(ended + KNOWN + (5.0 if late else -5.0))
    status, other = 404 if late else 410, people.other
    audit.turned_away(other.host, path, other.token, status, f"a session that ended, late: {late}")
    for name, *_ in (*rows, ("note.txt", 0, True)):
        disk.remove(f"{runs}/{name}")


SPEECH = (speech, speech, settings, many)
