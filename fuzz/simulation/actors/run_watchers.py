"""Clients that start runs of the API and watch them: at once, later, after the end, or two at a time."""

from functools import partial
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler
from fuzz.simulation.actors.chat_clients import BEHAVIORS, ChatClients, each_event
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import TurnModel
from fuzz.steps import StartRun, Step
from tests.support.sim_http import RequestClient

UNREAD_TIMEOUT = 300.0  # s that events wait for a watcher, wire api 6.3
ENDS = {"run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled"}  # and the status after each
CLOSED = b": stream closed\n\n"


@define(eq=False)
class _WatchedRun:
    """A run, the requests for its events, and the turn as one watcher received it."""

    turn: TurnModel
    sent: float  # time of the request
    outages: int  # of the API before the request
    asked: list[RequestClient] = field(factory=list)
    end: str = ""  # the event that ended it


class RunWatchers:
    """Handler of the steps in which clients start and watch runs; checks the events and the status of each run."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self.handlers: dict[type[Step], StepHandler] = {StartRun: self._run}

    def _run(self, step: StartRun) -> None:
        chat = self.chats.pick(step.chat)
        if chat is None:
            return
        chat.runs += 1
        manner = chat.allowed((*BEHAVIORS, "long")[step.manner % (len(BEHAVIORS) + 1)])
        turn = TurnModel(chat, f"{manner}: run {self.chats.number()}")
        run = _WatchedRun(turn, self.world.sim.now, self.world.outages)
        body: dict[str, object] = {"input": turn.text, "session_id": chat.id}
        if step.chat % 5 == 4:  # the response of the POST itself is the stream
            self._watch(run, "POST", "/v1/runs", {**body, "stream": True})
            return

        def begun(caller: RequestClient) -> None:
            if caller.status != 202:
                return
            turn.run_id = str(caller.answer.json["run_id"])
            self.chats.runs.append(turn.run_id)
            chat.turns.append(turn)
            for _ in range(1 + step.chat % 2):
                self.world.sim.after(
                    step.watch_after, lambda: self._watch(run, "GET", f"/v1/runs/{turn.run_id}/events")
                )

        self.chats.request("POST", "/v1/runs", body, begun)

    def _watch(self, run: _WatchedRun, method: str, path: str, body: object = None) -> None:
        if self.world.left:
            return
        piece = each_event(partial(self._on_event, run))
        caller = self.chats.request(method, path, body, partial(self._on_end, run), piece)
        run.asked.append(caller)
        self.chats.reading.setdefault(run.turn.text, caller)

    def _on_event(self, run: _WatchedRun, event: str, data: dict[str, Any]) -> None:
        turn = run.turn
        if "run_id" not in data:  # an error instead of a stream
            return
        if not turn.run_id:
            turn.run_id = data["run_id"]
            turn.chat.turns.append(turn)
        if data["session_id"] != turn.chat.id or data["run_id"] != turn.run_id or data["event"] != event:
            violated(Invariant.OWN_BYTES, f"{event} of another session or run is told of {turn.text!r}")
        if run.end:
            violated(Invariant.STREAM, f"{event} after {run.end}")
        if not turn.events and event not in ("run.started", "run.failed", "run.cancelled"):
            violated(Invariant.STREAM, f"the events of {turn.text!r} begin with {event}")
        turn.events.append(event)
        if event == "message.delta":
            turn.said.append(data["delta"])
        elif event in ENDS:
            run.end = event
            if event == "run.completed":
                self._completed(turn, data["output"])

    def _completed(self, turn: TurnModel, output: str) -> None:
        turn.content = output
        if not turn.has_told(output):
            violated(Invariant.STREAM, f"{turn.text!r}: {''.join(turn.said)!r:.60} was told, {output!r:.60} is the end")
        if turn.text.startswith("plain:") and output.strip() != f"You said {turn.text}":
            violated(Invariant.OWN_BYTES, f"{turn.text!r} was answered {output!r:.100}")

    def _on_end(self, run: _WatchedRun, caller: RequestClient) -> None:
        turn = run.turn
        if caller.status == 200:
            self.world.count("runs watched")
            if not run.end or not caller.answer.body.endswith(CLOSED):
                violated(Invariant.STREAM, f"the events of {turn.text!r} ended with {turn.events[-3:]}")
            self.chats.request("GET", f"/v1/runs/{turn.run_id}", None, partial(self._compare, run))
        elif caller.status == 404 and caller.method == "GET":
            self.world.count("runs watched in vain")
            others = [each for each in run.asked if each is not caller and each.status != 404]
            # A fault may delay a request until just before its answer.
            arrived = caller.began if self.world.is_unaffected(caller) else self.world.sim.now
            lost = self.world.outages != run.outages or arrived >= run.sent + UNREAD_TIMEOUT
            if not (others or lost):
                violated(Invariant.STREAM, f"the events of {turn.text!r} are missing for its first reader")
        if sum(each.head is not None and each.head.status == 200 for each in run.asked) > 1:
            violated(Invariant.STREAM, f"the events of {turn.text!r} were told twice")

    def _compare(self, run: _WatchedRun, caller: RequestClient) -> None:
        if caller.status != 200:
            return
        view, turn = caller.answer.json, run.turn
        if view["status"] != ENDS[run.end]:
            violated(Invariant.STREAM, f"{turn.text!r} was told as {run.end}, and is {view['status']}")
        if view.get("output") != turn.content:
            violated(Invariant.STREAM, f"{turn.text!r} was told as {turn.content!r:.60}, is {view.get('output')!r:.60}")
