"""Manager of all runs of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from svc_proto.api.chat.records import Usage
from svc_proto.api.errors import check_not_stopping, not_found
from svc_proto.api.ports import ClientPort, SettingsPort, StorePort
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.turn_execution import TurnHost, TurnRequest, execute_turn
from svc_proto.basics.brand import Brand
from svc_proto.basics.metrics import Histogram, MetricFamily, counter, gauge
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.machines.run_scheduler import ENDED, RunScheduler, RunState, RunTrigger
from svc_proto.service_clients.authority import Authority

__all__ = ["RunManager", "TurnPort"]


class RunManagerPort(TurnHost, ClientPort, Protocol):
    """Members of the API server that the run manager uses."""


class TurnPort(StorePort, SettingsPort, ClientPort, Protocol):
    """Members of the API server that modules use to start turns."""

    runs: RunManager


class RunManager:
    """Starts, finds and stops runs, by id."""

    def __init__(self, api: RunManagerPort) -> None:
        self._api = api
        self.registry = RunScheduler(api.config.max_concurrent_runs)
        self._runs: dict[str, Run] = {}  # those in the registry
        self.outcomes = dict.fromkeys((state.value for state in ENDED), 0)  # number of ended runs by state
        self.durations = Histogram()  # of ended runs
        self.usage = Usage()  # of ended runs
        self.model_calls = 0  # of ended runs
        self.deltas = 0
        self.on_run_created: Callable[[Run], None] = lambda run: None  # called before the first event

    def __len__(self) -> int:
        return len(self.registry)

    def states(self) -> dict[str, int]:
        """Return the number of live runs for each state."""
        counts = dict.fromkeys((state.value for state in RunState if state not in ENDED), 0)
        for record in self.registry.live():
            counts[record.state.value] += 1
        return counts

    def metrics(self) -> list[MetricFamily]:
        """Return metrics of live turns, totals of ended ones, and the number of text pieces of both."""
        usage = self.usage
        tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
        return [
            gauge("svc_runs", "Turns that are not over, by what they are at.", self.states(), "state"),
            counter("svc_turns", "Turns that are over, by how they ended.", self.outcomes, "outcome"),
            self.durations.family(
                "svc_turn_duration_seconds", "From the order of a turn to its end, its wait in line included."
            ),
            counter("svc_model_calls", "Requests to the model of turns that are over.", self.model_calls),
            counter("svc_tokens", "Tokens of turns that are over, where the model's answers say.", tokens, "direction"),
            counter("svc_deltas", "Pieces of text that the agent has said.", self.deltas),
        ]

    def new_id(self) -> str:
        """Return a new id: `run_` and 32 hexadecimal digits (wire api 6.1)."""
        return f"run_{self._api.engine.entropy(16).hex()}"

    def check_capacity(self) -> Flow[None]:
        """Check, before a body is read, that a run that may not wait can start. Raises `Refused` 429 or 503."""
        check_not_stopping(self._api.engine)
        return self._api.ownership.check_capacity()

    def start(
        self,
        turn_request: TurnRequest,
        request: Request | None = None,
        *,
        credential_id: str = "",
        key: str = "",
        find_known: Callable[[], Run | None] = lambda: None,
    ) -> Flow[Run | Response | StreamedResponse]:
        """Register and return a run, which starts as soon as it has a slot and its session is free.

        Return the run of an equal earlier request instead, if `find_known` returns one, or the answer of another node
        that owns the session or has the idempotency `key`. The run is stopped when `credential_id` is revoked. Raises
        `Refused` 429 or 503.
        """
        authority, brand = turn_request.authority, turn_request.brand
        if request is not None:
            authority, brand = self._api.authority(request), brand or self._api.brand_of(request)
        ownership, run = self._api.ownership, find_known()
        if run is not None:
            return run
        response = yield from ownership.acquire(turn_request.session_id, request, key)
        if response is not None:
            return response
        try:
            if find_known() is None:
                yield from ownership.reserve_slot(turn_request.session_id, may_wait=turn_request.may_wait)
            return find_known() or self._start(turn_request, credential_id, authority, brand)
        finally:
            if self.get(turn_request.run_id) is None:
                ownership.release(turn_request.session_id)
                ownership.on_ready_started()  # a slot may have been reserved

    def _start(self, turn_request: TurnRequest, credential_id: str, authority: Authority, brand: Brand | None) -> Run:
        api, engine = self._api, self._api.engine
        check_not_stopping(engine)
        record = self.registry.add(
            turn_request.run_id, turn_request.session_id, may_wait=turn_request.may_wait, now=engine.now
        )
        run = Run(api, self, record, stops_alone=turn_request.stops_alone, may_ask=turn_request.may_ask)
        run.model = turn_request.model
        run.authority, run.brand = authority, brand
        self._runs[turn_request.run_id] = run
        self.on_run_created(run)
        if credential_id:
            run.credential_id = credential_id
            engine.revocables[run] = credential_id
        self.start_ready()
        engine.spawn(execute_turn(api, run, turn_request), on_error=lambda error: self._on_run_failed(run, error))
        return run

    def get(self, run_id: str) -> Run | None:
        """Return a run that is live, or one of the newest ended runs for an hour after its end; else None."""
        return self._runs.get(run_id) if self.registry.get(run_id, self._api.engine.now) is not None else None

    def find(self, run_id: str) -> Run:
        """Return the run of this id. Raises `Refused` 404 `run_not_found`."""
        run = self.get(run_id)
        if run is None:
            raise not_found("no such run", code="run_not_found")
        return run

    def stop(self, run_id: str) -> None:
        """Interrupt a run. Raises `Refused` 404 `run_not_found` if it is not live (wire api 6.4)."""
        run = self.find(run_id)
        if run.ended is not None:
            raise not_found("this run is over", code="run_not_found")
        self.registry.stop(run.record, self._api.engine.now)
        self._api.ownership.on_slot_freed()
        self.start_ready()
        run.notify()

    def stop_session_runs_and_wait(self, session_id: str) -> Flow[None]:
        """Stop every turn of a session, waiting ones included, and wait for their ends.

        Turns that arrive meanwhile are stopped too: when the flow ends, the session has no live turn.
        """
        while runs := self.stop_session_runs(session_id):
            for run in runs:
                yield from run.wait_ended()

    def session_runs(self, session_id: str) -> list[Run]:
        """Return the live runs of a session, waiting ones included, in the order in which they came."""
        return [self._runs[record.id] for record in self.registry.live() if record.session_id == session_id]

    def stop_session_runs(self, session_id: str) -> list[Run]:
        """Stop every turn of a session, waiting ones included, and return the runs."""
        turns = self.session_runs(session_id)
        for run in reversed(turns):  # so that no turn starts because an earlier one ended
            self.stop(run.record.id)
        return turns

    def stop_all(self) -> None:
        """Stop all live runs, at shutdown. Turns that have begun store their texts as they end."""
        for record in reversed(self.registry.live()):  # so that none starts because an earlier one ended
            self.stop(record.id)

    def start_ready(self) -> None:
        """Start the waiting runs that have or get a slot, and have no earlier run in their session."""
        for record in self.registry.startable(self._api.engine.now):
            self._runs[record.id].notify()
        self._api.ownership.on_ready_started()

    def run_ended(self, run: Run) -> None:
        """Release the slot of an ended run, count and log its end, and start runs that waited.

        Its hold on the session is released too, and runs that ended too long ago are dropped.
        """
        ended, engine = run.ended, self._api.engine
        assert ended is not None  # `finish` sets it before the callback
        trigger = RunTrigger.FINISH if ended.error is None else RunTrigger.FAIL
        if ended.interrupted:
            trigger = RunTrigger.CANCEL
        for run_id in self.registry.finish(run.record, trigger, engine.now):
            del self._runs[run_id]
        self._api.ownership.on_slot_freed()
        engine.revocables.pop(run, None)
        self._api.ownership.release(run.record.session_id)
        self.outcomes[run.record.state.value] += 1
        self.durations.observe(engine.now.mono - run.begun_at)
        self.usage += ended.usage
        self.model_calls += ended.api_calls
        engine.log(
            Level.INFO,
            "turn ended",
            run=run.record.id,
            state=run.record.state.value,
            **({"code": ended.code} if ended.code else {}),
            calls=ended.api_calls,
            tokens=ended.usage.total_tokens,
        )
        self.start_ready()

    # --- helpers ---

    def _on_run_failed(self, run: Run, error: Exception) -> None:
        reference = self._api.engine.log_bug(error)
        if run.ended is None:
            text = f"internal error, reference {reference}"
            run.finish(run.build_ended(finish="error", error=text, code="agent_error"))
