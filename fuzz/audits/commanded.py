"""Engines of the operator's own, by a command line each: what they are started with, and what comes of them.

Decision 174: words, never a shell's line; files that go whatever happens; a failure is told by its status alone.
"""

from __future__ import annotations

import json
from typing import Any

from attrs import define

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.paired import Paired, pair
from runtimes.sim.child import Child, Script
from svc_proto.commands import SignalName
from tests.support.sim_http import RequestClient as Caller

__all__ = ["COMMANDED"]

SAY, HEAR = "/usr/bin/say", "/usr/bin/hear"
WITHIN = 120.0  # s that a command has
TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav", "ogg": "audio/ogg", "opus": "audio/ogg", "flac": "audio/flac"}
NAMES = {"mp3": "tts.mp3", "wav": "tts.wav", "ogg": "tts.ogg", "opus": "tts.ogg", "flac": "tts.flac"}
ODD = "a; rm -rf $HOME `x` {voice} 'b' \"c\" é"  # what a shell would make something of
Members = dict[str, Any]


@define
class _Way:
    """How an engine goes on."""

    status: int = 0
    leaves: bytes | None = None  # in its file
    says: bytes = b""
    late: float = 0.1


class _Engine(Script):
    """It does what it is told, and is noted."""

    def __init__(self, child: Child, room: _Commanded) -> None:
        super().__init__(child)
        self.room, self.heard = room, b""
        room.started.append(self)
        self.files = {word: child.host.disk.get(word) for word in child.argv if child.host.disk.exists(word)}

    def on_input(self, data: bytes) -> None:
        """Words to speak."""
        self.heard += data

    def on_input_closed(self) -> None:
        """Go on."""
        self.child.after(self.room.way.late, self.done)

    def done(self) -> None:
        """Leave what is to be left, and say what is to be said."""
        way = self.room.way
        out = next((word for word in self.child.argv if word.endswith((".txt", *(f".{each}" for each in TYPES)))), None)
        out = next((word for word in self.child.argv if "out=" in word), out)
        if way.leaves is not None and out is not None:
            self.child.host.disk.put(out.rpartition("out=")[2], way.leaves)
        self.child.emit(way.says)
        self.child.emit_error(b"secret words of an engine")
        self.child.exit(way.status)

    def on_signal(self, signal: SignalName) -> None:
        """It does not mind to be told."""


