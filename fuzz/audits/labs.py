"""The lab of voices, and what is set of speech: each setting at its edges, for the relay and for a profile."""

from __future__ import annotations

import base64
import json
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import Paired, pair
from fuzz.provider import VENDOR_PORT, recording_of
from fuzz.world import API_KEY

__all__ = ["LABS"]

CANNED = "This is a test of the realtime voice."
LOUD = ("stub", "openai_tts")  # who speaks at once, and who takes his time
PIECE = 200  # ms that a vendor takes between two pieces, at most

Rows = tuple[tuple[object, object], ...]
FLAGS: Rows = (
    *((True, True), (False, False), ("on", True), ("no", False)),
    *(("1", True), (0, False), ("perhaps", None), (5, None)),
)
NAMED: Rows = (("a b", "a b"), ("x" * 160, "x" * 160), ("x" * 161, None), ("", None), (5, None), ("a\nb", None))


def _range(low: int, high: int) -> Rows:
    good: list[tuple[object, object]] = [(low, low), (high, high), (str(low), low)]
    return (*good, (low - 1, None), (high + 1, None), (low + 0.5, None), ("x", None), (True, None), ([], None))


def _words(*words: str) -> Rows:
    return (*((word, word) for word in words), (words[0].upper(), words[0]), ("other", None), (5, None))


COMMON: dict[str, Rows] = {"enabled": FLAGS, "model": NAMED, "voice": NAMED, "sample_rate": _range(8_000, 96_000)}
OUTPUT: dict[str, Rows] = {
    **COMMON,
    "language": (("de", "de"), ("x" * 24, "x" * 24), ("x" * 25, None), ("", None)),
    "codec": _words("pcm", "wav", "mp3", "mulaw", "ulaw", "alaw"),
    "optimize_streaming_latency": _range(0, 1),
    "text_normalization": FLAGS,
    "fallback_enabled": FLAGS,
    "auto_speech_tags": FLAGS,
}
AGENT: dict[str, Rows] = {
    **COMMON,
    "promotion_enabled": FLAGS,
    "promote_after_ms": _range(0, 120_000),
    "progress_spoken_after_ms": _range(0, 600_000),
    "progress_repeat_ms": _range(0, 600_000),
    "max_background_runs": _range(1, 4),
    "spoken_handoff": FLAGS,
    "background_default_mode": _words("promote", "foreground"),
    "result_delivery": _words("speak_verbatim", "speak_when_idle", "notify_then_speak", "visual_only"),
}
FAMILIES: dict[str, tuple[dict[str, Rows], str]] = {
    "/voice/output": (OUTPUT, "svc.voice.output.v0"),
    "/voice/realtime": (COMMON, "svc.voice.realtime.v0"),
    "/voice/realtime-agent": (AGENT, "svc.voice.realtime_agent.v0"),
}
SHOWN = {"model": "default_model", "voice": "default_voice"}
NEVER_SET = ("run_retention_days", "debug_audio_tap", "other", "scope")
Info = tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], tuple[str, ...], bool]
BUILT_IN = ("eve", "ara", "rex", "sal", "leo")
PROVIDERS: dict[str, Info] = {  # models, voices, rates, languages, and whether a voice is the model's or no voice
    "stub": (("stub-tone",), ("sine",), (16_000, 24_000, 48_000), ("en",), False),
    "xai_tts": (("xai-tts",), BUILT_IN, (24_000,), ("en",), True),
}


