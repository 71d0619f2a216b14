"""Users whose agent wants to store two notes, one after the other, and requests approval of each if none lasts.

An answer must apply to its call only; `session` also to later calls with the same note in that chat.
"""

import json
from functools import partial
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler, no_further_checks
from fuzz.simulation.actors.chat_clients import ChatClients, each_event
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import ChatModel
from fuzz.simulation.servers.model_server import TOKENS
from fuzz.steps import DropAnswer, RequestNoteApproval, Step
from tests.support.sim_http import RequestClient

WORDS = ("red", "green", "blue")  # notes of a chat, which are requested repeatedly
# Answers by style; empty: allow the first note, and deny the second. Some styles name no call.
CHOICES = ("once", "deny", "session", "deny", "", "deny", "once")
DENIES_OPEN, DENIES_ALL, ALLOWS_ALL, SILENT = 3, 5, 6, 7
LAPSES = 55.0  # s for which a request certainly waits for its answer
EVENT_TIMEOUT = 5.0  # s from an accepted answer to its event
ROUNDS = 3  # model calls of a run without a fault


@define(eq=False)
class _ApprovalRun:
    chat: ChatModel
    style: int
    outages: int
    pause: float
    began: float
    id: str = ""
    reader: RequestClient | None = None
    asked: dict[str, tuple[float, str]] = field(factory=dict)  # by call: time and note
    open: list[str] = field(factory=list)  # oldest first
    meant: dict[str, str] = field(factory=dict)  # by call: the answer; empty: uncertain
    told: dict[str, str] = field(factory=dict)  # by call: the reported choice


class ApprovalUsers:
    """Handler of the steps in which users approve or deny notes; checks that each answer applies to its call."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        # A model that disconnects after the last words of a call has not reported its usage.
        self._model_leaves = any(isinstance(step, DropAnswer) for step in self.world.script.steps)
        # Pairs of chat and note that may be allowed for longer than once.
        self._remembered: dict[tuple[str, str], None] = {}
        self.handlers: dict[type[Step], StepHandler] = {RequestNoteApproval: self._begin}

    def _begin(self, step: RequestNoteApproval) -> None:
        chat = self.chats.pick(step.chat)
        if chat is None:
            return
        chat.runs += 1
        run = _ApprovalRun(chat, step.answer % 8, self.world.outages, step.seconds, self.world.sim.now)
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
                if len(run.open) > 1:
                    violated(Invariant.CONFIRMED, f"one run has several open requests: {run.open}")
                self.world.sim.after(run.pause, lambda: self._answer_open(run, identity))
            case "approval.responded":
                self._responded(run, identity, str(data["choice"]), now)
            case "tool.started" if data["tool"] == "memory":
                self._kept(run, str(data["tool_call_id"]), str(data["args"]["content"]))
            case "run.completed" if data["usage"]["total_tokens"] != ROUNDS * TOKENS and self._is_usage_known(run):
                violated(Invariant.STREAM, f"{ROUNDS} rounds of {TOKENS} tokens each are told as {data['usage']}")
            case _:
                pass

    def _is_usage_known(self, run: _ApprovalRun) -> bool:
        """Report whether no connection of a model can have ended before it reported its usage."""
        return not self._model_leaves and self.world.is_fault_free_since(run.began)

    # --- answers ---

    def _answer_open(self, run: _ApprovalRun, identity: str) -> None:
        if identity not in run.open:
            return
        if run.style == SILENT:
            return
        choice = CHOICES[run.style] or ("deny" if run.told else "once")
        more = {DENIES_OPEN: {}, DENIES_ALL: {"all": True}, ALLOWS_ALL: {"all": True}}
        body = {"choice": choice, **more.get(run.style, {"call_id": identity})}
        self._check_run_status(run, identity)
        self.world.sim.after(0.5, lambda: self._answer(run, body, [identity]))

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
        if run.reader is None or run.reader.is_closed or not self.world.is_fault_free_since(since):
            return
        missing = [identity for identity in meant if identity not in run.told]
        if missing:
            violated(Invariant.CONFIRMED, f"{meant} were answered, and {missing} wait on")

    def _check_run_status(self, run: _ApprovalRun, waits: str) -> None:
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

    # --- results ---

    def _responded(self, run: _ApprovalRun, identity: str, choice: str, now: float) -> None:
        asked, _ = run.asked[identity]
        run.told[identity] = choice
        if identity in run.open:
            run.open.remove(identity)
        meant = run.meant.get(identity)
        is_early = now < asked + LAPSES and self.world.is_fault_free_since(asked - LAPSES)  # a fault delays its reader
        if meant is None and (choice != "deny" or is_early):
            violated(Invariant.CONFIRMED, f"{identity} was answered {choice}, and no user had answered it")
        if meant and choice != meant and now < asked + LAPSES:
            violated(Invariant.CONFIRMED, f"{identity} was answered {choice}, and {meant} was said")
        self.world.count(f"notes: {choice}")

    def _kept(self, run: _ApprovalRun, identity: str, note: str) -> None:
        if identity in run.asked and run.told.get(identity) not in ("once", "session"):
            violated(Invariant.CONFIRMED, f"the note {note!r} is kept, and {run.told.get(identity)} was said")
        if identity not in run.asked and (run.chat.id, note) not in self._remembered:
            violated(Invariant.CONFIRMED, f"the note {note!r} is kept without an approval")
