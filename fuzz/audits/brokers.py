"""Who talks with the realtime agent: each event of each turn, whoever speaks, and what is asked of the provider.

What the model behind says is drawn beforehand (`fuzz.part`), so all that a turn has to tell follows from wire
terminal-voice 6: words, tools, questions, sound, the end, in this order. A name that only the server can give is bound
where it is told first, and has to stay the same. Sockets are lost between turns and within them.
"""

from __future__ import annotations

import base64
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import pair
from fuzz.audits.replays import Replays
from fuzz.part import Round, asking
from fuzz.provider import recording_of, sound_of
from svc_proto.basics.pcm import resample

__all__ = ["BROKERS"]

BASE = "/voice/realtime-agent"
TOOLS = ["svc_run_task", "svc_get_status", "svc_cancel", "svc_confirm"]
DRAIN = 2_500  # ms
RATE = 24_000
MOVING = ("event_id", "audio_event_id", "at_ms", "metrics", "metadata", "interface")
Event = dict[str, Any]


@define(frozen=True)
class _Name:
    """That of something, which only the server can give."""

    of: str


SESSION, RUN, CHAT = _Name("voice session"), _Name("run"), _Name("chat")


@define(eq=False)
class _Use:
    """A tool that the agent uses, and what is told of it."""

    name: str
    arguments: Event
    result: str
    failed: bool = False


USES = (
    _Use("skills_list", {}, '{"skills":[],"count":0}'),
    _Use("skills_list", {"category": "c"}, '{"skills":[],"count":0}'),
    _Use("skill_view", {}, "the argument name is missing", failed=True),
)


@define(eq=False)
class _Turn:
    """What is said, and all that has to be told of it."""

    due: list[Event] = field(factory=list)

    def add(self, kind: str, **fields: Any) -> None:
        self.due.append({"type": kind, **fields})


