"""All runs of the server: begun, found again, stopped, answered. A run outlives the connection that began it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.api.chat.records import Usage
from svc_proto.api.errors import not_found
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.turn_execution import TurnRequest, execute_turn
from svc_proto.basics.metrics import Histogram
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.machines.run_scheduler import ENDED, RunScheduler, RunState, RunTrigger

if TYPE_CHECKING:
    from svc_proto.api.service import Api

__all__ = ["RunManager"]


class RunManager:
    """The runs, by id."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.registry = RunScheduler(api.config.max_concurrent_runs)
        self._runs: dict[str, Run] = {}  # those that the registry knows
        self.outcomes = dict.fromkeys((state.value for state in ENDED), 0)  # how often each was
        self.durations = Histogram()  # of those that are over
        self.usage = Usage()  # the same
        self.model_calls = 0  # the same
        self.deltas = 0

    def __len__(self) -> int:
        return len(self.registry)

    def states(self) -> dict[str, int]:
        """How many that are not over are at what."""
        counts = dict.fromkeys((state.value for state in RunState if state not in ENDED), 0)
        for record in self.registry.live():
            counts[record.state.value] += 1
        return counts

    def new_id(self) -> str:
        """`run_` and 32 hexadecimal digits (wire api 6.1)."""
        return f"run_{self._api.engine.entropy(16).hex()}"

    def check_capacity(self) -> Flow[None]:
        """For runs that may not wait, before their body is read. `Refused` 429 or 503 (wire api 2.1)."""
        self._api.check_not_stopping()
        return self._api.ownership.check_capacity()

    def start(
        self,
        order: TurnRequest,
        request: Request | None = None,
        *,
        holder: str = "",
        key: str = "",
        known: Callable[[], Run | None] = lambda: None,
    ) -> Flow[Run | Response | StreamedResponse]:
        """Begin a run; or what the node answers to the request that has the turns of the session. `Refused` 429 or 503.

        Whoever subscribes to it right away is told everything. One that outlives the request that began it ends with
        the `holder` of that. With a `key` there may be a `known` one, here or elsewhere, which is to answer.
        """
        ownership, run = self._api.ownership, known()
        if run is not None:
            return run
        passed = yield from ownership.acquire(order.session_id, request, key)
        if passed is not None:
            return passed
        try:
            if known() is None:
                yield from ownership.reserve_slot(order.session_id, may_wait=order.may_wait)
            return known() or self._start(order, holder)
        finally:
            if self.get(order.run_id) is None:
                ownership.release(order.session_id)
                ownership.on_ready_started()  # it may have had a place

    def _start(self, order: TurnRequest, holder: str) -> Run:
        api, engine = self._api, self._api.engine
        api.check_not_stopping()
        record = self.registry.add(order.run_id, order.session_id, may_wait=order.may_wait, now=engine.now)
        run = Run(api, record, stops_alone=order.stops_alone, may_ask=order.may_ask, on_changed=self._ended)
        run.model = order.model
        self._runs[order.run_id] = run
        if holder:
            run.credential_id = holder
            engine.revocables[run] = holder
        self.start_ready()
        engine.spawn(execute_turn(api, run, order), on_error=lambda error: self._failed(run, error))
        return run

    def get(self, run_id: str) -> Run | None:
        """A run that is live, or ended less than an hour ago."""
        return self._runs.get(run_id) if self.registry.get(run_id, self._api.engine.now) is not None else None

    def find(self, run_id: str) -> Run:
        """The run of this id; `Refused` 404 `run_not_found` where there is none."""
        run = self.get(run_id)
        if run is None:
            raise not_found("no such run", code="run_not_found")
        return run

    def stop(self, run_id: str) -> None:
        """Interrupt it. `Refused` 404 `run_not_found` if it is not live (wire api 6.4)."""
        run = self.find(run_id)
        if run.ended is not None:
            raise not_found("this run is over", code="run_not_found")
        self.registry.stop(run.record, self._api.engine.now)
        self._api.ownership.on_slot_freed()
        self.start_ready()
        run.notify()

    def stop_session_runs_and_wait(self, session_id: str) -> Flow[None]:
        """Stop every turn of a session, those that wait too, and wait until what was said is stored."""
        for run in self.stop_session_runs(session_id):
            yield from run.wait_ended()

    def stop_session_runs(self, session_id: str) -> list[Run]:
        """Stop every turn of a session, those that wait too: which those are."""
        turns = [self._runs[record.id] for record in self.registry.live() if record.session_id == session_id]
        for run in reversed(turns):  # so that none of them begins because another ended
            self.stop(run.record.id)
        return turns

    def stop_all(self) -> None:
        """The server is shutting down: interrupt everything; what was said is stored."""
        for record in reversed(self.registry.live()):  # so that none begins because another ended
            self.stop(record.id)

    def start_ready(self) -> None:
        """Begin what can begin."""
        for record in self.registry.startable(self._api.engine.now):
            self._runs[record.id].notify()
        self._api.ownership.on_ready_started()

    # --- helpers ---

    def _ended(self, run: Run) -> None:
        ended, engine = run.ended, self._api.engine
        assert ended is not None  # it has just said so
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

    def _failed(self, run: Run, error: Exception) -> None:
        reference = self._api.engine.log_bug(error)
        if run.ended is None:
            text = f"internal error, reference {reference}"
            run.finish(run.build_ended(finish="error", error=text, code="agent_error"))