@define(eq=False)
class _Lab:
    """A session of the lab, and what its socket has to say."""

    audit: Audit
    owner: Paired
    provider: str
    path: str
    made: float
    seats: list[Seat] = field(factory=list)
    heard: int = 0  # bytes

    @property
    def seat(self) -> Seat:
        """The newest."""
        return self.seats[-1]

    def come(self) -> None:
        """Open a socket; the one before it, if there is one, is over."""
        audit, before = self.audit, [seat for seat in self.seats if not seat.over]
        seat = audit.sit(self.owner.host, self.path, authorization=f"Bearer {self.owner.token}")
        self.seats.append(seat)
        if seat.over:
            audit.wrong(f"a session of the lab got {seat.talker.status}")
        ready = self.take("voice.session.ready")
        audit.same([name for name in ready if "resume" in name or "last_" in name], [], "what the lab says of resuming")
        audit.same(ready["provider"], self.provider, "who speaks")
        for other in before:
            audit.wait_over(other, 5.0, "two sockets of one session of the lab stay")

    def take(self, kind: str) -> dict[str, Any]:
        """The next event, which has no number."""
        told = self.seat.take()
        self.audit.same(
            (told["type"], "event_id" in told), (kind, False), f"what the lab says: {json.dumps(told)[:200]}"
        )
        self.audit.near(told["at_ms"] / 1000.0, self.audit.now - self.made, "when it is said to be", 1.0)
        return told

    def listen(self) -> None:
        size, rate = self.audit.pick((0, 3, 640)), self.audit.pick((None, 16_000))
        message: dict[str, object] = {"type": "input_audio.append", "audio_base64": "QUJD" * (size // 3)}
        self.seat.tell({**message, **({} if rate is None else {"sample_rate": rate})})
        self.heard += size // 3 * 3
        told = self.take("voice.input_audio.received")
        is_ = (size // 3 * 3, self.heard, rate or 24_000)
        self.audit.same((told["byte_count"], told["total_bytes"], told["sample_rate"]), is_, "what a microphone heard")

    def begin(self) -> int:
        """Have something said; the value of its samples."""
        audit, number = self.audit, self.audit.rng.randrange(1, 30_000)
        text = f"voice {number}" if audit.chance(0.8) else ""
        scaffold, mode = audit.chance(0.3), audit.pick((None, "verbatim"))
        body: dict[str, object] = {"type": "response.create", audit.pick(("text", "prompt")): text}
        body |= {"tool_scaffold": True} if scaffold else {}
        body |= {"render_mode": mode} if mode else {}
        self.seat.tell(body)
        started = self.take("voice.response.started")
        told = (started["render_mode"], started["text_chars"], started["input_audio_bytes"])
        audit.same(told, (mode or "conversation", len(text or CANNED), self.heard), "the beginning of a response")
        if scaffold:
            asked, done = self.take("voice.tool.requested"), self.take("voice.tool.completed")
            audit.same(asked["arguments"], {"input_audio_bytes": self.heard}, "what a tool would be told")
            audit.same((asked["name"], done["result"]), (done["name"], "scaffold-only"), "what a tool did")
        return number if text else 0

    def hear_out(self, number: int) -> None:
        """All of it, and nothing else."""
        audit, sound = self.audit, ""
        while (told := self.seat.take())["type"] == "voice.audio.delta":
            sound += told["audio_base64"]
            if self.provider != "stub":
                self.check_sound(told["audio_base64"], number)
        audit.same((told["type"], bool(sound)), ("voice.audio.done", True), "what comes behind the sound")
        done = self.take("voice.response.done")
        audit.same("output_mode" in done, False, "whether the lab has a mode")

    def check_sound(self, coded: str, number: int) -> None:
        data = base64.b64decode(coded)
        self.audit.same(data, recording_of(number, len(data) // 2), f"the sound of {number}")


def lab(audit: Audit) -> None:
    """Voices are tried, one text after another, with a socket that comes and goes."""
    owner, other = pair(audit), pair(audit)
    for each in (owner, other):
        each.seat.hang_up()
    provider = audit.pick(LOUD)
    body = {"provider": provider, "sample_rate": 24_000}
    told = audit.right(audit.ask(owner.token, "POST", "/voice/realtime/session", body), 200)
    session = told["session_id"]
    is_ = {"success": True, "websocket_path": f"/voice/realtime/{session}", "provider": provider, "sample_rate": 24_000}
    is_ |= {"protocol": "svc.voice.realtime.v0", "profile": None, "config_scope": "relay"}
    audit.same({name: told.get(name) for name in is_}, is_, "a session of the lab")
    audit.same([name for name in told if "resume" in name], [], "what a session of the lab says of resuming")
    one = _Lab(audit, owner, provider, told["websocket_path"], audit.now)
    for token, status in ((other.token, 403), (API_KEY, 403)):
        audit.turned_away(audit.host(), one.path, token, status, "somebody else's session of the lab")
    one.come()
    for _ in range(audit.rng.randint(3, 7)):
        match audit.rng.randrange(6):
            case 0:
                one.listen()
            case 1:
                one.seat.tell(audit.pick(({"type": "session.resume"}, {"type": "response.cancel"}, {"type": "x"}, {})))
                one.take("voice.error")
            case 2:  # lost in the middle: the next response is a new one, and begins at once
                number = one.begin()
                audit.rest(audit.pick((0.0, 0.1, 0.4)))
                one.seat.talker.hang_up(reset=audit.chance(0.5))
                audit.rest(audit.pick((0.3, 3.0)))
                one.come()
                one.hear_out(one.begin())
            case 3:  # a second socket takes its place
                one.come()
            case 4 if provider != "stub":
                number = one.begin()
                one.seat.tell({"type": "response.create", "text": "again"})
                seen: list[dict[str, Any]] = []
                while (event := one.seat.take())["type"] == "voice.audio.delta":
                    seen.append(event)
                audit.same(event["type"], "voice.error", "a second response at once")
                one.hear_out(number)
            case _:
                one.hear_out(one.begin())
    if provider != "stub" and audit.chance(0.6):
        one.begin()
        audit.wait(lambda: bool(_called(audit)), 5.0, "a vendor is not asked")
    one.seat.tell({"type": "session.close"})
    one.seat.ends(1000, "the end of a session of the lab")
    audit.rest(0.2)
    audit.same(_called(audit), [], "vendors who are listened to for nobody")
    audit.turned_away(owner.host, one.path, owner.token, 404, "a session of the lab that is over")


def _called(audit: Audit) -> list[str]:
    """Connections to the vendor of speech."""
    network = audit.world.sim.network
    return [f"{each}" for each in network.connections if each.client.peer.port == VENDOR_PORT and not each.client.gone]


def choices(audit: Audit) -> None:
    """Each setting takes what it may be, at its edges, and shows it; a profile's lie over the relay's."""
    disk = audit.world.home.disk
    one, base = pair(audit), audit.pick([*FAMILIES])
    one.seat.hang_up()
    rows, protocol = FAMILIES[base]
    root, name = f"{audit.world.home.state}-relay/config.yaml", audit.word()
    folder = f"{audit.world.home.state}/profiles/{name}"
    before = disk.get(root) if disk.exists(root) else None
    disk.put(f"{folder}/config.yaml", b"# mine\nother: {x: 1}\n")
    asked = {"enabled": True, "model": "m", "voice": "v", "sample_rate": 24_000, "provider": "stub"}
    audit.right(audit.ask(one.token, "PATCH", f"{base}/config", asked), 200)
    relay = _values(audit.right(audit.ask(one.token, "GET", f"{base}/config"), 200))
    mine: dict[str, object] = {}
    for _ in range(audit.rng.randint(6, 10)):
        edges = audit.pick([*rows])
        for value, good in rows[edges]:
            if good is None:
                refused = audit.ask(one.token, "PATCH", f"{base}/config", {edges: value})
                audit.right(refused, 400, about=f"{base} with {edges} {value!r}")
        profile = audit.chance(0.4)
        names = audit.rng.sample([*rows], audit.rng.randint(1, 3))
        chosen = {each: audit.pick(rows[each]) for each in names}
        body: dict[str, object] = {each: value for each, (value, _) in chosen.items()}
        bad = any(value is None for _, value in chosen.values())
        if audit.chance(0.1):
            body, bad = {**body, audit.pick(NEVER_SET): 1}, True
        query = ""
        if profile and audit.chance(0.5):
            query = f"?profile={name}"
        elif profile:
            body["profile"] = name
        caller = audit.ask(one.token, "PATCH", f"{base}/config{query}", body)
        if bad:
            audit.right(caller, 400, about=f"{base} with {body}")
        else:
            told = audit.right(caller, 200, about=f"{base} with {body}")
            audit.same(told["updated"], sorted(names), "what was set")
            audit.same(told["config_path"], f"{folder}/config.yaml" if profile else root, "where it was put")
            (mine if profile else relay).update({each: value for each, (_, value) in chosen.items()})
        told = audit.right(audit.ask(one.token, "GET", f"{base}/config"), 200)
        audit.same((_values(told), told["protocol"], told["config_scope"]), (relay, protocol, "relay"), "what is set")
        told = audit.right(audit.ask(one.token, "GET", f"{base}/config?profile={name}"), 200)
        is_ = (name, "profile" if mine else "relay", not mine)
        audit.same((told["profile"], told["config_scope"], told["fallback_to_global"]), is_, "whose settings they are")
        audit.same(_values(told), {**relay, **mine}, f"what is set for a profile, {mine}")
    if mine and b"other: {x: 1}" not in disk.get(f"{folder}/config.yaml"):
        audit.wrong(f"a profile's file has lost what is not ours: {disk.get(f'{folder}/config.yaml')!r}")
    missing = audit.ask(one.token, "PATCH", f"{base}/config?profile=nobody", {"enabled": True})
    audit.right(missing, 404, about="settings of a profile that is not there")
    key = {"authorization": f"Bearer {API_KEY}"}
    refused = audit.ask_here("PATCH", f"{base}/config?profile={name}", {"enabled": True}, **key)
    audit.right(refused, 403, about="settings of a profile, by the API's key")
    audit.right(audit.ask_here("PATCH", f"{base}/config", {"enabled": True}, **key), 200)
    _checked(audit, one)
    disk.remove(f"{folder}/config.yaml")
    disk.remove(folder)
    disk.remove(root)
    if before is not None:
        disk.put(root, before)
    audit.rest(35.0)


def speakers(audit: Audit) -> None:
    """A voice session is its device's, by whichever token; it is cut when its token or its grant is."""
    device, host = audit.word(), audit.host()
    one, again = (pair(audit, device_id=device, host=host) for _ in range(2))
    other = pair(audit)
    base, grant = audit.pick((("/voice/output", "voice:tts"), ("/voice/realtime", "voice:realtime")))
    told = audit.right(audit.ask(one.token, "POST", f"{base}/session", {"provider": "stub"}), 200)
    path = told["websocket_path"]
    for token, status in ((other.token, 403), (API_KEY, 403), ("x" * 36, 403)):
        audit.turned_away(audit.host(), path, token, status, f"a voice session of another device, {token[:4]}")
    key = audit.sit(audit.home, path, authorization=f"Bearer {API_KEY}") if audit.chance(0.3) else None
    if key is not None and not key.over and key.talker.status == 101:
        audit.wrong("the API's key opened a device's voice session")
    by = audit.pick((one, again))
    seat = audit.sit(host, path, authorization=f"Bearer {by.token}")
    audit.same(seat.take()["type"], "voice.session.ready", "a voice session of one's own device")
    away, revoked = audit.pick((one, again)), audit.chance(0.5)
    if revoked:
        audit.right(audit.ask_here("DELETE", f"/sessions/{away.prefix}"), 200)
    else:
        grants = audit.pick(({grant: False}, {grant: False}, {"terminal": False}))
        audit.right(audit.ask_here("PATCH", f"/sessions/{away.prefix}", {"grants": grants}), 200)
        away = away if grant in grants else other
    if away is by or (revoked and away is one):  # who has made the session
        seat.ends(1008, "the end of a voice socket that is cut", 3.0)
    else:
        audit.rest(3.0)
        audit.same(seat.over, False, f"whether a voice socket ends for what was done to another, {away is other}")
        seat.tell({"type": "session.close"})
        audit.wait(lambda: seat.over, 5.0, "a session that is closed keeps its socket")
    for each in (one, again, other):
        each.seat.hang_up()


def _values(told: dict[str, Any]) -> dict[str, object]:
    """What is set, by the names that it is set by."""
    rows = {"/voice/output": OUTPUT, "agent": AGENT}
    names = rows["agent"] if "promotion" in told else rows["/voice/output"] if "codec" in told else COMMON
    promotion = {
        ("promotion_enabled" if key == "enabled" else key): value for key, value in told.get("promotion", {}).items()
    }
    return {name: promotion[name] if name in promotion else told[SHOWN.get(name, name)] for name in names}


def _checked(audit: Audit, one: Paired) -> None:
    """A choice is judged by what its provider has; what is unknown is a warning where it may be."""
    for _ in range(3):
        provider = audit.pick([*PROVIDERS])
        models, voices, rates, languages, strict = PROVIDERS[provider]
        model, voice = audit.pick((models[0], "other")), audit.pick((voices[-1], "nobody"))
        rate, language = audit.pick((rates[0], rates[-1], 8_000, 24_001)), audit.pick((languages[0], "xx"))
        body = {"model": model, "voice": voice, "sample_rate": rate, "language": language}
        path = f"/voice/output/providers/{provider}/validate"
        told = audit.right(audit.ask(one.token, "POST", path, body), 200)
        theirs = strict and model in models
        heard = "ok" if voice in voices else "error" if theirs else "warning"
        known = "voice_compatible" if theirs and voice not in voices else "voice_known"
        is_ = [("model_known", "ok" if model in models else "warning"), (known, heard)]
        is_ += [("sample_rate_known", "ok" if rate in rates else "error")]
        is_ += [("language_known", "ok" if language in languages else "warning")]
        audit.same(
            [(each["id"], each["status"]) for each in told["checks"]], is_, f"what is said of {body} of {provider}"
        )
        valid = all(status != "error" for _, status in is_)
        summary = (told["valid"], told["summary"], told["provider_id"])
        audit.same(summary, (valid, "ok" if valid else "invalid", provider), "the end of it")
    for provider, status in (("stub", 200), ("openai_realtime", 400), ("nobody", 400)):
        audit.right(audit.ask(one.token, "GET", f"/voice/output/providers/{provider}/options"), status)
    bad = audit.ask(one.token, "POST", "/voice/output/providers/stub/validate", {"sample_rate": "x"})
    audit.right(bad, 400, about="a rate that is no number")


LABS = (lab, choices, speakers)