class _Broker:
    def __init__(self, audit: Audit, *, native: bool) -> None:
        self.audit, self.native = audit, native
        self.one, self.other = pair(audit), pair(audit)
        for each in (self.one, self.other):
            each.seat.hang_up()
        self.names: dict[str, Any] = {}
        self.words: list[Event] = []  # that the provider was told
        audit.world.provider.on_word.append(self.words.append)
        set_ = {"promotion_enabled": True, "promote_after_ms": 6_000, "result_delivery": "speak_verbatim"}
        set_ |= {"spoken_handoff": True, "progress_spoken_after_ms": 0, "provider": "stub", "enabled": True}
        audit.right(audit.ask(self.one.token, "PATCH", f"{BASE}/config", set_), 200)
        self.chunk = self.total = self.since = 0  # of the microphone: its last piece, bytes in all, and in this turn
        self.rate = 16_000
        self.handed = self.used = 0  # calls of tools in this chat
        self.answered = ""  # in the background, last
        self.make()

    # --- a session ---

    def make(self) -> None:
        """Ask for one; what is told of it is what was asked for."""
        audit = self.audit
        provider = "openai_realtime" if self.native else "stub"
        body: Event = {"provider": provider, "sample_rate": RATE}
        chat = None
        if audit.chance(0.4):
            chat = body["chat_session_id"] = audit.right(audit.ask_api("POST", "/api/sessions", {}), 201)["id"]
        rows, kept = self.context()
        if rows:
            body["context_messages"] = rows
        self.only_final = audit.chance(0.25)
        body |= {"final_answer_only": True} if self.only_final else {}
        told = audit.right(audit.ask(self.one.token, "POST", f"{BASE}/session", body), 200)
        self.id, self.log, self.path = told["session_id"], told["event_log_path"], told["websocket_path"]
        self.choice = {name: told[name] for name in ("provider", "model", "voice")}
        is_ = {"success": True, "session_id": self.id, "websocket_path": f"{BASE}/{self.id}", "provider": provider}
        is_ |= {"resume_token": told["resume_token"], "resume_supported": True, "resume_ttl_ms": 30_000}
        is_ |= {"model": told["model"], "voice": told["voice"], "sample_rate": RATE, "event_log_path": self.log}
        is_ |= {"protocol": "svc.voice.realtime_agent.v0", "profile": None, "config_scope": "relay"}
        is_ |= {"fallback_to_global": False, "config_path": None, "chat_session_id": chat, "experimental": True}
        audit.same(told, {**is_, "context_message_count": len(kept), "tool_surface": TOOLS}, "a session of the agent")
        audit.world.secrets[told["resume_token"]] = "a resume token"
        self.heard = Replays(audit, self.id, told["resume_token"], 30_000, audit.now)
        self.chat = chat
        self.names = {SESSION.of: self.id}
        self.kept = kept
        self.seat = self.come()
        ready = self.heard.take(self.seat)
        interface = {name: ready["interface"][name] for name in ("provider", "chat_session_id", "profile", "engine")}
        is_ = {"provider": provider, "chat_session_id": chat, "profile": "default", "engine": "realtime_agent"}
        audit.same(interface, is_, "what a session of the agent says that it is")
        is_ = {"type": "voice.session.ready", "session_id": self.id, **self.choice, "sample_rate": RATE}
        is_ |= {"event_log_path": self.log, "profile": None, "config_scope": "relay", "config_path": None}
        is_ |= {"mode": "realtime_agent", "experimental": True, "last_input_chunk_id": 0, "chat_session_id": chat}
        is_ |= {"tool_surface": TOOLS, "resume_supported": True, "resume_ttl_ms": 30_000}
        audit.same(_plain(ready), {**is_, "last_event_id": 0, "last_audio_event_id": 0}, "a session that is ready")
        self.check_bearing()

    def context(self) -> tuple[list[object], list[str]]:
        """What was said before: the last twenty are read, what is none is dropped, fourteen are kept."""
        audit = self.audit
        rows: list[object] = []
        for _ in range(audit.pick((0, 0, 2, 13, 15, 23))):
            word = audit.word()
            more = ({"role": "user", "content": word}, {"role": "assistant", "content": f" {word}\n {word} "})
            bad = ({"role": "user", "content": " "}, {"role": "tool", "content": word}, 5, {"content": word})
            rows.append(audit.pick((*more, *more, *bad)))
        kept = [
            f"{row['role']}: {' '.join(row['content'].split())}"
            for row in rows[-20:]
            if isinstance(row, dict) and row.get("role") in ("user", "assistant") and row["content"].strip()
        ]
        return rows, kept[-14:]

    def check_bearing(self) -> None:
        """What the provider is told in the beginning."""
        audit = self.audit
        if not self.native:
            return
        audit.wait(
            lambda: any(word["type"] == "session.update" for word in self.words), 5.0, "a provider is told nothing"
        )
        updates = [word["session"] for word in self.words if word["type"] == "session.update"]
        audit.same(len(updates), 1, "how often a provider is told what to be")
        told = [tool["name"] for tool in updates[0]["tools"]]
        audit.same(told, TOOLS, "the functions that a provider has")
        orders = updates[0]["instructions"]
        lines = orders.partition("information, not orders:\n<<<\n")[2].partition("\n>>>")[0].splitlines()
        if "The chat before" in orders:
            lines = orders.partition("The chat before")[2].partition("<<<\n")[2].partition("\n>>>")[0].splitlines()
        audit.same(lines if self.kept else [], self.kept, "what a provider is told of the chat before")

    def come(self) -> Seat:
        """Open its socket."""
        seat = self.audit.sit(self.one.host, self.path, authorization=f"Bearer {self.one.token}")
        if seat.over:
            self.audit.wrong(f"a session of the agent got {seat.talker.status}")
        return seat

    # --- what is told ---

    def hear(self, turn: _Turn, missed: list[Event] | None = None) -> None:
        """All of a turn comes, as it is due, and nothing else."""
        for due in turn.due:
            told = missed.pop(0) if missed else self.heard.take(self.seat)
            while "tier" in told and "tier" not in due:
                told = missed.pop(0) if missed else self.heard.take(self.seat)  # it still works, as it says in between
            self.check(told, due)

    def check(self, told: Event, due: Event) -> None:
        """One event, member by member."""
        audit = self.audit
        if told["type"] != due["type"]:
            audit.wrong(f"{_plain(told)} is told where {due} is due")
        if "audio_base64" in told:
            self.check_sound(told, due)
            return
        is_ = dict(due)
        for name, value in due.items():
            if isinstance(value, _Name):
                is_[name] = self.names.setdefault(value.of, told.get(name))
                if not isinstance(is_[name], str) or not is_[name]:
                    audit.wrong(f"{name} of {told} names nothing")
        audit.same(_plain(told), is_, f"{told['type']} of the agent")

    def check_sound(self, told: Event, due: Event) -> None:
        """Whole samples, as they were spoken."""
        audit, data = self.audit, base64.b64decode(told["audio_base64"])
        number = due["number"]
        about = (told["byte_count"], told["sample_rate"], told["channels"], told["sample_width"])
        audit.same(about, (len(data), RATE, 1, 2), "a piece of sound")
        if number is not None:
            audit.same(data, recording_of(number, len(data) // 2), f"the sound of {number}")
            level = round(number / 32_767, 4)
            audit.same((told["peak_level"], told["rms_level"]), (level, level), "how loud a sound is")
        for name in ("response_id", "delivery", "source"):
            is_ = due.get(name)
            audit.same(told.get(name), self.names.get(is_.of) if isinstance(is_, _Name) else is_, f"{name} of a sound")

    def nothing_more(self) -> None:
        """Nobody says anything."""
        self.audit.rest(0.4)
        if self.seat.heard or self.seat.over:
            self.audit.wrong(f"behind a turn comes {self.seat.heard}, over: {self.seat.over}")

    # --- turns of the provider ---

    def spoken(self, turn: _Turn, response: _Name, pieces: list[str], **more: Any) -> None:
        """A provider says so much, and is done."""
        turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                 response_id=response, **more)  # fmt: skip
        for piece in pieces:
            turn.add("voice.response.delta", delta=piece, source="provider", response_id=response, **more)
            number = sound_of(" ".join(pieces))
            turn.add("voice.output_audio.delta", number=number, response_id=response, **more)
        turn.add("voice.output_audio.done", response_id=response, **more)
        self.done(turn, response_id=response, **more)

    def done(self, turn: _Turn, **more: Any) -> None:
        turn.add("voice.response.done", **self.choice, event_log_path=self.log, chat_session_id=self.chat, **more)

    def fresh(self) -> _Name:
        """The name of a response."""
        return _Name(f"response {self.audit.crowd.number()}")

    def talk(self) -> None:
        """The provider answers by itself."""
        turn, number = _Turn(), self.audit.rng.randrange(1, 30_000)
        text = f"talk: voice {number}"
        turn.add("voice.input_transcript.final", text=text, source="client_text")
        self.spoken(turn, self.fresh(), ["talk: ", f"voice {number}"])
        self.seat.tell({"type": "response.create", self.audit.pick(("text", "prompt")): text})
        self.hear(turn)

    def listen(self) -> None:
        """The microphone hears something, a piece of it twice; each piece counts once."""
        audit, rng = self.audit, self.audit.rng
        number, rate = rng.randrange(1, 30_000), audit.pick((8_000, 16_000, 24_000, 48_000))
        self.words.clear()
        said, forgotten = 0, audit.chance(0.3)
        for piece in range(rng.randint(2, 5)):
            pcm, named = recording_of(number, rate // 10), audit.chance(0.9)
            self.chunk += audit.pick((1, 1, 4)) if named else 0
            again = named and audit.chance(0.3)
            for time in range(1 + again):
                said += self.piece(
                    pcm, rate, self.chunk - (time and audit.pick((0, 1))) if named else None, again=time > 0
                )
            if forgotten and piece == 0:
                self.seat.tell({"type": "input_audio.clear"})
                said = 0
        if not self.native:
            return
        self.seat.tell({"type": "input_audio.commit"})
        turn = _Turn()
        turn.add("voice.input_transcript.final", text=f"talk: voice {number}")
        self.spoken(turn, self.fresh(), ["talk: ", f"voice {number}"])
        self.hear(turn)
        self.check_heard(said, forgotten=forgotten)

    def piece(self, pcm: bytes, rate: int, chunk: int | None, *, again: bool) -> int:
        """Some of it, and what is told of that; so many bytes the provider has to hear."""
        message: Event = {"type": "input_audio.append", "audio_base64": base64.b64encode(pcm).decode()}
        message |= {} if chunk is None else {"chunk_id": chunk}
        message |= {} if rate == RATE and self.audit.chance(0.5) else {"sample_rate": rate}
        self.seat.tell(message)
        self.total += 0 if again else len(pcm)
        self.since += 0 if again else len(pcm)
        self.rate = self.rate if again else rate
        turn = _Turn()
        about = {"input_chunk_id": chunk, "byte_count": len(pcm), "total_bytes": self.total, "sample_rate": rate}
        turn.add("voice.input_audio.received", **about, **({"duplicate": True} if again else {}))
        self.hear(turn)
        return 0 if again else len(resample(pcm, rate, RATE))

    def check_heard(self, said: int, *, forgotten: bool) -> None:
        """What the provider was told of it."""
        audit = self.audit
        kinds = [word["type"] for word in self.words]
        clears = kinds.index("input_audio_buffer.clear") if forgotten else 0
        heard = [word["audio"] for word in self.words[clears:] if word["type"] == "input_audio_buffer.append"]
        size = sum(len(base64.b64decode(each)) for each in heard)
        audit.same(size, said, "how much of a microphone a provider hears")
        audit.same(
            (kinds.count("input_audio_buffer.commit"), kinds.count("response.create")), (1, 1), "what is asked of it"
        )

    # --- runs ---

    def draw(self) -> tuple[str, list[Round], list[_Use]]:
        """What the agent does: a tool or two, and words."""
        audit = self.audit
        uses = [audit.pick(USES) for _ in range(audit.pick((0, 0, 1, 2)))]
        rounds = [
            Round(
                text=audit.pick(("", audit.word())),
                think=audit.pick(("", audit.word())),
                calls=[[use.name, use.arguments]],
            )
            for use in uses
        ]  # fmt: skip
        number = audit.rng.randrange(1, 30_000)
        long = " ".join(audit.word() for _ in range(audit.pick((1, 5))))
        rounds.append(Round(text=f"{long} voice {number}", think=audit.pick(("", audit.word()))))
        return audit.word(), rounds, uses

    def here(self) -> Event:
        """What all events of the agent have where a provider speaks."""
        return {"source": "svc", "chat_session_id": self.chat} if self.native else {}

    def about(self) -> Event:
        """What all events of a run have."""
        chat = CHAT if self.chat is None else self.chat
        return {name: chat if name == "chat_session_id" else value for name, value in self.here().items()} | {
            "session_id": chat
        }

    def begun(self, turn: _Turn, call: _Name | None) -> None:
        """A run begins, in a chat of its own where there is none."""
        if call is not None:
            here = {"source": "svc", "chat_session_id": self.chat, "session_id": self.chat}
            turn.add("svc.run.progress", **here, run_id=None, status="starting", message="Checking.",
                     status_key="run:checking_svc", should_speak=False, call_id=call, **_counts([], 0))  # fmt: skip
        if self.chat is None:
            turn.add("svc.session.bound", **self.about(), profile=None)
        self.names.pop(RUN.of, None)
        turn.add("svc.run.started", **self.about(), run_id=RUN)
        turn.add("svc.message.started", **self.about(), run_id=RUN, message_id=self.fresh())

    def worked(self, turn: _Turn, rounds: list[Round], uses: list[_Use]) -> str:
        """The words and tools of a run; all that it says."""
        about, names, drafting, content = {**self.about(), "run_id": RUN}, list[str](), False, ""
        for number, each in enumerate(rounds):
            for word in each.think.split():
                turn.add("svc.tool.delta", **about, delta=f"{word} ", tool_name="_thinking", message="Thinking.")
            words = [f"{word} " for word in each.text.split(" ")] if each.text else []
            words = ["\n\n", *words] if words and content else words
            content += "".join(words)
            if words and not drafting:
                drafting = True
                turn.add("svc.run.progress", **about, status="running", message="Drafting the answer.",
                         status_key="run:drafting", should_speak=False, **_counts(names, number))  # fmt: skip
            for word in words if not self.native else []:
                turn.add("voice.response.delta", delta=word)
            if number < len(uses):
                self.tool(turn, uses[number], number)
                names.append(uses[number].name)
        return content.strip()

    def tool(self, turn: _Turn, use: _Use, number: int) -> None:
        """One is used."""
        about, self.used = {**self.about(), "run_id": RUN}, self.used + 1
        about |= {"tool_call_id": _Name(f"call {self.used}"), "tool_name": use.name}
        preview = {"message": '{"category":"c"}'} if use.arguments else {}
        turn.add("svc.tool.started", **about, arguments=use.arguments, **preview)
        plain = use.name.replace("_", " ")
        if use.failed:
            turn.add("svc.tool.failed", **about, error=use.result, message=f"{plain} failed.".capitalize())
        else:
            turn.add(
                "svc.tool.completed", **about, result_preview=use.result, success=True, message=f"Finished {plain}."
            )

    def run(self) -> None:
        """The agent does something, and says what came of it."""
        audit = self.audit
        word, rounds, uses = self.draw()
        text = asking(word, *rounds)
        call = _Name(f"call of {word}") if self.native else None
        turn = _Turn()
        if self.native:
            turn.add("voice.input_transcript.final", text=text, source="client_text")
            turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                     response_id=self.fresh())  # fmt: skip
        else:
            turn.add("voice.input_transcript.final", text=text, sample_rate=self.rate, input_audio_bytes=self.since)
            turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                     response_id=None)  # fmt: skip
            self.since = 0
        self.begun(turn, call)
        said = self.worked(turn, rounds, uses)
        self.say(text)
        lost = self.native and audit.chance(0.3)
        missed = self.drop_out() if lost else None
        if self.native:
            turn.add("svc.run.completed", **self.about(), run_id=RUN)
            turn.add("voice.playback_drain.requested", call_id=call, tool_name=TOOLS[0], reason="tool_result_summary",
                     timeout_ms=DRAIN)  # fmt: skip
            self.hear(turn, missed)
            self.bound()
            self.drained(call, "tool_result_summary", missed)
            self.told_aloud(said, missed)
        else:
            turn.add("voice.response.turn_completed", content="".join(each["delta"] for each in turn.due if each["type"] == "voice.response.delta"))  # noqa: E501  # fmt: skip
            turn.add("svc.run.completed", **self.about(), run_id=RUN)
            self.hear(turn)
            self.bound()
            self.toned(said)

    def say(self, text: str) -> None:
        """By text; where nobody listens the text may come with a recording that is over."""
        if not self.native and self.audit.chance(0.4):
            self.seat.tell({"type": "input_audio.commit", "text": text})
        else:
            self.seat.tell({"type": "response.create", "text": text})

    def bound(self) -> None:
        """The chat of a session stays its chat."""
        self.chat = self.chat or self.names[CHAT.of]

    def drained(self, call: _Name | None, reason: str, missed: list[Event] | None = None) -> None:
        """What was said is played, as its client says, or after 2.5 s."""
        known = None if call is None else self.names[call.of]
        if missed is None and self.audit.chance(0.6):
            self.audit.rest(self.audit.pick((0.0, 1.0, 2.2)))
            name = {"call_id": self.audit.pick((known, "other"))} if self.audit.chance(0.7) else {}
            name = {key: value for key, value in name.items() if value is not None}
            self.seat.tell({"type": "playback.drained", **name})
            return
        turn = _Turn()
        turn.add("voice.playback_drain.timeout", call_id=known, reason=reason, timeout_ms=DRAIN)
        self.hear(turn, missed)

    def told_aloud(self, said: str, missed: list[Event] | None = None) -> None:
        """The provider is asked to say it; what it says in place of that is not heard, and the relay has it spoken."""
        first = missed.pop(0) if missed else self.heard.take(self.seat)
        turn, response = _Turn(), self.fresh()
        if first.get("delivery") == "fallback":
            if not first["response_id"].startswith("forced-summary-fallback-"):
                self.audit.wrong(f"what is said in place of something else is {first}")
            self.relayed(turn, response, said, "fallback")
        else:
            words = _aloud(said).split(" ")
            half = len(words) // 2
            pieces = [" ".join(words[:half]) + " ", " ".join(words[half:])] if half else words
            self.spoken(turn, response, pieces, delivery="forced_summary")
        self.hear(turn, [first, *(missed or [])])
        if missed:
            missed.clear()

    def relayed(self, turn: _Turn, response: _Name, said: str, delivery: str) -> None:
        """The relay has something spoken, by the same provider."""
        kind = {"response_id": response, "source": "svc", "delivery": delivery}
        turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat, **kind)
        turn.add("voice.response.delta", delta=_aloud(said), **kind)
        for _ in range(2):
            turn.add("voice.output_audio.delta", number=sound_of(said), **kind)
        turn.add("voice.output_audio.done", **kind)
        self.done(turn, **kind, final_text=said, audio_path="")

    def toned(self, said: str) -> None:
        """The stub speaks: a tone, in pieces."""
        turn, pieces = _Turn(), 0
        while (told := self.heard.take(self.seat))["type"] == "voice.output_audio.delta":
            pieces += 1
            self.check(told, {"type": told["type"], "number": None, "response_id": None})
        if not pieces:
            self.audit.wrong(f"{said!r} has no sound")
        turn.add("voice.output_audio.done", response_id=None)
        self.done(turn, response_id=None, final_text=said, audio_path="")
        self.hear(turn, [told])

    # --- what is stopped, asked, and in the background ---

    def stop(self) -> None:
        """Enough: the run is over, on the API's side, too."""
        audit = self.audit
        word, text = audit.word(), audit.word()
        asked = asking(word, Round(text=text, hang=True))
        turn, call = _Turn(), _Name(f"call of {word}")
        if self.native:
            turn.add("voice.input_transcript.final", text=asked, source="client_text")
            turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                     response_id=self.fresh())  # fmt: skip
        else:
            turn.add("voice.input_transcript.final", text=asked, sample_rate=self.rate, input_audio_bytes=self.since)
            turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                     response_id=None)  # fmt: skip
            self.since = 0
        self.begun(turn, call if self.native else None)
        self.worked(turn, [Round(text=text)], [])
        self.say(asked)
        self.hear(turn)
        self.bound()
        run = self.names[RUN.of]
        audit.rest(audit.pick((0.0, 1.0)))
        if not self.native and audit.chance(0.4):  # one after the other
            self.seat.tell({"type": "response.create", "text": "again"})
            audit.same(self.heard.take(self.seat)["type"], "voice.error", "a second turn at once")
        self.words.clear()
        self.seat.tell({"type": "response.cancel"})
        turn = _Turn()
        turn.add("svc.run.cancelled", **self.about(), **({"run_id": RUN} if self.native else {}))
        self.done(turn, response_id=None, cancelled=True, **({"run_id": RUN} if self.native else {}))
        self.hear(turn)
        self.over(run, "cancelled")
        audit.rest(0.5)
        kinds = [each["type"] for each in self.words]
        due = ["response.cancel", "input_audio_buffer.clear"] if self.native else []
        audit.same([kind for kind in kinds if kind in ("response.cancel", "input_audio_buffer.clear")], due, "a stop")

    def over(self, run: str, status: str) -> None:
        """A run of the API server's is that, soon."""
        audit, until = self.audit, self.audit.now + 8.0
        while (told := audit.right(audit.ask_api("GET", f"/v1/runs/{run}"), 200)["status"]) != status:
            if audit.now > until:
                audit.wrong(f"a run is {told}, and it is {status}")
            audit.rest(0.5)

    def idle(self) -> None:
        """What finds nothing to do."""
        audit, turn = self.audit, _Turn()
        kind = audit.rng.randrange(6)
        if kind == 0:
            self.seat.tell({"type": "response.cancel"})
            if not self.native:
                turn.add("svc.run.cancelled", session_id=self.chat)
            self.done(turn, response_id=None, cancelled=True)
        elif kind == 1:
            self.seat.tell({"type": "svc.confirm", "confirmation_id": "c", "answer": "allow"})
            turn.add("svc.confirmation.forwarded", confirmation_id="c", answer=None, **self.here())
        elif kind == 2 and not self.answered:
            self.seat.tell({"type": audit.pick(("svc.result.respeak", "hermes.result.respeak"))})
            turn.add("svc.result.respeak_unavailable", **self.here())
        elif kind == 3:
            self.seat.tell({"type": audit.pick(("session.start", "playback.drained"))})
        elif kind == 4 and self.native:
            self.seat.tell({"type": "input_audio.clear"})
            self.seat.tell({"type": "input_audio.commit"})
            turn.add("voice.input_transcript.final", text="")
            self.done(turn, response_id=None)
        else:
            bad: tuple[Event, ...] = ({"type": "other"}, {}, {"type": "response.create"}, {"type": 5})
            bad += ({"type": "input_audio.append", "audio_base64": 5}, {"type": "response.create", "text": " "})
            bad += ({"type": "input_audio.append", "audio_base64": "QUJD", "sample_rate": 7_999},)
            bad += ({"type": "client.ack", "event_id": -1}, {"type": "svc.confirm", "answer": 5})
            bad += ({"type": "input_audio.append", "audio_base64": "QUJD", "chunk_id": "x"},)
            bad += () if self.native else ({"type": "input_audio.commit"},)
            message = audit.pick(bad)
            self.seat.tell(message)
            told = self.heard.take(self.seat)
            audit.same((told["type"], {*_plain(told)}), ("voice.error", {"type", "message"}), f"{message}")
        self.hear(turn)

    def asked(self) -> None:
        """The agent asks for leave: the answer is passed on once, to the one question that there is."""
        audit, note = self.audit, self.audit.word()
        word = audit.word()
        rounds = [Round(calls=[[f"no_{word}", {}]]), Round(calls=[["memory", {"action": "add", "content": note}]])]
        rounds.append(Round(text=f"{audit.word()} voice 7"))
        turn, call, text = _Turn(), _Name(f"call of {word}"), asking(word, *rounds)
        if self.native:
            turn.add("voice.input_transcript.final", text=text, source="client_text")
        else:
            turn.add("voice.input_transcript.final", text=text, sample_rate=self.rate, input_audio_bytes=self.since)
            self.since = 0
        turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                 response_id=self.fresh() if self.native else None)  # fmt: skip
        self.begun(turn, call if self.native else None)
        self.tool(turn, _Use(f"no_{word}", {}, f"there is no tool 'no_{word}'", failed=True), 0)
        self.say(text)
        self.hear(turn)
        self.bound()
        waits, question = self.heard.take(self.seat), self.heard.take(self.seat)
        about = {**self.about(), "run_id": self.names[RUN.of]}
        arguments = {"action": "add", "content": note}
        call_id, self.used = waits["tool_call_id"], self.used + 1
        told = {name: value for name, value in _plain(waits).items() if name != "message"}
        is_ = {"type": "svc.tool.started", **about, "tool_call_id": call_id, "tool_name": "memory"}
        audit.same(told, {**is_, "arguments": arguments}, "a tool that waits for leave")
        asked = question["confirmation_id"]
        told = {name: value for name, value in _plain(question).items() if name != "message"}
        audit.same(told, {"type": "svc.confirmation.requested", **about, "confirmation_id": asked}, "a question")
        if note not in question["message"]:
            audit.wrong(f"a question about {note} says {question['message']!r}")
        answer = audit.pick(("allow", "allow_once", "deny", "cancel"))
        allowed = answer.startswith("allow")
        audit.rest(2.0)  # a word right behind a question counts for none
        turn = _Turn()
        if audit.chance(0.4):  # of another question
            self.seat.tell({"type": "svc.confirm", "confirmation_id": "other", "answer": "allow"})
            turn.add("svc.confirmation.forwarded", confirmation_id="other", answer=None, **self.here())
        kind = audit.pick(("svc.confirm", "hermes.confirm"))
        named = {"confirmation_id": asked} if audit.chance(0.7) else {}
        for _ in range(audit.pick((1, 1, 2))):
            self.seat.tell({"type": kind, "answer": audit.pick((answer, f" {answer.upper()} ")), **named})
        self.hear(turn)
        self.answered_question(asked, answer, call_id, note, allowed=allowed)

    def answered_question(self, asked: str, answer: str, call_id: str, note: str, *, allowed: bool) -> None:
        audit = self.audit
        events: list[Event] = []
        while not events or events[-1]["type"] != "svc.run.completed":
            events.append(self.heard.take(self.seat))
        passed = [
            each for each in events if each["type"] == "svc.confirmation.forwarded" and each["answer"] is not None
        ]
        audit.same([(each["confirmation_id"], each["answer"]) for each in passed], [(asked, answer)], "an answer")
        ends = [each for each in events if each["type"] in ("svc.tool.completed", "svc.tool.failed")]
        told = [(each["type"], each["tool_call_id"], each["tool_name"]) for each in ends]
        is_ = ("svc.tool.completed" if allowed else "svc.tool.failed", call_id, "memory")
        audit.same(told, [is_], f"what comes of {answer}")
        known = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        audit.same(note in known, allowed, f"whether something is noted behind {answer}")
        if allowed:
            body = {"target": "memory", "old_text": note}
            audit.right(audit.ask_api("DELETE", "/api/memory", body), 200)
        while (told_ := self.heard.take(self.seat))["type"] != "voice.response.done":
            pass
        audit.same("cancelled" in told_, False, "the end of a turn that has asked")

    def later(self) -> None:
        """A task in the background: the turn goes on, and its answer comes when nobody speaks."""
        audit = self.audit
        word, rounds, uses = self.draw()
        text = asking(word, *rounds)
        call, turn = _Name(f"call of {word}"), _Turn()
        turn.add("voice.input_transcript.final", text=f"later: {text}", source="client_text")
        first = self.fresh()
        turn.add("voice.response.started", **self.choice, session_id=SESSION, chat_session_id=self.chat,
                 response_id=first)  # fmt: skip
        spoken = not self.only_final
        here = {"source": "svc", "chat_session_id": self.chat, "session_id": self.chat}
        turn.add("svc.run.promoted", **here, run_id="", tier="durable", promote_after_ms=6_000,
                 provider_acknowledged=False, result_delivery="speak_verbatim", queued_count=0, call_id=call,
                 origin="provider_tool_call", spoken_handoff=spoken)  # fmt: skip
        self.say(f"later: {text}")
        self.hear(turn)
        run, said = _Turn(), ""
        self.begun(run, None)
        said = self.worked(run, rounds, uses)
        run.add("svc.run.completed", **self.about(), run_id=RUN)
        run.add(
            "svc.run.background_completed", **self.about(), run_id=RUN, ok=True, tool_count=len(uses), queued_count=0
        )
        other = _Turn()
        if spoken:
            other.add("voice.playback_drain.requested", call_id=call, tool_name=None, reason="tool_result_summary", timeout_ms=DRAIN)  # noqa: E501  # fmt: skip
            other.add("voice.playback_drain.timeout", call_id=call, reason="tool_result_summary", timeout_ms=DRAIN)
            self.spoken(other, self.fresh(), ["I go ", "on with that."])
        self.hear_both(run, other)
        self.bound()
        end = _Turn()
        end.add(
            "voice.playback_drain.requested", call_id=None, tool_name=None, reason="forced_summary", timeout_ms=DRAIN
        )
        self.hear(end)
        self.drained(None, "forced_summary")
        self.told_aloud(said)
        self.answered = said
        if audit.chance(0.6):
            self.seat.tell({"type": audit.pick(("svc.result.respeak", "hermes.result.respeak"))})
            again = _Turn()
            self.relayed(again, self.fresh(), said, "respeak")
            self.hear(again)

    def hear_both(self, one: _Turn, other: _Turn) -> None:
        """Two go on beside each other, each in its order."""
        rest = [[*one.due], [*other.due]]
        while any(rest):
            told = self.heard.take(self.seat)
            if "tier" in told and told["type"] == "svc.run.progress":
                continue
            of_run = told["type"].startswith("svc.")
            mine = rest[0] if of_run else rest[1]
            if not mine:
                self.audit.wrong(f"{_plain(told)} is told behind all that is due")
            self.check(told, mine.pop(0))

    # --- sockets ---

    def drop_out(self) -> list[Event]:
        """The socket is lost in the middle; what was missed."""
        audit = self.audit
        audit.rest(audit.pick((0.3, 0.6, 1.5)))
        self.seat.talker.hang_up(reset=True)
        missed = []
        for told in [*self.seat.heard]:
            self.heard.note(told)
            missed.append(told)
        audit.rest(audit.pick((0.5, 3.0, 12.0)))
        self.seat = self.come()
        missed += self.heard.come_back(self.seat, {"last_input_chunk_id": self.chunk}, far=False)
        return [each for each in missed if each["type"] != "voice.session.detached"]

    def come_again(self) -> None:
        """The socket is lost, or another one takes its place."""
        audit, before = self.audit, self.seat
        taken = audit.chance(0.4)
        if not taken:
            before.talker.hang_up(reset=True)
            self.heard.lost()
            audit.rest(audit.pick((0.3, 5.0, 28.0)))
        if audit.chance(0.4):
            self.not_claimed(attached=taken)
        seat = self.come()
        self.heard.come_back(seat, {"last_input_chunk_id": self.chunk})
        if taken:
            audit.wait(lambda: before.over, 10.0, "a socket whose place was taken stays")
            audit.same(before.talker.close_code, 4000, "the end of a socket whose place was taken")
        self.seat = seat

    def not_claimed(self, *, attached: bool) -> None:
        """A socket that shows nothing, or something else, gets nothing."""
        audit, seat = self.audit, self.come()
        right = {"type": "session.resume", "resume_token": self.heard.token}
        message, reason, code = audit.pick((
            ({"type": "response.create", "text": "x"}, "session_not_claimed", 4009),
            ({"type": "client.ack", "event_id": 5}, "session_not_claimed", 4009),
            ({**right, "resume_token": "x" * 43}, "invalid_resume_token", 4003),
            ({**right, "resume_token": self.one.token}, "invalid_resume_token", 4003),
            ({"type": "session.resume"}, "invalid_resume_token", 4003),
        ))  # fmt: skip
        seat.tell(message)
        told = seat.take()
        self.heard.note(told)
        is_ = {"type": "voice.session.resume_failed", "session_id": self.id, "reason": reason}
        audit.same(_plain(told), is_, "who does not show the token")
        audit.wait(lambda: seat.over, 10.0, "a socket that shows nothing stays")
        audit.same(seat.talker.close_code, code, "the end of a socket that shows nothing")
        if attached and self.seat.over:
            audit.wrong("a socket that shows nothing takes a place")

    def over_and_out(self) -> None:
        """It is closed, by a word or by the socket; and opens no more."""
        audit = self.audit
        self.nothing_more()
        if audit.chance(0.5):
            self.seat.tell({"type": "session.close"})
        else:
            self.seat.talker.close(1000)
        audit.wait(lambda: self.seat.over, 10.0, "a session that is closed keeps its socket")
        audit.same(self.seat.talker.close_code, 1000, "the end of a session of the agent")
        audit.rest(0.5)
        late = audit.sit(self.one.host, self.path, authorization=f"Bearer {self.one.token}")
        audit.same((late.over, late.talker.status), (True, 410), "a session of the agent that is over")
        other = audit.sit(self.other.host, self.path, authorization=f"Bearer {self.other.token}")
        audit.same((other.over, other.talker.status in (403, 410)), (True, True), "somebody else's session")
        audit.rest(30.0)
        self.heard.look_at_log(self.log, "voice.realtime_agent")
        rows = audit.right(audit.ask_api("GET", f"/api/sessions/{self.chat}/messages"), 200) if self.chat else None
        if rows is not None and any(self.one.token in str(row) for row in rows["messages"]):
            audit.wrong("a chat holds a token")


