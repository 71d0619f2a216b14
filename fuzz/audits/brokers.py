"""Who talks with the realtime agent: each event of each turn, whoever speaks, and what is asked of the provider.

What the model behind says is drawn beforehand (`fuzz.part`), so all that a turn has to tell follows from wire
terminal-voice 6: words, tools, questions, sound, the end, in this order. Sockets are lost meanwhile.
"""

from __future__ import annotations

import base64

from fuzz.audit import Audit
from fuzz.audits.agent_line import DRAIN, RATE, RUN, TOOLS, AgentLine, Event, Name, Turn, Use, counts, plain
from fuzz.part import Round, asking
from fuzz.provider import recording_of
from svc_proto.basics.pcm import resample

__all__ = ["BROKERS"]


USES = (
    Use("skills_list", {}, '{"skills":[],"count":0}'),
    Use("skills_list", {"category": "c"}, '{"skills":[],"count":0}'),
    Use("skill_view", {}, "the argument name is missing", failed=True),
)


class _Broker(AgentLine):
    def talk(self) -> None:
        """The provider answers by itself."""
        turn, number = Turn(), self.audit.rng.randrange(1, 30_000)
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
        turn = Turn()
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
        turn = Turn()
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

    def taken(self, turn: Turn, text: str) -> None:
        """What was said is understood, and a response to it begins."""
        if self.native:
            turn.add("voice.input_transcript.final", text=text, source="client_text")
        else:
            turn.add("voice.input_transcript.final", text=text, sample_rate=self.rate, input_audio_bytes=self.since)
            self.since = 0
        self.responds(turn, self.fresh() if self.native else None)

    def wait_for_silence(self, turn: Turn, call: Name | None, tool: str | None) -> None:
        """What is to be said comes when what was said has been played."""
        about = {"reason": "tool_result_summary", "timeout_ms": DRAIN}
        turn.add("voice.playback_drain.requested", call_id=call, tool_name=tool, **about)

    def draw(self) -> tuple[str, list[Round], list[Use]]:
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

    def run(self) -> None:
        """The agent does something, and says what came of it."""
        audit = self.audit
        word, rounds, uses = self.draw()
        text = asking(word, *rounds)
        call = Name(f"call of {word}") if self.native else None
        turn = Turn()
        self.taken(turn, text)
        self.begun(turn, call)
        said = self.worked(turn, rounds, uses)
        self.say(text)
        lost = self.native and audit.chance(0.3)
        missed = self.drop_out() if lost else None
        if self.native:
            turn.add("svc.run.completed", **self.about(), run_id=RUN)
            self.wait_for_silence(turn, call, TOOLS[0])
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

    # --- what is stopped, asked, and in the background ---

    def stop(self) -> None:
        """Enough: the run is over, on the API's side, too."""
        audit = self.audit
        word, text = audit.word(), audit.word()
        asked = asking(word, Round(text=text, hang=True))
        turn, call = Turn(), Name(f"call of {word}")
        self.taken(turn, asked)
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
        turn = Turn()
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
        audit, turn = self.audit, Turn()
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
            audit.same((told["type"], {*plain(told)}), ("voice.error", {"type", "message"}), f"{message}")
        self.hear(turn)

    def asked(self) -> None:
        """The agent asks for leave: the answer is passed on once, to the one question that there is."""
        audit, note = self.audit, self.audit.word()
        word = audit.word()
        rounds = [Round(calls=[[f"no_{word}", {}]]), Round(calls=[["memory", {"action": "add", "content": note}]])]
        rounds.append(Round(text=f"{audit.word()} voice 7"))
        turn, call, text = Turn(), Name(f"call of {word}"), asking(word, *rounds)
        self.taken(turn, text)
        self.begun(turn, call if self.native else None)
        self.tool(turn, Use(f"no_{word}", {}, f"there is no tool 'no_{word}'", failed=True), 0)
        self.say(text)
        self.hear(turn)
        self.bound()
        waits, question = self.heard.take(self.seat), self.heard.take(self.seat)
        about = {**self.about(), "run_id": self.names[RUN.of]}
        arguments = {"action": "add", "content": note}
        call_id, self.used = waits["tool_call_id"], self.used + 1
        told = {name: value for name, value in plain(waits).items() if name != "message"}
        is_ = {"type": "svc.tool.started", **about, "tool_call_id": call_id, "tool_name": "memory"}
        audit.same(told, {**is_, "arguments": arguments}, "a tool that waits for leave")
        asked = question["confirmation_id"]
        told = {name: value for name, value in plain(question).items() if name != "message"}
        audit.same(told, {"type": "svc.confirmation.requested", **about, "confirmation_id": asked}, "a question")
        if note not in question["message"]:
            audit.wrong(f"a question about {note} says {question['message']!r}")
        answer = audit.pick(("allow", "allow_once", "deny", "cancel"))
        allowed = answer.startswith("allow")
        audit.rest(2.0)  # a word right behind a question counts for none
        turn = Turn()
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
        word, rounds, uses = self.draw()
        text = asking(word, *rounds)
        call, turn = Name(f"call of {word}"), Turn()
        self.taken(turn, f"later: {text}")
        spoken = not self.only_final
        here = {"source": "svc", "chat_session_id": self.chat, "session_id": self.chat}
        turn.add("svc.run.promoted", **here, run_id="", tier="durable", promote_after_ms=6_000,
                 provider_acknowledged=False, result_delivery="speak_verbatim", queued_count=0, call_id=call,
                 origin="provider_tool_call", spoken_handoff=spoken)  # fmt: skip
        self.say(f"later: {text}")
        self.hear(turn)
        run = Turn()
        self.begun(run, None)
        said = self.worked(run, rounds, uses)
        run.add("svc.run.completed", **self.about(), run_id=RUN)
        run.add("svc.run.background_completed", **self.background(len(uses)))
        other = Turn()
        if spoken:
            self.wait_for_silence(other, call, None)
            other.add("voice.playback_drain.timeout", call_id=call, reason="tool_result_summary", timeout_ms=DRAIN)
            self.spoken(other, self.fresh(), ["I go ", "on with that."])
        self.hear_both(run, other)
        self.bound()
        self.in_the_end(said)

    def slow(self) -> None:
        """A task that takes long: it tells that it goes on, and goes on in the background after six seconds."""
        word, text = self.audit.word(), f"{self.audit.word()} voice 8"
        asked = asking(word, Round(text=text, wait=9.0))
        call, turn = Name(f"call of {word}"), Turn()
        self.taken(turn, asked)
        self.begun(turn, call)
        said = self.worked(turn, [Round(text=text)], [])
        turn.add("svc.run.progress", **self.about(), run_id=RUN, status="running", message="Drafting the answer.",
                 status_key="run:drafting", should_speak=False, floor="idle", tier="foreground", elapsed_ms=5_000,
                 **counts([]))  # fmt: skip
        self.say(asked)
        self.hear(turn)
        self.bound()
        end = Turn()
        end.add("svc.run.completed", **self.about(), run_id=RUN)
        if not self.promotes:
            self.wait_for_silence(end, call, TOOLS[0])
            self.hear(end)
            self.drained(call, "tool_result_summary")
            self.told_aloud(said)
            return
        spoken, other = not self.only_final, Turn()
        other.add("svc.run.promoted", **self.about(), run_id=RUN, tier="promoted", promote_after_ms=6_000,
                  provider_acknowledged=False, result_delivery="speak_verbatim", queued_count=0, call_id=call,
                  origin="provider_tool_call", spoken_handoff=spoken)  # fmt: skip
        if spoken:
            self.spoken(other, self.fresh(), ["I go ", "on with that."])
        end.add("svc.run.background_completed", **self.background(0))
        self.hear(other)
        self.hear(end)
        self.in_the_end(said)

    def background(self, tools: int) -> Event:
        """What is said of a task of the background that is done."""
        return {**self.about(), "run_id": RUN, "ok": True, "tool_count": tools, "queued_count": 0}

    def in_the_end(self, said: str) -> None:
        """Its answer is told when nobody speaks, and may be told again."""
        end = Turn()
        end.add("voice.playback_drain.requested", call_id=None, tool_name=None, reason="forced_summary",
                timeout_ms=DRAIN)  # fmt: skip
        self.hear(end)
        self.drained(None, "forced_summary")
        self.told_aloud(said)
        self.answered = said
        if self.audit.chance(0.6):
            self.seat.tell({"type": self.audit.pick(("svc.result.respeak", "hermes.result.respeak"))})
            again = Turn()
            self.relayed(again, self.fresh(), said, "respeak")
            self.hear(again)

    def hear_both(self, one: Turn, other: Turn) -> None:
        """Two go on beside each other, each in its order."""
        rest = [[*one.due], [*other.due]]
        while any(rest):
            told = self.heard.take(self.seat)
            if "tier" in told and told["type"] == "svc.run.progress":
                continue
            of_run = told["type"].startswith("svc.")
            mine = rest[0] if of_run else rest[1]
            if not mine:
                self.audit.wrong(f"{plain(told)} is told behind all that is due")
            self.check(told, mine.pop(0))


def _go_on(audit: Audit, *, native: bool) -> None:
    broker = _Broker(audit, native=native)
    kinds = [broker.run, broker.run, broker.idle, broker.idle, broker.listen, broker.stop, broker.asked]
    kinds += [broker.talk, broker.come_again, broker.come_again, broker.later, broker.slow] if native else []
    for _ in range(audit.rng.randint(4, 7)):
        kind = audit.pick(kinds)
        if kind in (broker.later, broker.slow) and (
            broker.chat is None or (kind == broker.later and not broker.promotes)
        ):
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
