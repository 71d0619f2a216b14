"""One conversation with the realtime agent: its session, what is told in it, and what its sockets are told again.

A name that only the server can give is bound where it is told first, and has to stay the same.
"""

from __future__ import annotations

import base64
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import pair
from fuzz.audits.replays import Replays
from fuzz.part import Round
from fuzz.provider import recording_of, sound_of

__all__ = ["DRAIN", "RATE", "RUN", "SESSION", "TOOLS", "AgentLine", "Event", "Name", "Turn", "Use", "counts", "plain"]

BASE = "/voice/realtime-agent"
TOOLS = ["svc_run_task", "svc_get_status", "svc_cancel", "svc_confirm"]
DRAIN = 2_500  # ms
RATE = 24_000
MOVING = ("event_id", "audio_event_id", "at_ms", "metrics", "metadata", "interface")
Event = dict[str, Any]


@define(frozen=True)
class Name:
    """That of something, which only the server can give."""

    of: str


SESSION, RUN, CHAT = Name("voice session"), Name("run"), Name("chat")


@define(eq=False)
class Use:
    """A tool that the agent uses, and what is told of it."""

    name: str
    arguments: Event
    result: str
    failed: bool = False


@define(eq=False)
class Turn:
    """What is said, and all that has to be told of it."""

    due: list[Event] = field(factory=list)

    def add(self, kind: str, **fields: Any) -> None:
        """One event more."""
        self.due.append({"type": kind, **fields})


