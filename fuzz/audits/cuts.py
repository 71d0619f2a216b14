"""A turn that is cut, wherever it was and by whatever: what is told, what is kept, and what a model is given of it."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.lodge import Lodge
from fuzz.audits.refusals import refused
from fuzz.audits.tale import NO_SKILLS, for_model
from fuzz.part import Round, asking
from tests.support.sim_http import RequestClient as Caller

__all__ = ["CUTS"]

CHATS = "/api/sessions"
GAP = "\n\n"
LOST = "interrupted: this call was cut off, and nothing is known of its result"
LONG_TOOL = ["demo_wait", {"seconds": 10}]  # which models are not told of, and may call all the same
WHERE = ("asked", "thinking", "speaking", "speaking", "using", "using", "asking", "waiting")
BY = ("stop", "stop", "restart", "kill", "leave", "delete", "copy")
ABOUT = ("role", "content", "finish_reason", "reasoning", "tool_calls", "tool_call_id", "tool_name", "usage")
Members = dict[str, Any]


@define(eq=False)
class _Turn:
    """One that is cut, as far as it had come."""

    where: str
    rounds: list[Round]
    word: str
    rows: list[Members] = field(factory=list)  # stored before the cut
    said: list[str] = field(factory=list)  # the texts of its rounds
    thought: str = ""  # in the round that is cut
    usage: list[int] = field(factory=lambda: [0, 0])
    events: Events = field(factory=Events)

    @property
    def question(self) -> str:
        return asking(self.word, *self.rounds)

    @property
    def content(self) -> str:
        return GAP.join(text for text in self.said if text)

    @property
    def begun(self) -> bool:
        return self.where != "waiting"

    def last(self) -> list[Members]:
        """The row of what was said in the round that is cut, if anything was."""
        text = self.said[-1] if self.said and self.where in ("speaking", "thinking", "asked") else ""
        if not text:
            return []
        given, made = self.usage
        tokens = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
        row = {"role": "assistant", "content": text, "finish_reason": "interrupted", "usage": tokens}
        return [row | ({"reasoning": self.thought} if self.thought else {})]


class _Cuts:
    def __init__(self, audit: Audit) -> None:
        self.lodge = Lodge(audit)
        self.chat = self.lodge.new_chat()
        self.stored: list[Members] = []
        self.notes: list[str] = []

    def steps(self) -> None:
        lodge = self.lodge
        for _ in range(lodge.rng.randint(3, 5)):
            turn, by = self.drawn(lodge.pick(WHERE)), lodge.pick(BY)
            self.play(turn, by)
            if by == "delete":
                self.chat, self.stored = lodge.new_chat(), []
            self.go_on()
        lodge.leave()

    # --- what is drawn ---

    def drawn(self, where: str) -> _Turn:
        """Perhaps a round that is whole, and then one that is cut."""
        word = self.lodge.word()
        turn = _Turn(where, [], word)
        if not turn.begun:
            turn.rounds = [Round(text="never")]
            return turn
        turn.rounds = self.rounds(where, word)
        turn.rows = [{"role": "user", "content": turn.question}]
        self.come_so_far(turn)
        return turn

    def rounds(self, where: str, word: str) -> list[Round]:
        lodge, rounds = self.lodge, list[Round]()
        if lodge.chance(0.5):
            text, think = lodge.pick(("", f"first {word}")), lodge.pick(("", "well"))
            rounds.append(Round(text=text, think=think, calls=[["skills_list", {}]], usage=[7, 3]))
        text, think = f"so {word}", lodge.pick(("", "hm"))
        if where == "asked":
            rounds.append(Round(hang=True))
        elif where == "thinking":
            rounds.append(Round(think=f"hm {word}", hang=True))
        elif where == "speaking":
            rounds.append(Round(text=text, think=think, hang=True))
        elif where == "using":
            calls = lodge.pick(([LONG_TOOL], [LONG_TOOL, ["skills_list", {}]], [["skills_list", {}], LONG_TOOL]))
            rounds += [Round(text=text, calls=calls, usage=[4, 1]), Round(text="never")]
        else:  # somebody is asked, since it has read what it does not know
            rounds.append(Round(calls=[[f"no_{word}", {}]]))
            rounds += [
                Round(text=text, calls=[["memory", {"action": "add", "content": word}]]),
                Round(text="never"),
            ]
        return rounds

    def come_so_far(self, turn: _Turn) -> None:
        """What has been said and stored when it is cut."""
        taken = {call["id"] for row in self.stored for call in row.get("tool_calls", ())}
        for number, each in enumerate(turn.rounds):
            words = "".join(f"{piece} " for piece in each.text.split(" ")) if each.text else ""
            thoughts = "".join(f"{piece} " for piece in each.think.split(" ")) if each.think else ""
            turn.said.append(words)
            turn.thought = thoughts
            if not each.calls:
                break
            if each.usage is not None:
                turn.usage = [a + b for a, b in zip(turn.usage, each.usage, strict=True)]
            named = [f"call_{number}_{n}" for n in range(len(each.calls))]
            ids = [None if name in taken else name for name in named]  # another, which nobody knows
            made = [_called(name, given, identity) for identity, (name, given) in zip(ids, each.calls, strict=True)]
            row = {"role": "assistant", "content": words, "finish_reason": "tool_calls", "tool_calls": made}
            turn.rows.append(row | ({"reasoning": thoughts} if thoughts else {}))
            for identity, (name, _) in zip(ids, each.calls, strict=True):
                if name == "skills_list" or str(name).startswith("no_"):
                    text = NO_SKILLS if name == "skills_list" else f"error: there is no tool {name!r}"
                    turn.rows.append({"role": "tool", "content": text, "tool_call_id": identity, "tool_name": name})
            if any(name in ("demo_wait", "memory") for name, _ in each.calls):
                break

    # --- what is done ---

    def play(self, turn: _Turn, by: str) -> None:
        lodge, heard = self.lodge, Listener(self.lodge)
        before = self.hold() if not turn.begun else None
        body = {"message": turn.question, "approvals": True}
        caller = lodge.begin_api("POST", f"{CHATS}/{self.chat}/chat/stream", body, turn.events)
        if turn.begun:
            lodge.wait(lambda: len(heard.asked) >= max(1, self.asked(turn)), 20.0, "the model is not asked")
        lodge.rest(3.0)
        if turn.begun:
            self.check_given(turn, heard)
        run_id = self.run_of(turn)
        self.cut(turn, by, run_id, caller)
        if before is not None:
            self.release(before, by)
        heard.stop()
        if by == "delete":
            refused(lodge, lodge.ask_api("GET", f"{CHATS}/{self.chat}/messages"), 404, "session_not_found", None)
            return
        kept = [] if not turn.begun or by == "kill" else turn.last()
        self.stored += [*turn.rows, *kept]
        self.check_rows()

    def asked(self, turn: _Turn) -> int:
        """How often the model was asked by then."""
        return len(turn.said)

    def hold(self) -> tuple[Caller, Events, str]:
        """A turn before it, in the same chat."""
        lodge, events = self.lodge, Events()
        text = asking(lodge.word(), Round(text="held", hang=True))
        caller = lodge.begin_api("POST", f"{CHATS}/{self.chat}/chat/stream", {"message": text}, events)
        lodge.wait(lambda: "assistant.delta" in events.names, 20.0, "a turn does not begin")
        self.stored.append({"role": "user", "content": text})
        return caller, events, text

    def release(self, before: tuple[Caller, Events, str], by: str) -> None:
        """The one before is stopped, if it still runs; its words are kept, unless its server was killed."""
        lodge, (caller, events, _) = self.lodge, before
        if by in ("stop", "leave", "copy"):
            lodge.stop_run(events.told[0][1]["run_id"])
        lodge.wait(lambda: caller.over, 10.0, "a turn that was stopped goes on")
        if by in ("stop", "leave", "copy", "restart"):
            tokens = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
            row = {"role": "assistant", "content": "held ", "finish_reason": "interrupted", "usage": tokens}
            self.stored.append(row)
        if by == "leave" or by == "copy":  # what has waited has its turn now
            lodge.rest(3.0)

    def run_of(self, turn: _Turn) -> str:
        if turn.begun:
            return str(turn.events.told[0][1]["run_id"])
        (run,) = [run for run in self.lodge.api.runs.registry.live() if not run.has_slot]
        return run.id

    def cut(self, turn: _Turn, by: str, run_id: str, caller: Caller) -> None:
        lodge = self.lodge
        if by == "copy":
            self.copy(turn)
        if by == "leave":  # which cuts nothing: it is stopped afterwards
            caller.hang_up(reset=True)
            lodge.rest(5.0)
        if by in ("stop", "leave", "copy"):
            view = lodge.right(lodge.ask_api("GET", f"/v1/runs/{run_id}"), 200)
            status = {"asking": "waiting_for_approval", "waiting": "queued"}.get(turn.where, "running")
            lodge.same(view["status"], status, f"a run that is {turn.where}")
            lodge.stop_run(run_id)
            lodge.rest(0.5)
        elif by == "delete":
            lodge.right(lodge.ask_api("DELETE", f"{CHATS}/{self.chat}"), 204)
        else:
            lodge.again(kill=by == "kill")
        lodge.wait_over(caller, 10.0, f"a turn is told on behind {by}")
        if by in ("stop", "copy", "restart", "delete"):
            self.check_told(turn)
        if by in ("restart", "kill"):
            refused(lodge, lodge.ask_api("GET", f"/v1/runs/{run_id}"), 404, "run_not_found", None)
            return
        view = lodge.right(lodge.ask_api("GET", f"/v1/runs/{run_id}"), 200)
        told = (view["status"], view["last_event"], "approvals" in view, "output" in view, "error" in view)
        lodge.same(told, ("cancelled", "run.cancelled", False, False, False), "a run that was cut")
        refused(lodge, lodge.ask_api("POST", f"/v1/runs/{run_id}/stop"), 404, "run_not_found", None)

    def copy(self, turn: _Turn) -> None:
        """A copy that is made meanwhile has what is stored by then, and nothing of it goes on there."""
        lodge = self.lodge
        view = lodge.right(lodge.ask_api("POST", f"{CHATS}/{self.chat}/fork", {}), 201)
        rows = lodge.rows_of(view["id"])
        due = [row["content"] for row in (*self.stored, *turn.rows)]
        lodge.same([row["content"] for row in rows], due, "the rows of a copy that is made in a turn")
        lodge.same(view["message_count"], len(due), "how many rows a copy has")

    # --- what is looked at ---

    def check_told(self, turn: _Turn) -> None:
        lodge, events = self.lodge, turn.events
        if not turn.begun:
            lodge.same(events.names, ["error", "done"], "a turn that never began")
            return
        lodge.same(events.names[-3:], ["assistant.completed", "run.completed", "done"], "the end of a turn that is cut")
        done, run, _ = (data for _, data in events.told[-3:])
        flags = {"completed": False, "partial": True, "interrupted": True}
        given, made = turn.usage
        tokens = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
        for data in (done, run):
            told = {name: data[name] for name in (*flags, "usage")}
            lodge.same(told, {**flags, "usage": tokens}, "how a turn ends that is cut")
        about = (done["content"], run["api_calls"])
        lodge.same(about, (turn.content, self.asked(turn)), "what a turn has said that is cut")

    def check_rows(self) -> None:
        lodge = self.lodge
        rows = lodge.rows_of(self.chat)
        for row, due in zip(rows, self.stored, strict=False):  # ids that nobody knew before
            for call, one in zip(row.get("tool_calls", ()), due.get("tool_calls", ()), strict=False):
                one["id"] = one["id"] or call["id"]
            if due.get("role") == "tool" and due["tool_call_id"] is None:
                due["tool_call_id"] = row["tool_call_id"]
        told = [{name: row[name] for name in ABOUT if name in row} for row in rows]
        lodge.same(told, self.stored, "the rows of a chat whose turns were cut")
        view = lodge.right(lodge.ask_api("GET", f"{CHATS}/{self.chat}"), 200)["session"]
        calls = sum("tool_calls" in row for row in self.stored)
        used = [row["usage"] for row in self.stored if "usage" in row]
        tokens = [sum(each[name] for each in used) for name in ("input_tokens", "output_tokens")]
        counts = (view["message_count"], view["input_tokens"], view["output_tokens"])
        lodge.same(counts, (len(self.stored), *tokens), "the counts of a chat whose turns were cut")
        lodge.same(view["tool_call_count"] >= calls, True, "its calls of tools")
        notes = lodge.right(lodge.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        lodge.same(notes, [], "notes that nobody has allowed")

    def given(self) -> list[Members]:
        """What a model has to be given of all that: each call with one result, in order."""
        told: list[Members] = []
        for place, row in enumerate(self.stored):
            if row["role"] == "tool" or not (row["content"] or "tool_calls" in row):
                continue
            told.append(for_model(row))
            for call in row.get("tool_calls", ()):
                found = [each for each in self.stored[place:] if each.get("tool_call_id") == call["id"]]
                content = found[0]["content"] if found else LOST
                told.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return told

    def check_given(self, turn: _Turn, heard: Listener) -> None:
        due = [*self.given(), {"role": "user", "content": turn.question}]
        self.lodge.same(heard.rows(0), due, "what a model is given behind turns that were cut")

    def go_on(self) -> None:
        """A turn that is whole."""
        lodge, heard, text = self.lodge, Listener(self.lodge), f"plain: {self.lodge.word()}"
        told = lodge.right(lodge.ask_api("POST", f"{CHATS}/{self.chat}/chat", {"message": text}), 200)
        heard.stop()
        lodge.same(heard.rows(), [*self.given(), {"role": "user", "content": text}], "what a model is given then")
        tokens = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        answer = {"role": "assistant", "content": told["message"]["content"], "finish_reason": "stop", "usage": tokens}
        self.stored += [{"role": "user", "content": text}, answer]
        self.check_rows()


def _called(name: str, given: object, identity: str | None) -> Members:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


def cuts(audit: Audit) -> None:
    """Turns of one chat are cut, one after another, with whole ones between."""
    _Cuts(audit).steps()


CUTS = (cuts, cuts)