class _Commanded:
    def __init__(self, audit: Audit) -> None:
        self.way = _Way()
        self.started: list[_Engine] = []
        programs = {name: lambda child: _Engine(child, self) for name in (SAY, HEAR)}
        self.annex = Annex(audit, programs=programs)
        self.one: Paired = pair(self.annex, leaves=True)

    def write(self, **sections: Members) -> None:
        path = f"{self.annex.home.state}/config.yaml"
        self.annex.home.disk.put(path, json.dumps(sections).encode())

    def steps(self) -> None:
        for _ in range(self.annex.rng.randint(4, 7)):
            self.started.clear()
            self.annex.pick((self.speak, self.speak, self.listen))()
            spool = self.annex.home.disk.files(self.annex.home.spool)
            self.annex.rest(0.5)
            self.annex.same([*self.annex.home.disk.files(self.annex.home.spool)], [], f"files that are left of {spool}")
        self.annex.stop()

    def ask(self, path: str, body: object, **headers: str) -> Caller:
        annex = self.annex
        return annex.answer(annex.begin_as(self.one.token, "POST", path, body, **headers), WITHIN + 10.0)

    def draw(self, good: bytes) -> _Way:
        """How it is to go on: mostly well."""
        bad = (_Way(3, good), _Way(0, None), _Way(0, good, late=WITHIN + 5.0), _Way(137, b"", b"x"))
        self.way = _Way(0, good) if self.annex.chance(0.6) else self.annex.pick(bad)
        return self.way

    def started_with(self, words: list[str]) -> list[str]:
        """The words of the one that was started, its files apart; what it sees of our environment is no key."""
        (engine,) = self.started
        child = engine.child
        for key, value in child.env.items():
            if "KEY" in key or "TOKEN" in key or self.one.token in value:
                self.annex.wrong(f"an engine is given {key}")
        return [word for word in child.argv if word not in words]

    def speak(self) -> None:
        """A text becomes a file of sound."""
        annex = self.annex
        kind = annex.pick((*TYPES, "", "aiff"))
        named, by_file = annex.pick((("voice", ODD), ("voice_id", "Ann"), ("model", "m"), ("", ""))), annex.chance(0.4)
        line = f"{SAY} -v '<{{voice}}>' {{model}} --{{format}} {{speed}} out={{output_path}}"
        line += " {input_path}" if by_file else ""
        line = annex.pick((line, line, line, line.replace(" out={output_path}", ""), "say 'unfinished"))
        about: Members = {"type": "command", "command": line} | ({named[0]: named[1]} if named[0] else {})
        about |= ({"format": kind} if kind else {}) | annex.pick(({}, {"speed": 1.5}))
        self.write(tts={"provider": "mine", "providers": {"Mine": about}})
        way, text = self.draw(sound := f"sound {annex.word()}".encode()), f"{annex.word()} so"
        caller = self.ask("/voice/synthesize", {"text": text})
        wrong = kind == "aiff" or "unfinished" in line or "out=" not in line
        if wrong:
            annex.same((caller.status, self.started), (500, []), f"{line} as {kind} is answered {caller.answer.body!r}")
            return
        (engine,) = self.started
        voice = named[1] if named[0].startswith("voice") else ""
        due = [SAY, "-v", f"<{voice}>", "m" if named[0] == "model" else "", f"--{kind or 'mp3'}"]
        due.append(f"{about.get('speed', 1):g}")
        told = engine.child.argv
        annex.same(list(told[:6]), due, f"how an engine is started by {line}")
        annex.same(
            (told[6][:5], told[6].rpartition(".")[2], len(told)), ("out=/", kind or "mp3", 7 + by_file), "its files"
        )
        annex.same(engine.heard, text.encode(), "what an engine is to say")
        if by_file:
            annex.same(engine.files.get(told[7]), text.encode(), "what is in its file")
        self.started_with([])
        self.judge(caller, sound)
        if caller.status == 200:
            annex.same(caller.answer.body, sound, "what is heard of an engine")
            headers = caller.answer.headers
            fields = [(headers.get(name) or b"").decode() for name in (b"content-type", b"content-disposition")]
            form = f'inline; filename="{NAMES[kind or "mp3"]}"'
            annex.same(fields, [TYPES[kind or "mp3"], form], f"the type of what is heard, {way}")

    def judge(self, caller: Caller, good: bytes) -> None:
        """What an engine's end leads to."""
        annex, way = self.annex, self.way
        fine = way.status == 0 and way.leaves == good and way.late < WITHIN
        told = annex.right(caller, 200 if fine else 500, about=f"an engine that goes {way}")
        if fine:
            return
        if "secret" in told["error"] or (way.status and str(way.status) not in told["error"]):
            annex.wrong(f"an engine that goes {way} is told as {told}")
        if way.late > WITHIN:
            annex.near(caller.ended - caller.began, WITHIN, "how long an engine is waited for", 3.0)

    def listen(self) -> None:
        """A recording becomes words."""
        annex, by_file = self.annex, self.annex.chance(0.5)
        line = f"{HEAR} {{language}} {{input_path}}" + (" out={output_path}" if by_file else "")
        about = {"type": "command", "command": line, "language": ODD}
        self.write(stt={"provider": "MINE", "providers": {"mine": about}})
        words, data = f"words {annex.word()}", annex.word().encode()
        way = self.draw(f" {words}\n".encode())
        if not by_file:
            way.says, way.leaves = way.leaves or b"", None
        body = b'--b\r\ncontent-disposition: form-data; name="audio"; filename="a"\r\ncontent-type: audio/ogg\r\n\r\n'
        form = {"content_type": "multipart/form-data; boundary=b"}
        caller = self.ask("/voice/transcribe", body + data + b"\r\n--b--\r\n", **form)
        (engine,) = self.started
        annex.same(engine.child.argv[:2], (HEAR, ODD), "how an engine that listens is started")
        path = engine.child.argv[2]
        annex.same((engine.files.get(path), path.endswith(".ogg")), (data, True), "what it is to hear")
        if way.status or way.late > WITHIN:
            self.judge(caller, b"")
            return
        said = way.leaves if by_file else way.says
        told = annex.right(caller, 200, about=f"an engine that listens, {way}")
        text = (said or b"").decode().strip()
        annex.same(told, {"success": True, "text": text, "provider": "mine", "profile": None}, "what is understood")


def commanded(audit: Audit) -> None:
    """Texts are spoken, and recordings heard, by commands."""
    _Commanded(audit).steps()


COMMANDED = (commanded,)
