"""Speech over HTTP: which engine is meant, what a vendor is asked for, and what comes of it, for whom and how late."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fuzz.audit import Audit, header
from fuzz.audits.paired import Paired, pair
from fuzz.provider import HEAD, PIECES, SAMPLES, recording_of
from fuzz.terms import Wish
from fuzz.upstream import Manner
from fuzz.world import API_KEY, PROVIDER_KEY
from svc_proto.wire.events import RequestHead

__all__ = ["TONES"]

Section = Mapping[str, Any]
MAX_TEXT = 5_000
VENDOR_PATIENCE = 60.0  # s
MOST_AT_ONCE = 64  # who are spoken to
NAMED = ("tts", "stt")
SECTIONS: dict[str, tuple[Section | None, ...]] = {
    "tts": (
        *(None, None, {"provider": "OpenAI"}),
        {"provider": "openai", "openai": {"model": "tts-1", "voice": "nova"}},
        {"provider": "openai", "openai": {"model_id": "tts-1-hd", "voice_id": "onyx"}, "xai": {"voice": "leo"}},
        {"provider": "elevenlabs"},
        {"provider": "openai", "enabled": False},
        {"enabled": "off"},
    ),
    "stt": (
        *(None, None, {"provider": "openai"}),
        {"provider": "openai", "openai": {"model": "whisper-9", "language": "de"}},
        {"provider": "groq"},
        {"provider": "openai", "enabled": "no"},
        {"enabled": True},
    ),
}
MISSING = {"elevenlabs": "ELEVENLABS_API_KEY", "groq": "GROQ_API_KEY"}
CLEANED = (  # what is given, and what is spoken of it
    *(("**voice N**", "voice N"), ("# voice N", "voice N"), ("[voice N](http://x.example/y)", "voice N")),
    *(("see https://x.example/y voice N", "see voice N"), ("`voice N`", "voice N"), ("- voice N", "voice N")),
    *(("voice N\n---\nnext", "voice N\n\nnext"), ("🔧 voice N", "voice N"), ("```\ncode\n``` voice N", "voice N")),
    *(("`🔧 ls` voice N", "voice N"), ("voice N\n\n\n\nnext", "voice N\n\nnext"), ("  voice N  ", "voice N")),
)
UNSPOKEN: tuple[object, ...] = ("", "   ", "```\ncode\n```", "🔧", 5, None, ["x"], "x" * (MAX_TEXT + 1))
SUFFIXES = (
    *(("audio/wav", ".wav"), ("audio/webm", ".webm"), ("audio/ogg", ".ogg"), ("audio/mp4", ".m4a")),
    *(("audio/x-m4a", ".m4a"), ("audio/mpeg", ".mp3"), ("audio/flac; x=1", ".flac"), ("audio/AAC", ".aac")),
    *(("audio/other", ".wav"), ("", ".wav")),
)
ROUTES = (  # and the grant that each asks for
    *(("GET", "/voice/config", "voice:config"), ("POST", "/voice/transcribe", "voice:stt")),
    *(("POST", "/voice/synthesize", "voice:tts"), ("GET", "/voice/output/config", "voice:tts")),
    *(("POST", "/voice/output/session", "voice:tts"), ("GET", "/voice/output/providers/stub/options", "voice:tts")),
    *(("POST", "/voice/output/providers/stub/validate", "voice:tts"), ("GET", "/voice/realtime/config", "")),
    *(("POST", "/voice/realtime/session", ""), ("GET", "/voice/realtime-agent/config", "")),
    *(("POST", "/voice/realtime-agent/session", ""), ("PATCH", "/voice/realtime-agent/config", "")),
)
GRANTS = ("voice:config", "voice:stt", "voice:tts", "voice:realtime")


class _Tones:
    """The files that say which engine is meant, and what the vendor has heard."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.one: Paired = pair(audit, leaves=True)
        self.root = f"{audit.world.home.state}/config.yaml"
        self.name = audit.word()
        self.files: dict[str, dict[str, Section]] = {self.root: {}}
        self.asked: list[tuple[str, str, bytes]] = []
        audit.world.provider.on_request.append(self.hear)

    def hear(self, head: RequestHead, body: bytes) -> None:
        key = (head.headers.get(b"authorization") or b"").decode()
        self.asked.append((head.target.rpartition("/v1")[2], key, body))

    def path(self, name: str) -> str:
        return f"{self.root.rpartition('/')[0]}/profiles/{name}/config.yaml"

    def write(self) -> None:
        """The operator edits a file."""
        audit = self.audit
        path = audit.pick((self.root, self.path(self.name)))
        sections = {kind: audit.pick(SECTIONS[kind]) for kind in NAMED}
        self.files[path] = {kind: section for kind, section in sections.items() if section is not None}
        audit.world.home.disk.put(path, json.dumps({**self.files[path], "other": 5}).encode())

    def meant(self, name: str | None) -> tuple[str, bool, str]:
        """Scope, whether it is for want of another, and the file."""
        if name is None:
            return "global", False, self.root
        if name == "default":
            return "profile", False, self.root
        path = self.path(name)
        return ("profile", False, path) if path in self.files else ("global", True, self.root)

    def engine(self, kind: str, path: str) -> tuple[str, bool, Section]:
        """Who does it, whether it is turned on, and what is said of it."""
        said = self.files[path].get(kind, {})
        provider = said.get("provider", "").lower()
        if not provider:
            root = self.files[self.root].get(kind, {})
            provider, said = root.get("provider", "").lower(), said or root
        on = str(said.get("enabled", True)).lower() not in ("false", "0", "no", "off")
        return provider or "openai", on, said.get(provider, {})

    # --- what is asked ---

    def profile(self) -> str | None:
        name: str | None = self.audit.pick((None, "default", self.name, self.name, "../x", "nobody"))
        return name

    def look(self) -> None:
        audit, name = self.audit, self.profile()
        caller = audit.ask(self.one.token, "GET", "/voice/config" + ("" if name is None else f"?profile={name}"))
        told = audit.right(caller, 200)
        scope, fallback, path = self.meant(name)
        (speaks, loud, voice), (listens, awake, ear) = (self.engine(kind, path) for kind in NAMED)
        if scope == "profile" and not self.files[path]:
            scope, fallback = "global", True
        named = voice.get("voice_id") or voice.get("voice")
        tts = {
            "provider": speaks,
            "voice_id": named,
            "voice": named,
            "model": voice.get("model", voice.get("model_id")),
        }
        is_: dict[str, Any] = {"success": True, "profile": name, "config_scope": scope, "fallback_to_global": fallback}
        is_ |= {"config_path": path if scope == "profile" else None, "tts": {**tts, "enabled": loud, "enhanced": None}}
        is_ |= {"stt": {"provider": listens, "model": ear.get("model"), "enabled": awake}}
        told.pop("requirements")
        audit.same(told, is_, f"the engines of {name}")

    def speak(self) -> None:
        audit, name, number = self.audit, self.profile(), self.audit.rng.randrange(1, 30_000)
        given, spoken = audit.pick(CLEANED)
        given, spoken = given.replace("N", str(number)), spoken.replace("N", str(number))
        if audit.chance(0.2):
            given = spoken = f"voice {number} " + "x" * (MAX_TEXT - len(f"voice {number} "))
            given = f" {given}\n"
        body: dict[str, Any] = {"text": given, "voice": "other", "enhanced": {"voice": "another"}}
        query = ""
        if name is not None and audit.chance(0.5):
            body["profile"] = name
        elif name is not None:
            query, body["profile"] = f"?profile={name}", "nobody"
        self.asked.clear()
        caller = audit.ask(self.one.token, "POST", f"/voice/synthesize{query}", body)
        provider, on, said = self.engine("tts", self.meant(name)[2])
        if self.refused(caller, provider, on):
            return
        audit.right(caller, 200)
        audit.same(caller.answer.body, recording_of(number % 30_000) * PIECES, "what is heard of a text")
        headers = {"content-type": "audio/mpeg", "cache-control": "private, no-store"}
        headers["content-disposition"] = 'inline; filename="tts.mp3"'
        for field, value in headers.items():
            audit.same(header(caller, field), value, f"{field} of speech")
        model, voice = said.get("model", said.get("model_id")), said.get("voice_id") or said.get("voice")
        is_ = {
            "model": model or "gpt-4o-mini-tts",
            "voice": voice or "alloy",
            "input": spoken,
            "response_format": "mp3",
        }
        told = [(path, key, json.loads(data)) for path, key, data in self.asked]
        audit.same(told, [("/audio/speech", f"Bearer {PROVIDER_KEY}", is_)], "what a vendor is asked for")

    def refused(self, caller: Any, provider: str, on: bool) -> bool:
        """Whether nobody can do it, which is told with what is missing."""
        audit, why = self.audit, MISSING.get(provider)
        if on and why is None:
            return False
        told = audit.right(caller, 500, about=f"{provider}, {on}")
        audit.same((told["success"], self.asked), (False, []), "what is told, and asked, where nobody can")
        if on and (why or "") not in told["error"]:
            audit.wrong(f"{why} is not set, and told is {told}")
        if caller.path.startswith("/voice/transcribe"):
            audit.same(told["provider"], None, "who has failed where a key is missing")
        return True

    def listen(self) -> None:
        audit, name, number = self.audit, self.profile(), self.audit.rng.randrange(1, 30_000)
        kind, suffix = audit.pick(SUFFIXES)
        sound = b"RIFF" + bytes(HEAD - 4) + recording_of(number, SAMPLES)
        other = b"RIFF" + bytes(HEAD - 4) + recording_of(number + 1, SAMPLES)
        named = audit.pick(('name="audio"; filename="a.bin"', 'name="file"', 'name="audio"', 'name="x"; filename="y"'))
        parts = [(named, kind, sound)]
        parts = [('name="note"', "", b"not sound"), *parts] if audit.chance(0.4) else parts
        parts = [*parts, ('name="audio"; filename="b"', "audio/mpeg", other)] if audit.chance(0.3) else parts
        self.asked.clear()
        before = audit.world.home.disk.paths("/home")
        caller = self.send(parts, "" if name is None else f"?profile={name}")
        provider, on, said = self.engine("stt", self.meant(name)[2])
        if not self.refused(caller, provider, on):
            is_ = {"success": True, "text": f"voice {number}", "provider": "openai", "profile": name}
            audit.same(audit.right(caller, 200), is_, "what a recording says")
            ((path, key, data),) = self.asked
            audit.same((path, key), ("/audio/transcriptions", f"Bearer {PROVIDER_KEY}"), "whom a vendor hears")
            for value in (said.get("model", "whisper-1"), said.get("language", "json"), suffix):
                if value.encode() not in data[: data.index(b"RIFF")]:
                    audit.wrong(f"a vendor is not told {value}: {data[: data.index(b'RIFF')]!r}")
        audit.rest(0.5)
        left = [path for path in audit.world.home.disk.paths("/home") if path not in before]
        audit.same([path for path in left if "spool" in path], [], "recordings that are left")

    def send(self, parts: list[tuple[str, str, bytes]], query: str = "", token: str = "") -> Any:
        """A form."""
        body = b""
        for named, kind, data in parts:
            said = f"content-type: {kind}\r\n" if kind else ""
            body += f"--b\r\ncontent-disposition: form-data; {named}\r\n{said}\r\n".encode() + data + b"\r\n"
        path, form = f"/voice/transcribe{query}", {"content_type": "multipart/form-data; boundary=b"}
        return self.audit.ask(token or self.one.token, "POST", path, body + b"--b--\r\n", **form)

    def refuse(self) -> None:
        """What cannot be spoken, or is no recording, goes to no vendor."""
        audit = self.audit
        self.asked.clear()
        for text in audit.rng.sample(UNSPOKEN, 2):
            told = audit.right(audit.ask(self.one.token, "POST", "/voice/synthesize", {"text": text}), 400)
            audit.same((told["success"], {*told} >= {"success", "error"}), (False, True), "a refusal of speech")
        rows: tuple[tuple[list[tuple[str, str, bytes]], str], ...] = (
            ([('name="note"', "", b"x")], "audio_missing"),
            ([('name="audio"; filename="a"', "audio/wav", b"")], "audio_empty"),
            ([], ""),
        )
        parts, _ = audit.pick(rows)
        told = audit.right(self.send(parts), 400, about=f"{parts}")
        audit.same(told["success"], False, "a refusal of a recording")
        for body in (b"x", b"{}"):
            audit.right(audit.ask(self.one.token, "POST", "/voice/transcribe", body), 400, about="what is no form")
        audit.same(self.asked, [], "what a vendor is asked for what was refused")

    def doors(self) -> None:
        """Each route asks for its own grant, and for no other."""
        audit = self.audit
        withheld = audit.pick(GRANTS)
        poor = pair(audit, wish=Wish(None, {withheld: None}), leaves=True)
        for method, path, grant in audit.rng.sample(ROUTES, 6):
            caller = audit.ask(poor.token, method, path, {} if method != "GET" else None)
            if (grant or "voice:realtime") == withheld:
                audit.same((caller.status, withheld in caller.answer.body.decode()), (403, True), f"{path} is refused")
            elif caller.status in (401, 403):
                audit.wrong(f"{path} got {caller.status} without {withheld}")
        audit.same(audit.ask("", "GET", "/voice/config").status, 401, "nothing that is shown")
        near = audit.ask_here("GET", "/voice/config", authorization=f"Bearer {API_KEY}")
        audit.right(near, 200, about="the API's key from this host")

    def trouble(self) -> None:
        """A vendor that refuses, breaks off or says nothing: 500, in so many seconds."""
        audit, upstream = self.audit, self.audit.world.upstream
        provider, on, _ = self.engine("tts", self.root)
        if provider != "openai" or not on:
            return
        upstream.trouble = manner = audit.pick((Manner.REFUSE, Manner.BREAK, Manner.HANG))
        many = MOST_AT_ONCE if manner is Manner.HANG and audit.chance(0.3) else 1
        callers = [
            audit.begin_as(self.one.token, "POST", "/voice/synthesize", {"text": f"voice {n}"}) for n in range(many)
        ]
        if many > 1:
            audit.rest(1.0)  # all of them are there
            told = audit.ask(self.one.token, "POST", "/voice/synthesize", {"text": "voice"})
            audit.right(told, 503, about="one too many who are spoken to")
            audit.same(told.answer.headers.get(b"retry-after"), b"5", "when to come again")
        for caller in callers:
            told = audit.right(audit.answer(caller, VENDOR_PATIENCE + 10.0), 500, about=f"a vendor that {manner.name}")
            audit.same(told["success"], False, "what is told of a vendor that fails")
            if manner is Manner.HANG:
                audit.near(caller.ended - caller.began, VENDOR_PATIENCE, "how long a vendor is waited for", 2.0)
        upstream.trouble = None
        self.speak()


def tones(audit: Audit) -> None:
    """Texts are read and recordings understood, as the files say."""
    disk, tones = audit.world.home.disk, _Tones(audit)
    before = disk.get(tones.root) if disk.exists(tones.root) else None
    disk.put(tones.root, b"{}")
    kinds = (tones.write, tones.write, tones.look, *[tones.speak] * 4, tones.listen, tones.listen, tones.refuse)
    for _ in range(audit.rng.randint(12, 18)):
        audit.pick(kinds)()
    tones.look()
    audit.pick((tones.doors, tones.trouble))()
    for path in tones.files:
        disk.remove(path)
        if path != tones.root:
            disk.remove(path.removesuffix("/config.yaml"))
    if before is not None:
        disk.put(tones.root, before)
    audit.world.provider.on_request.remove(tones.hear)


TONES = (tones,)
