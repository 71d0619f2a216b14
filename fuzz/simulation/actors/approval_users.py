"""People whose agent asks before it keeps a note, two questions at a time: what they say is for what they mean.

The agent has looked at the phone, so each note for later chats needs somebody's word (`asks_having_read`). An answer
that names its call is for that one, a denial without a name for the oldest question, and one for all is for all. A yes
to all is none. What was allowed once is asked again the next time.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import Deeds, no_further_checks
from fuzz.simulation.actors.chat_clients import ChatClients, each_event
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import ChatModel, violated
from fuzz.simulation.servers.model_server import TOKENS
from fuzz.steps import DropAnswer, RequestNoteApproval, Step
from tests.support.sim_http import RequestClient

WORDS = ("red", "green", "blue")  # notes of a chat, which are wanted again and again
SAID = ("once", "deny", "session", "once")  # by name, in turns
LAPSES = 55.0  # s that a question surely waits for its answer
EVENT_TIMEOUT = 5.0  # s from an answer that was taken to the news of it
SETTLED = 2.5  # s after a question in which an answer for all may not have meant it
ROUNDS = 3  # of the model, in a run that goes on to its end


@define(eq=False)
class _ApprovalRun:
    """A run that asks, as its reader sees it."""

    chat: ChatModel
    style: int
    outages: int
    pause: float
    id: str = ""
    reader: RequestClient | None = None
    asked: dict[str, tuple[float, str]] = field(factory=dict)  # by call, when, and about which note
    open: list[str] = field(factory=list)  # the oldest first
    meant: dict[str, str] = field(factory=dict)  # by call, what was said to it; empty: it may be anything
    told: dict[str, str] = field(factory=dict)  # and what came of it


class ApprovalUsers:
    """The steps of those who are asked."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        # a model that leaves behind a round's last words has not said what the round had taken
        self._model_leaves = any(isinstance(step, DropAnswer) for step in self.world.script.steps)
        self._remembered: dict[tuple[str, str], None] = {}  # chats and notes, allowed for longer than once, perhaps
        self.deeds: dict[type[Step], Deeds] = {RequestNoteApproval: self._begin}

    def _begin(self, step: RequestNoteApproval) -> None:
        chat = self.chats.pick(step.chat)
        if chat is None:
            return
        chat.runs += 1
        run = _ApprovalRun(chat, step.answer % 8, self.world.outages, step.seconds)
        first = step.answer // 8 % len(WORDS)
        text = f"notes: run {self.chats.number()} #{WORDS[first]} {WORDS[first - 1]}"
        body = {"input": text, "session_id": chat.id, "stream": True}
        run.reader = self.chats.request(
            "POST", "/v1/runs", body, no_further_checks, each_event(partial(self._on_event, run))
        )

    def _on_event(self, run: _ApprovalRun, event: str, data: dict[str, Any]) -> None:
        run.id = data.get("run_id", run.id)
        identity, now = str(data.get("call_id")), self.world.sim.now
        match event:
            case "approval.request":
                self.world.count("notes asked about")
                run.asked[identity] = now, str(json.loads(data["command"].partition(" ")[2])["content"])
                run.open.append(identity)
                if len(run.open) == 2:
                    self.world.sim.after(SETTLED + run.pause, lambda: self._answer_open(run))
            case "approval.responded":
                self._responded(run, identity, str(data["choice"]), now)
            case "tool.started" if data["tool"] == "memory":
                self._kept(run, str(data["tool_call_id"]), str(data["args"]["content"]))
            case "run.completed" if data["usage"]["total_tokens"] != ROUNDS * TOKENS and not self._model_leaves:
                violated(Invariant.STREAM, f"{ROUNDS} rounds of {TOKENS} tokens each are told as {data['usage']}")
            case _:
                pass

    # --- what is said ---

    def _answer_open(self, run: _ApprovalRun) -> None:
        first, last = (run.open[0], run.open[-1]) if len(run.open) == 2 else ("", "")
        if not first:
            return
        match run.style:
            case 0 | 1 | 2:  # each by its name, the last one first
                self._answer(run, {"choice": SAID[run.style], "call_id": last}, [last])
                self.world.sim.after(0.5, lambda: self._check_run_status(run, first))
                self.world.sim.after(1.0, lambda: self._answer(run, {"choice": "deny", "call_id": first}, [first]))
            case 3 | 4:  # no, and then yes
                self._answer(run, {"choice": "deny"}, [first])
                self.world.sim.after(1.0, lambda: self._answer(run, {"choice": "once", "call_id": last}, [last]))
            case 5:
                self._answer(run, {"choice": "deny", "all": True}, [first, last])
            case 6:  # which is for neither
                self._answer(run, {"choice": "once", "all": True}, [])
            case _:
                pass  # nothing at all

    def _answer(self, run: _ApprovalRun, body: dict[str, object], meant: list[str]) -> None:
        for identity in meant:
            run.meant[identity] = str(body["choice"])
            if body["choice"] == "session":
                self._remembered[run.chat.id, run.asked[identity][1]] = None

        def done(caller: RequestClient) -> None:
            if caller.status != 200:
                run.meant.update(dict.fromkeys(meant, ""))
            else:
                told = self.world.sim.now
                self.world.sim.after(EVENT_TIMEOUT, lambda: self._check_told(run, meant, told))

        self.chats.request("POST", f"/v1/runs/{run.id}/approval", body, done)

    def _check_told(self, run: _ApprovalRun, meant: list[str], since: float) -> None:
        """An answer that was taken is an answer, for each that was meant."""
        if run.reader is None or run.reader.is_closed or not self.world.is_fault_free_since(since):
            return
        missing = [identity for identity in meant if identity not in run.told]
        if missing:
            violated(Invariant.CONFIRMED, f"{meant} were answered, and {missing} wait on")

    def _check_run_status(self, run: _ApprovalRun, waits: str) -> None:
        """While one question is open the run waits for an answer, and says which."""

        def done(caller: RequestClient) -> None:
            if caller.status != 200 or waits in run.told or waits in run.meant:
                return
            view = caller.answer.json
            shown = [each["call_id"] for each in view.get("approvals", ())]
            if view["status"] in ("running", "waiting_for_approval") and (
                view["status"] == "running" or waits not in shown
            ):
                violated(Invariant.CONFIRMED, f"{waits} waits for an answer, and its run is {view['status']}: {shown}")

        self.chats.request("GET", f"/v1/runs/{run.id}", None, done)

    # --- what comes of it ---

    def _responded(self, run: _ApprovalRun, identity: str, choice: str, now: float) -> None:
        asked, _ = run.asked[identity]
        run.told[identity] = choice
        if identity in run.open:
            run.open.remove(identity)
        meant = run.meant.get(identity)
        if meant is None and (choice != "deny" or now < asked + LAPSES):
            violated(Invariant.CONFIRMED, f"{identity} was answered {choice}, and nobody had said anything to it")
        if meant and choice != meant and now < asked + LAPSES:
            violated(Invariant.CONFIRMED, f"{identity} was answered {choice}, and {meant} was said")
        self.world.count(f"notes: {choice}")

    def _kept(self, run: _ApprovalRun, identity: str, note: str) -> None:
        if identity in run.asked and run.told.get(identity) not in ("once", "session"):
            violated(Invariant.CONFIRMED, f"the note {note!r} is kept, and {run.told.get(identity)} was said")
        if identity not in run.asked and (run.chat.id, note) not in self._remembered:
            violated(Invariant.CONFIRMED, f"the note {note!r} is kept, and nobody was asked")