class AgentLine:
    """See the module. `native`: its provider hears and speaks by itself."""

    def __init__(self, audit: Audit, *, native: bool) -> None:
        self.audit, self.native = audit, native
        self.one, self.other = pair(audit), pair(audit)
        for each in (self.one, self.other):
            each.seat.hang_up()
        self.names: dict[str, Any] = {}
        self.words: list[Event] = []  # that the provider was told
        audit.world.provider.on_word.append(self.words.append)
        self.promotes = audit.chance(0.7)
        set_ = {"promotion_enabled": self.promotes, "promote_after_ms": 6_000, "result_delivery": "speak_verbatim"}
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
            chat = body["chat_session_id"] = audit.new_chat()
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
        audit.same(plain(ready), {**is_, "last_event_id": 0, "last_audio_event_id": 0}, "a session that is ready")
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

    def hear(self, turn: Turn, missed: list[Event] | None = None) -> None:
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
            audit.wrong(f"{plain(told)} is told where {due} is due")
        if "audio_base64" in told:
            self.check_sound(told, due)
            return
        is_ = dict(due)
        for name, value in due.items():
            if isinstance(value, Name):
                is_[name] = self.names.setdefault(value.of, told.get(name))
                if not isinstance(is_[name], str) or not is_[name]:
                    audit.wrong(f"{name} of {told} names nothing")
        audit.same(plain(told), is_, f"{told['type']} of the agent")

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
            audit.same(told.get(name), self.names.get(is_.of) if isinstance(is_, Name) else is_, f"{name} of a sound")

    def nothing_more(self) -> None:
        """Nobody says anything."""
        self.audit.rest(0.4)
        if self.seat.heard or self.seat.over:
            self.audit.wrong(f"behind a turn comes {self.seat.heard}, over: {self.seat.over}")

    # --- turns of the provider ---

    def spoken(self, turn: Turn, response: Name, pieces: list[str], **more: Any) -> None:
        """A provider says so much, and is done."""
        self.responds(turn, response, **more)
        for piece in pieces:
            turn.add("voice.response.delta", delta=piece, source="provider", response_id=response, **more)
            number = sound_of(" ".join(pieces))
            turn.add("voice.output_audio.delta", number=number, response_id=response, **more)
        turn.add("voice.output_audio.done", response_id=response, **more)
        self.done(turn, response_id=response, **more)

    def responds(self, turn: Turn, response: Name | None, **more: Any) -> None:
        """The beginning of a response."""
        about = {"session_id": SESSION, "chat_session_id": self.chat, "response_id": response}
        turn.add("voice.response.started", **self.choice, **about, **more)

    def done(self, turn: Turn, **more: Any) -> None:
        """The end of a response."""
        turn.add("voice.response.done", **self.choice, event_log_path=self.log, chat_session_id=self.chat, **more)

    def fresh(self) -> Name:
        """The name of a response."""
        return Name(f"response {self.audit.crowd.number()}")

    def here(self) -> Event:
        """What all events of the agent have where a provider speaks."""
        return {"source": "svc", "chat_session_id": self.chat} if self.native else {}

    def about(self) -> Event:
        """What all events of a run have."""
        chat = CHAT if self.chat is None else self.chat
        return {name: chat if name == "chat_session_id" else value for name, value in self.here().items()} | {
            "session_id": chat
        }

    def begun(self, turn: Turn, call: Name | None) -> None:
        """A run begins, in a chat of its own where there is none."""
        if call is not None:
            here = {"source": "svc", "chat_session_id": self.chat, "session_id": self.chat}
            turn.add("svc.run.progress", **here, run_id=None, status="starting", message="Checking.",
                     status_key="run:checking_svc", should_speak=False, call_id=call, **counts([]))  # fmt: skip
        if self.chat is None:
            turn.add("svc.session.bound", **self.about(), profile=None)
        self.names.pop(RUN.of, None)
        turn.add("svc.run.started", **self.about(), run_id=RUN)
        turn.add("svc.message.started", **self.about(), run_id=RUN, message_id=self.fresh())

    def worked(self, turn: Turn, rounds: list[Round], uses: list[Use]) -> str:
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
                         status_key="run:drafting", should_speak=False, **counts(names))  # fmt: skip
            for word in words if not self.native else []:
                turn.add("voice.response.delta", delta=word)
            if number < len(uses):
                self.tool(turn, uses[number], number)
                names.append(uses[number].name)
        return content.strip()

    def tool(self, turn: Turn, use: Use, number: int) -> None:
        """One is used."""
        about, self.used = {**self.about(), "run_id": RUN}, self.used + 1
        about |= {"tool_call_id": Name(f"call {self.used}"), "tool_name": use.name}
        preview = {"message": '{"category":"c"}'} if use.arguments else {}
        turn.add("svc.tool.started", **about, arguments=use.arguments, **preview)
        plain = use.name.replace("_", " ")
        if use.failed:
            turn.add("svc.tool.failed", **about, error=use.result, message=f"{plain} failed.".capitalize())
        else:
            turn.add(
                "svc.tool.completed", **about, result_preview=use.result, success=True, message=f"Finished {plain}."
            )

    def say(self, text: str) -> None:
        """By text; where nobody listens the text may come with a recording that is over."""
        if not self.native and self.audit.chance(0.4):
            self.seat.tell({"type": "input_audio.commit", "text": text})
        else:
            self.seat.tell({"type": "response.create", "text": text})

    def bound(self) -> None:
        """The chat of a session stays its chat."""
        self.chat = self.chat or self.names[CHAT.of]

    def drained(self, call: Name | None, reason: str, missed: list[Event] | None = None) -> None:
        """What was said is played, as its client says, or after 2.5 s."""
        known = None if call is None else self.names[call.of]
        if missed is None and self.audit.chance(0.6):
            self.audit.rest(self.audit.pick((0.0, 1.0, 2.2)))
            name = {"call_id": self.audit.pick((known, "other"))} if self.audit.chance(0.7) else {}
            name = {key: value for key, value in name.items() if value is not None}
            self.seat.tell({"type": "playback.drained", **name})
            return
        turn = Turn()
        turn.add("voice.playback_drain.timeout", call_id=known, reason=reason, timeout_ms=DRAIN)
        self.hear(turn, missed)

    def told_aloud(self, said: str, missed: list[Event] | None = None) -> None:
        """The provider is asked to say it; what it says in place of that is not heard, and the relay has it spoken."""
        first = missed.pop(0) if missed else self.heard.take(self.seat)
        turn, response = Turn(), self.fresh()
        if first.get("delivery") == "fallback":
            if not first["response_id"].startswith("forced-summary-fallback-"):
                self.audit.wrong(f"what is said in place of something else is {first}")
            self.relayed(turn, response, said, "fallback")
        else:
            words = aloud(said).split(" ")
            half = len(words) // 2
            pieces = [" ".join(words[:half]) + " ", " ".join(words[half:])] if half else words
            self.spoken(turn, response, pieces, delivery="forced_summary")
        self.hear(turn, [first, *(missed or [])])
        if missed:
            missed.clear()

    def relayed(self, turn: Turn, response: Name, said: str, delivery: str) -> None:
        """The relay has something spoken, by the same provider."""
        kind: Event = {"source": "svc", "delivery": delivery}
        self.responds(turn, response, **kind)
        kind["response_id"] = response
        turn.add("voice.response.delta", delta=aloud(said), **kind)
        for _ in range(2):
            turn.add("voice.output_audio.delta", number=sound_of(said), **kind)
        turn.add("voice.output_audio.done", **kind)
        self.done(turn, **kind, final_text=said, audio_path="")

    def toned(self, said: str) -> None:
        """The stub speaks: a tone, in pieces."""
        turn, pieces = Turn(), 0
        while (told := self.heard.take(self.seat))["type"] == "voice.output_audio.delta":
            pieces += 1
            self.check(told, {"type": told["type"], "number": None, "response_id": None})
        if not pieces:
            self.audit.wrong(f"{said!r} has no sound")
        turn.add("voice.output_audio.done", response_id=None)
        self.done(turn, response_id=None, final_text=said, audio_path="")
        self.hear(turn, [told])

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
            before.ends(4000, "the end of a socket whose place was taken")
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
        audit.same(plain(told), is_, "who does not show the token")
        seat.ends(code, "the end of a socket that shows nothing")
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
        self.seat.ends(1000, "the end of a session of the agent")
        audit.rest(0.5)
        audit.turned_away(self.one.host, self.path, self.one.token, 410, "a session of the agent that is over")
        other = audit.sit(self.other.host, self.path, authorization=f"Bearer {self.other.token}")
        audit.same((other.over, other.talker.status in (403, 410)), (True, True), "somebody else's session")
        audit.rest(30.0)
        self.heard.look_at_log(self.log, "voice.realtime_agent")
        rows = audit.right(audit.ask_api("GET", f"/api/sessions/{self.chat}/messages"), 200) if self.chat else None
        if rows is not None and any(self.one.token in str(row) for row in rows["messages"]):
            audit.wrong("a chat holds a token")


def counts(names: list[str]) -> Event:
    """What is said of tools that are done."""
    return {
        "active_tool_name": None,
        "last_tool_name": names[-1] if names else None,
        "completed_tool_count": len(names),
    }


def aloud(said: str) -> str:
    """As it is spoken: no line ends with a blank."""
    return "\n".join(line.rstrip() for line in said.split("\n"))


def plain(told: Event) -> Event:
    """Without what moves."""
    return {name: value for name, value in told.items() if name not in MOVING}
