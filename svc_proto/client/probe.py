"""Ask the routes whether a relay is there, in strict tiers, and take the best (spec "Multi-route pairing").

The choice is `RouteChoice`; this runs its probes as flows. A probe is `GET /health` on the relay itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from svc_proto.device.remote import Remote
from svc_proto.device.route_choice import CancelProbe, Candidate, Chosen, Probe, RouteAction, RouteChoice
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.waits import Bell
from svc_proto.facts import Failure

__all__ = ["Routes"]

NEVER_REACHED = 60.0  # s; the choice gives a probe up long before


class Routes:
    """The routes to one relay. What answered is believed for a minute, so keep it while a command lives."""

    def __init__(self, engine: Engine, candidates: Sequence[Candidate]) -> None:
        self._engine = engine
        self._choice = RouteChoice(candidates)
        self._probes: dict[Candidate, Task] = {}
        self._timer = engine.timers.timer(self._late)
        self._bell = Bell(engine)
        self._over = False
        self.problems: dict[Candidate, str] = {}  # why a route was not taken

    def choose(self) -> Flow[Candidate | None]:
        """The best route that answers; None when none does."""
        self._begin()
        return (yield from self._outcome(self._choice.start(self._engine.now.mono)))

    def choose_anew(self) -> Flow[Candidate | None]:
        """The same after a network change: nothing that answered before is believed."""
        self._begin()
        return (yield from self._outcome(self._choice.network_changed(self._engine.now.mono)))

    def _begin(self) -> None:
        self._over = False
        self.problems.clear()

    def _outcome(self, actions: list[RouteAction]) -> Flow[Candidate | None]:
        try:
            self._act(actions)
            while not self._over:
                yield from self._bell.wait(self._engine.now.mono + NEVER_REACHED)
        finally:
            self._timer.cancel()
            for task in self._probes.values():
                task.cancel()
            self._probes.clear()
        return self._choice.chosen

    def _act(self, actions: list[RouteAction]) -> None:
        for action in actions:
            match action:
                case Probe(candidate=candidate):
                    self._probe(candidate)
                case CancelProbe(candidate=candidate):
                    self.problems[candidate] = "no answer in time"
                    self._probes.pop(candidate).cancel()
                case Chosen():
                    self._over = True
                    self._bell.ring()
                case _:
                    assert_never(action)
        due = self._choice.next_deadline()
        if due is not None:
            self._timer.set(due)

    def _probe(self, candidate: Candidate) -> None:
        def asked(answer: Fetched | Failure) -> None:
            self._probes.pop(candidate, None)
            now = self._engine.now.mono
            if isinstance(answer, Fetched) and answer.status == 200:
                self._act(self._choice.answered(candidate, now))
                return
            self.problems[candidate] = (
                f"status {answer.status}" if isinstance(answer, Fetched) else answer.detail or answer.kind.value
            )
            self._act(self._choice.failed(candidate, now))

        question = fetch(self._engine, "GET", f"{Remote(candidate.url).http_url}/health", within=NEVER_REACHED)
        task = self._engine.spawn(question, on_done=asked)
        self._probes[candidate] = task

    def _late(self) -> None:
        self._act(self._choice.advance(self._engine.now.mono))
