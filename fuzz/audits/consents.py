"""Questions of a turn: who is asked what, which answer counts for which, for how long, and what is remembered of it.

Two notes at a time, behind something that others wrote, so that somebody has to be asked for each (wire api 6.5, with
decisions 48 and 49).
"""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from tests.support.sim_http import RequestClient as Caller

__all__ = ["CONSENTS"]

ASKED = 60.0  # s that a question is open
SETTLING = 2.0  # s in which an answer without a name may have been meant for another question
CHOICES = ["once", "session", "always", "deny"]
WORDS = (("approve", "once"), ("approved", "once"), ("allow", "once"), (" ONCE ", "once"), ("session", "session"))
DENIED = "the user did not allow this call"
NOBODY = "nobody can be asked from here"
Members = dict[str, Any]


@define(eq=False)
class _Question:
    """One that is open, or was."""

    note: str
    call_id: str
    since: float
    choice: str = ""  # how it was answered; empty: it is open


@define(eq=False)
class _Turn:
    """A turn whose model wants two notes."""

    notes: list[str]
    session: str
    events: Events
    caller: Caller
    run_id: str = ""
    chat: bool = False  # told as a chat's events; else as a run's
    questions: list[_Question] = field(factory=list)

    @property
    def open(self) -> list[_Question]:
        return [each for each in self.questions if not each.choice]