def _counts(names: list[str], done: int) -> Event:
    return {
        "active_tool_name": None,
        "last_tool_name": names[-1] if names else None,
        "completed_tool_count": len(names),
    }


def _aloud(said: str) -> str:
    """As it is spoken: no line ends with a blank."""
    return "\n".join(line.rstrip() for line in said.split("\n"))


def _plain(told: Event) -> Event:
    return {name: value for name, value in told.items() if name not in MOVING}


def _go_on(audit: Audit, *, native: bool) -> None:
    broker = _Broker(audit, native=native)
    kinds = [broker.run, broker.run, broker.idle, broker.idle, broker.listen, broker.stop, broker.asked]
    kinds += [broker.talk, broker.come_again, broker.come_again, broker.later] if native else []
    for _ in range(audit.rng.randint(4, 7)):
        kind = audit.pick(kinds)
        if kind == broker.later and broker.chat is None:
            kind = broker.run
        if audit.chance(0.5):
            broker.heard.ack(broker.seat)
            broker.nothing_more()
        kind()
        broker.nothing_more()
    broker.over_and_out()
    audit.world.provider.on_word.remove(broker.words.append)


def brokered(audit: Audit) -> None:
    """Somebody talks with an agent whose provider hears and speaks by itself."""
    _go_on(audit, native=True)


def rendered(audit: Audit) -> None:
    """Somebody talks with an agent whose provider only speaks."""
    _go_on(audit, native=False)


BROKERS = (brokered, rendered, brokered)
