"""An API that is told to go while it works: who is refused, what is told to whom, and what is found afterwards."""

from __future__ import annotations

from typing import Any

from attrs import define

from fuzz.audit import Audit
from fuzz.audits.heard import Events
from fuzz.audits.lodge import Halting, Lodge
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from tests.support.sim_http import RequestClient as Caller

__all__ = ["FAREWELLS"]

CAP = 3
CHATS = "/api/sessions"
Members = dict[str, Any]


@define(eq=False)
class _Turn:
    """One that was asked for before."""

    kind: str
    text: str
    said: str  # of its answer, so far
    caller: Caller
    events: Events
    chat: str = ""


class _Farewell:
    def __init__(self, audit: Audit) -> None:
        self.crowded = audit.chance(0.5)  # nobody has a place any more
        self.lodge = Lodge(audit, max_concurrent_runs=CAP if self.crowded else 0)
        self.turns: list[_Turn] = []
        self.waiting: list[_Turn] = []
        self.halves: list[tuple[str, str, Halting]] = []

    def steps(self) -> None:
        lodge = self.lodge
        if not self.crowded:
            self.say_halves()
        for _ in range(CAP):
            self.begin()
        if self.crowded:
            for _ in range(lodge.rng.randint(1, 3)):
                self.wait_in_line()
            self.check_full()
            self.say_halves()
        asked = lodge.world.upstream.asked
        lodge.process.stop(10.0)
        lodge.rest(lodge.pick((0.0, 0.5, 2.0)))
        self.check_refused()
        for turn in self.turns:
            self.check_told(turn)
        for turn in self.waiting:
            self.check_never_begun(turn)
        lodge.same(lodge.world.upstream.asked, asked, "how often a model is asked by who goes")
        lodge.wait(lambda: not lodge.process.alive, 12.0, "an API that was told to go stays")
        lodge.again()
        self.check_kept()
        lodge.leave()

    # --- before ---

    def begin(self) -> None:
        """A turn whose model has said something, or nothing, and is silent."""
        lodge, events, word = self.lodge, Events(), self.lodge.word()
        kind = lodge.pick(("stream", "chat", "run", "completion", "response"))
        said = lodge.pick((f"{word} so ", f"{word} so ", ""))
        text, chat = asking(word, Round(text=said.strip(), hang=True)), ""
        if kind in ("stream", "chat"):
            chat = lodge.new_chat()
        path, body = _way(kind, chat, text)
        caller = lodge.begin_api("POST", path, body, None if kind == "chat" else events)
        lodge.wait(lambda: text in lodge.world.upstream.questions, 20.0, "the model is not asked")
        lodge.rest(1.0)
        self.turns.append(_Turn(kind, text, said, caller, events, chat))

    def wait_in_line(self) -> None:
        """A turn that has no place, or another before it in its chat."""
        lodge, events, kind = self.lodge, Events(), self.lodge.pick(("stream", "chat"))
        busy = [turn.chat for turn in self.turns if turn.chat]
        chat = lodge.pick((lodge.new_chat(), *busy))
        text = f"plain: {lodge.word()}"
        path, body = _way(kind, chat, text)
        caller = lodge.begin_api("POST", path, body, None if kind == "chat" else events)
        lodge.rest(0.3)
        self.waiting.append(_Turn(kind, text, "", caller, events, chat))

    def check_full(self) -> None:
        """Who may not wait is refused before his body is read."""
        lodge = self.lodge
        for kind in ("run", "completion", "response"):
            path, _ = _way(kind, "", "x")
            caller = lodge.ask_api("POST", path, b"{")
            refused(lodge, caller, 429, "rate_limit_exceeded", None)
            lodge.same(caller.answer.headers.get(b"retry-after"), b"1", "when there may be a place")
        told = lodge.right(lodge.ask_api("GET", "/health/detailed"), 200)
        lodge.same(told["active_agents"], CAP + len(self.waiting), "how many turns there are")

    def say_halves(self) -> None:
        """Half of a request, whose rest comes when the server goes."""
        lodge = self.lodge
        kinds = ("stream", "chat", "run", "completion", "response") if not self.crowded else ("stream", "chat")
        for kind in (*kinds, "note", "title", "copy"):
            chat = lodge.new_chat()
            text = f"plain: {lodge.word()}"
            method = "PATCH" if kind == "title" else "POST"
            self.halves.append((kind, chat, lodge.halting(method, *_way(kind, chat, text))))
        lodge.rest(0.5)

    # --- while it goes ---

    def check_refused(self) -> None:
        """No turn begins; what is none is done."""
        lodge = self.lodge
        for kind, _, half in self.halves:
            half.go_on()
            lodge.answer(half, 10.0)
            if kind in ("note", "title", "copy"):
                lodge.right(half, 201 if kind == "copy" else 200, about=f"a {kind} whose server goes")
                continue
            refused(lodge, half, 503, "gateway_draining", None)
            lodge.same(half.answer.headers.get(b"retry-after"), b"1", "when to come again")
            said = half.answer.json["error"]["message"]
            lodge.same(said.startswith("gateway_draining"), True, f"what phones look for in {said!r}")
        late = lodge.begin_api("GET", "/health")
        lodge.wait(lambda: late.over, 20.0, "who comes late is neither let in nor turned away")
        lodge.same(late.status, 0, "who comes to a server that goes")

    def check_told(self, turn: _Turn) -> None:
        """Who reads is told all that was said, and that it is not all."""
        lodge, caller, events = self.lodge, turn.caller, turn.events
        lodge.wait_over(caller, 10.0, f"a {turn.kind} outlives its server")
        flags = {"completed": False, "partial": True, "interrupted": True}
        if turn.kind == "stream":
            lodge.right(caller, 200)
            parts = [name for name in events.names if name != "assistant.delta"]
            begins = ["session.created", "run.started", "message.started"]
            lodge.same(parts, [*begins, "assistant.completed", "run.completed", "done"], "a stream whose server goes")
            for data in (each for _, each in events.told[-3:-1]):
                lodge.same({name: data[name] for name in flags}, flags, "how such a turn ends")
            lodge.same(events.told[-3][1]["content"], turn.said, "what was said until then")
        elif not turn.said and turn.kind == "chat":
            refused(lodge, caller, 502, "agent_incomplete", None)
        elif turn.kind == "chat":
            told = lodge.right(caller, 200)
            lodge.same({name: told[name] for name in flags}, flags, "how such a turn ends")
            lodge.same(told["message"]["content"], turn.said, "what was said until then")
        elif turn.kind == "run":
            lodge.same(events.names[-1:], ["run.cancelled"], "a run whose server goes")
            lodge.same("".join(data.get("delta", "") for _, data in events.told), turn.said, "what a run has said")
        elif turn.kind == "response":
            lodge.same(events.names[-1:], ["response.incomplete"], "a response whose server goes")
            whole = events.told[-1][1]["response"]
            words = [part["text"] for item in whole["output"] for part in item["content"]]
            lodge.same("".join(words), turn.said, "what a response has said")
        else:
            lodge.same(events.raw[-1:], ["[DONE]"], "a completion whose server goes")
            chunks = [data["choices"][0] for _, data in events.told]
            words = [choice["delta"].get("content", "") for choice in chunks]
            told_so = ("".join(words), chunks[-1]["finish_reason"])
            lodge.same(told_so, (turn.said, "error"), "a completion whose server goes")

    def check_never_begun(self, turn: _Turn) -> None:
        """It is told so; nothing of it is stored."""
        lodge = self.lodge
        lodge.wait_over(turn.caller, 10.0, "a turn that waits outlives its server")
        if turn.kind == "chat":
            refused(lodge, turn.caller, 502, "agent_incomplete", None)
            return
        lodge.right(turn.caller, 200)
        lodge.same(turn.events.names, ["error", "done"], "a turn that was to wait for its place")

    # --- afterwards ---

    def check_kept(self) -> None:
        """What was said is stored, what was refused is not, nothing goes on by itself, and no run is known."""
        lodge = self.lodge
        lodge.rest(5.0)
        for turn in self.turns:
            if turn.chat:
                rows = lodge.rows_of(turn.chat)
                told = [(row["role"], row["content"], row.get("finish_reason")) for row in rows]
                is_: list[tuple[str, str, str | None]] = [("user", turn.text, None)]
                is_ += [("assistant", turn.said, "interrupted")] if turn.said else []
                lodge.same(told, is_, "what is stored of a turn whose server went")
                run = lodge.ask_api("GET", f"/v1/runs/{rows[0]['run_id']}")
                refused(lodge, run, 404, "run_not_found", None)
            if turn.kind == "response":
                whole = turn.events.told[-1][1]["response"]
                kept = lodge.right(lodge.ask_api("GET", f"/v1/responses/{whole['id']}"), 200)
                lodge.same(kept, whole, "a response whose server went")
        for kind, chat, half in self.halves:
            view = lodge.right(lodge.ask_api("GET", f"{CHATS}/{chat}"), 200)["session"]
            ended = "branched" if kind == "copy" else None
            told_of = (view["message_count"], view["title"], view["end_reason"])
            lodge.same(
                told_of, (0, "late" if kind == "title" else None, ended), f"a chat of who came late with a {kind}"
            )
            if kind == "copy":
                made = half.answer.json["id"]
                lodge.right(lodge.ask_api("GET", f"{CHATS}/{made}"), 200, about="a copy that was made late")
        notes = lodge.right(lodge.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        lodge.same(len(notes), sum(kind == "note" for kind, *_ in self.halves), "notes that were made late")
        text = f"plain: {lodge.word()}"
        chat = lodge.pick([turn.chat for turn in (*self.turns, *self.waiting) if turn.chat] or [lodge.new_chat()])
        told = lodge.right(lodge.ask_api("POST", f"{CHATS}/{chat}/chat", {"message": text}), 200)
        lodge.same(told["message"]["content"].strip(), f"You said {text}", "a turn behind a restart")


def _way(kind: str, chat: str, text: str) -> tuple[str, Members]:
    ways: dict[str, tuple[str, Members]] = {
        "stream": (f"{CHATS}/{chat}/chat/stream", {"message": text}),
        "chat": (f"{CHATS}/{chat}/chat", {"message": text}),
        "run": ("/v1/runs", {"input": text, "stream": True}),
        "completion": ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "stream": True}),
        "response": ("/v1/responses", {"input": text, "stream": True}),
        "note": ("/api/memory", {"target": "memory", "content": text}),
        "title": (f"{CHATS}/{chat}", {"title": "late"}),
        "copy": (f"{CHATS}/{chat}/fork", {}),
    }
    return ways[kind]


def farewells(audit: Audit) -> None:
    """An API works, is told to go, and comes again."""
    _Farewell(audit).steps()


FAREWELLS = (farewells,)