class _Consents:
    """Turns one after another, and what was allowed in them."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.kept: list[str] = []  # notes
        self.sessions: dict[str, None] = {}
        self.of_session: dict[str, list[str]] = {}  # notes that are allowed there from now on
        self.always: list[str] = []

    def steps(self) -> None:
        audit = self.audit
        for _ in range(audit.rng.randint(2, 3)):
            turn = self.begin()
            self.ask_wrongly(turn)
            while turn.open:
                audit.pick((self.name_one, self.name_one, self.name_none, self.wait, self.deny_all, self.stop))(turn)
            self.check_end(turn)
        self.refuse_where_nobody_is_asked()
        if audit.chance(0.7) and self.always:
            audit.restart("api", kill=audit.chance(0.5))
            self.of_session.clear()
        if self.always or self.of_session:
            self.remembered()
        for note in self.kept:
            audit.right(audit.ask_api("DELETE", "/api/memory", {"target": "memory", "old_text": note}), 200)

    # --- turns ---

    def question(self, notes: list[str]) -> str:
        word = self.audit.word()
        adds = [["memory", {"action": "add", "content": note}] for note in notes]
        harmless = [Round(calls=[["skills_list", {}]])] * self.audit.pick((0, 0, 1))
        return asking(word, Round(calls=[[f"no_{word}", {}]]), *harmless, Round(calls=adds), Round(text="Done."))

    def post(self, notes: list[str], session: str = "") -> _Turn:
        """Begin a turn as a run, or as a chat's stream that shows questions."""
        audit, events = self.audit, Events()
        text = self.question(notes)
        if audit.chance(0.5):
            wanted = session or f"run-{audit.word()}"
            body: Members = {"input": text, "session_id": wanted, "stream": True}
            caller = audit.begin_api("POST", "/v1/runs", body, events)
            turn = _Turn(notes, wanted, events, caller)
        else:
            session = session or audit.new_chat()
            body = {"message": text, "approvals": True}
            caller = audit.begin_api("POST", f"/api/sessions/{session}/chat/stream", body, events)
            turn = _Turn(notes, session, events, caller, chat=True)
        audit.wait(lambda: len(events.told) > 0, why="no turn is told")
        turn.run_id = events.told[0][1]["run_id"]
        self.sessions[turn.session] = None
        return turn

    def begin(self) -> _Turn:
        """A turn that asks for both notes, and each question as it has to be."""
        audit = self.audit
        turn = self.post([audit.word(), audit.word()])
        events = turn.events
        audit.wait(lambda: events.names.count("approval.request") == 2, 30.0, "nobody is asked about two notes")
        told = [data for name, data in events.told if name == "approval.request"]
        for note, data in zip(turn.notes, told, strict=True):
            args = {"action": "add", "content": note}
            is_ = {"tool": "memory", "tool_name": "memory", "args": args, "allow_permanent": True, "choices": CHOICES}
            audit.same({name: data[name] for name in is_}, is_, "a question")
            audit.same(
                (data["call_id"], data["pattern_keys"]), (data["tool_call_id"], [data["pattern_key"]]), "a question"
            )
            audit.same(data["command"], f"memory {json.dumps(args, separators=(',', ':'))}", "what is asked about")
            if note not in data["pattern_key"] or not data["description"]:
                audit.wrong(f"a question says {data}")
            turn.questions.append(_Question(note, data["call_id"], audit.now))
        audit.same(len({each.call_id for each in turn.questions}), 2, "how many calls are asked about")
        if turn.chat:
            pending = [data["call_id"] for name, data in events.told if name == "tool.pending"]
            audit.same(pending, [each.call_id for each in turn.questions], "the calls that wait")
        self.show(turn)
        return turn

    def show(self, turn: _Turn) -> None:
        """The run says what it waits for."""
        audit = self.audit
        view = audit.right(audit.ask_api("GET", f"/v1/runs/{turn.run_id}"), 200)
        asked = [each["call_id"] for each in view.get("approvals", [])]
        audit.same(asked, [each.call_id for each in turn.open], "the questions that are open")
        if turn.open:
            audit.same(view["status"], "waiting_for_approval", "a run that asks")
        elif view["status"] == "waiting_for_approval":
            audit.wrong("a run waits for an answer that it has had")

    def answer(self, turn: _Turn, body: Members) -> Caller:
        return self.audit.ask_api("POST", f"/v1/runs/{turn.run_id}/approval", body)

    # --- answers ---

    def ask_wrongly(self, turn: _Turn) -> None:
        """What is no answer changes nothing."""
        audit, (first, _) = self.audit, turn.questions
        rows: tuple[tuple[Members, int, str, str | None], ...] = (
            ({"choice": "perhaps", "call_id": first.call_id}, 400, "invalid_approval_choice", "choice"),
            ({"choice": True}, 400, "invalid_approval_choice", "choice"),
            ({}, 400, "invalid_approval_choice", "choice"),
            ({"choice": "once", "call_id": 5}, 400, "invalid_approval_choice", "call_id"),
            ({"choice": "once", "call_id": "other"}, 409, "approval_not_pending", None),
            ({"choice": "once"}, 409, "approval_not_pending", None),
            ({"choice": "always", "all": True}, 409, "approval_not_pending", None),
            ({"choice": "session", "resolve_all": True}, 409, "approval_not_pending", None),
        )
        for body, status, code, param in audit.rng.sample(rows, 3):
            refused(audit, self.answer(turn, body), status, code, param)
        refused(
            audit, audit.ask_api("POST", "/v1/runs/run_no/approval", {"choice": "once"}), 404, "run_not_found", None
        )
        self.show(turn)

    def settled(self, turn: _Turn, caller: Caller, answered: list[_Question], choice: str) -> None:
        """It is said how many were answered, and told to who listens."""
        audit = self.audit
        told = audit.right(caller, 200)
        is_: Members = {"object": "svc.run.approval_response", "run_id": turn.run_id}
        is_ |= {"choice": choice, "resolved": len(answered)}
        audit.same(told, is_, "an answer")
        for each in answered:
            each.choice = choice
            if choice in ("session", "always"):
                self.of_session.setdefault(turn.session, []).append(each.note)
            if choice == "always":
                self.always.append(each.note)
        self.heard(turn)

    def heard(self, turn: _Turn) -> None:
        audit, events = self.audit, turn.events
        due = len(turn.questions) - len(turn.open)
        audit.wait(lambda: events.names.count("approval.responded") >= due, 10.0, "an answer is not told")
        told = {data["call_id"]: data for name, data in events.told if name == "approval.responded"}
        is_ = {each.call_id: each.choice for each in turn.questions if each.choice}
        audit.same({name: data["choice"] for name, data in told.items()}, is_, "the answers that are told")
        audit.same({data["tool_call_id"] for data in told.values()}, {*is_}, "the calls that are answered")
        if turn.open:
            self.show(turn)

    def name_one(self, turn: _Turn) -> None:
        """By its call: at once, either of them, and not twice."""
        audit, one = self.audit, self.audit.pick(turn.open)
        lasting = (("session", "session"), ("session", "session"), ("always", "always"))
        said, choice = audit.pick((*WORDS, *lasting, ("deny", "deny")))
        body = {"choice": said, "call_id": one.call_id}
        self.settled(turn, self.answer(turn, body), [one], choice)
        caller = self.answer(turn, body)
        if turn.open:
            refused(audit, caller, 409, "approval_not_pending", None)
        else:
            audit.right(caller, 409)

    def name_none(self, turn: _Turn) -> None:
        """A yes without a name counts for the only one that is open, and has been for 2 s; a no for the oldest."""
        audit = self.audit
        if len(turn.open) > 1:
            self.settled(turn, self.answer(turn, {"choice": "deny"}), turn.open[:1], "deny")
            return
        (one,) = turn.open
        edge = one.since + SETTLING + audit.pick((-0.5, 0.5))
        audit.rest_until(edge)
        caller = self.answer(turn, {"choice": "once"})
        if audit.now < one.since + SETTLING:
            refused(audit, caller, 409, "approval_not_pending", None)
        elif caller.status == 200 or edge > one.since + SETTLING:
            self.settled(turn, caller, [one], "once")

    def deny_all(self, turn: _Turn) -> None:
        body = {"choice": "deny", self.audit.pick(("all", "resolve_all")): True}
        self.settled(turn, self.answer(turn, body), turn.open, "deny")

    def wait(self, turn: _Turn) -> None:
        """A minute passes, or nearly: then it is a no."""
        audit = self.audit
        latest = turn.open[-1].since + ASKED
        audit.rest_until(latest - 1.5)
        self.show(turn)
        if audit.chance(0.6):
            audit.rest_until(latest + 1.5)
            for each in turn.open:
                each.choice = "deny"
            self.heard(turn)

    def stop(self, turn: _Turn) -> None:
        """The run is stopped: nobody is asked any more, and nothing is done."""
        audit = self.audit
        if audit.chance(0.6):
            return
        audit.stop_run(turn.run_id)
        audit.answer(turn.caller, 10.0)
        for each in turn.open:
            each.choice = "stopped"

    def check_end(self, turn: _Turn) -> None:
        """What was allowed is done, once, and nothing else."""
        audit = self.audit
        audit.answer(turn.caller, 30.0)
        stopped = any(each.choice == "stopped" for each in turn.questions)
        view = audit.right(audit.ask_api("GET", f"/v1/runs/{turn.run_id}"), 200)
        told = (view["status"], "approvals" in view)
        audit.same(told, ("cancelled" if stopped else "completed", False), "a run that has asked")
        refused(audit, self.answer(turn, {"choice": "once"}), 409, "approval_not_active", None)
        known = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        done = [each.note for each in turn.questions if each.choice in CHOICES[:3]]
        if not stopped:
            audit.same([note for note in known if note in turn.notes], sorted(done, key=known.index), "what is noted")
            audit.same({note for note in known if note in turn.notes}, {*done}, "what is noted")
        self.kept += [note for note in known if note in turn.notes]
        if not stopped:
            stored = audit.rows_of(turn.session)
            for each in turn.questions:
                (row,) = [row for row in stored if row.get("tool_call_id") == each.call_id]
                if (each.choice == "deny") is not (DENIED in row["content"]):
                    audit.wrong(f"{each.choice} of {each.note} came to {row['content']}")

    # --- where nobody is asked, and where nobody has to be ---

    def refuse_where_nobody_is_asked(self) -> None:
        """A stream whose client shows no questions, and an answer that is no stream: refused at once, and said so."""
        audit, note = self.audit, self.audit.word()
        text, began = self.question([note]), self.audit.now
        chat = audit.new_chat()
        path, body = audit.pick(
            (
                (f"/api/sessions/{chat}/chat/stream", {"message": text}),
                (
                    f"/api/sessions/{chat}/chat/stream",
                    {"message": text, "approvals": audit.pick((False, 1, "true", None))},
                ),
                (f"/api/sessions/{chat}/chat", {"message": text, "approvals": True}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "approvals": True}),
                ("/v1/responses", {"input": text, "approvals": True}),
            )
        )
        heard = Listener(audit)
        caller = audit.ask_api("POST", path, body)
        heard.stop()
        audit.right(caller, 200)
        said = heard.rows()[-1]["content"]
        if audit.now > began + 30.0 or b"approval" in caller.answer.body or NOBODY not in said:
            audit.wrong(f"{path} asks, or says {said!r}")
        known = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
        audit.same(note in known, False, "whether is noted what nobody could allow")

    def remembered(self) -> None:
        """What is allowed for a chat is not asked for there again, and elsewhere only if it is for good."""
        audit = self.audit
        rows = [(session, note) for session, notes in self.of_session.items() for note in notes]
        rows += [("", note) for note in self.always]
        session, note = audit.pick(rows)
        fresh = audit.word()
        turn = self.post([note, fresh], session)
        events = turn.events
        audit.wait(lambda: "approval.request" in events.names, 30.0, "nobody is asked about a note")
        audit.rest(2.0)
        asked = [data["args"]["content"] for name, data in events.told if name == "approval.request"]
        audit.same(asked, [fresh], "what is asked where something is allowed already")
        self.answer(turn, {"choice": "deny", "all": True})
        audit.answer(turn.caller, 30.0)
        if note not in self.always:  # and nowhere else
            others = [each for each in self.sessions if note not in self.of_session.get(each, ())]
            other = self.post([note], audit.pick(("", *others)))
            audit.wait(
                lambda: "approval.request" in other.events.names, 30.0, "what was allowed in one chat is so in all"
            )
            self.answer(other, {"choice": "deny", "all": True})
            audit.answer(other.caller, 30.0)


def consents(audit: Audit) -> None:
    """Somebody is asked, answers, or not, and what was allowed is done."""
    _Consents(audit).steps()


CONSENTS = (consents,)
