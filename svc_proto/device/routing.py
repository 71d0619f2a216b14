"""The choice of a route, carried out: probes go to `GET /health` of the relay behind each candidate (wire core 3.3).

A relay whose address was derived from the API's is asked for `/voice/config` in its place, which it may well refuse.
`RouteChoice` decides whom to ask, how long to wait for an answer and which route it is; here is who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.device.remote import DERIVED_PROBE, Remote
from svc_proto.device.route_choice import (
    PROBE_WITHIN,
    CancelProbe,
    Candidate,
    Chosen,
    Probe,
    RouteAction,
    RouteChoice,
)
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.flow import Flow, Task, TaskState
from svc_proto.facts import Failure, FailureKind

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["RouteFinder"]


class RouteFinder:
    """Finds the best route that answers. `on_chosen` is called once for each `choose`, with None when none does."""

    def __init__(
        self,
        engine: Engine,
        routes: Sequence[Candidate],
        *,
        on_chosen: Callable[[Candidate | None], None],
        probe: str = "/health",
    ) -> None:
        self._target = probe
        self._asks_who = (401, 403) if probe == DERIVED_PROBE else ()  # the route is there, and wants to know who is
        self._engine = engine
        self._choice = RouteChoice(routes)
        self._on_chosen = on_chosen
        self._probes: dict[Candidate, Task] = {}
        self._deadline = engine.timers.timer(self._late)

    def choose(self, *, anew: bool) -> None:
        """Begin, and give up a choice that is under way. `anew` asks even those that answered a moment ago."""
        now = self._engine.now.mono
        self._carry_out(self._choice.network_changed(now) if anew else self._choice.start(now))

    def drop(self) -> None:
        """Give up the probes."""
        probes, self._probes = self._probes, {}
        for task in probes.values():
            task.cancel()
        self._deadline.cancel()

    def _late(self) -> None:
        self._carry_out(self._choice.advance(self._engine.now.mono))

    def _carry_out(self, actions: Sequence[RouteAction]) -> None:
        for action in actions:
            match action:
                case Probe(candidate=candidate):
                    self._probe(candidate)
                case CancelProbe(candidate=candidate):
                    self._probes.pop(candidate).cancel()
                case Chosen(candidate=chosen):
                    self._on_chosen(chosen)
                case _ as never:
                    assert_never(never)
        when = self._choice.next_deadline()
        if when is None:
            self._deadline.cancel()
        else:
            self._deadline.set(when)

    def _probe(self, candidate: Candidate) -> None:
        def done(answer: Fetched | Failure) -> None:
            self._probes.pop(candidate, None)
            there = isinstance(answer, Fetched) and (200 <= answer.status < 300 or answer.status in self._asks_who)
            now = self._engine.now.mono
            self._carry_out(self._choice.answered(candidate, now) if there else self._choice.failed(candidate, now))

        task = self._engine.spawn(self._ask(candidate), on_done=done)
        if task.state is not TaskState.DONE:
            self._probes[candidate] = task

    def _ask(self, candidate: Candidate) -> Flow[Fetched | Failure]:
        try:
            url = f"{Remote(candidate.url).http_url}{self._target}"
        except RemoteProtocolError as error:
            return Failure(FailureKind.INVALID, str(error))
        # The machine gives a probe up after its 4 s; this is only so that no wait is without an end.
        return (yield from fetch(self._engine, "GET", url, within=2 * PROBE_WITHIN))
