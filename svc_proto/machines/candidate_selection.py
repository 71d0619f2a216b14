"""Selection of one of several candidates of a host (SPEC.md "Multi-route pairing", wire core 3.3).

Candidates are tried tier by tier in strict priority; a tier is tried only if no candidate of the better ones answers.
All candidates of a tier are probed at once: the first answer wins and cancels the other probes. A probe has 4 s. A
candidate that answered counts as reachable for 60 s: its tier is not probed then. A network change discards these
results and starts again.

| state   | trigger   | next    |                                               |
|---------|-----------|---------|-----------------------------------------------|
| IDLE    | START     | PROBING |                                               |
| PROBING | ANSWERED  | CHOSEN  | the first of its tier, now or in the last 60 s |
| PROBING | EXHAUSTED | NONE    | no candidate of any tier answers               |
| any     | START     | PROBING | a network change, or another try               |
"""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from attrs import frozen

from svc_proto.machines.transitions import Table, step

__all__ = [
    "PROBE_TIMEOUT",
    "SELECTION_TABLE",
    "Candidate",
    "CancelProbe",
    "Chosen",
    "Probe",
    "SelectionAction",
    "CandidateSelector",
    "SelectionState",
    "SelectionTrigger",
]

PROBE_TIMEOUT = 4.0  # s, spec "Limits"
REACHABLE_TTL = 60.0  # s, spec "Limits"


class SelectionState(Enum):
    """State of the selection."""

    IDLE = "idle"
    PROBING = "probing"
    CHOSEN = "chosen"
    NONE = "none"


class SelectionTrigger(Enum):
    """Event that can change the state of the selection."""

    START = "start"
    ANSWERED = "answered"
    EXHAUSTED = "exhausted"


SELECTION_TABLE: Table[SelectionState, SelectionTrigger] = {
    (SelectionState.IDLE, SelectionTrigger.START): SelectionState.PROBING,
    (SelectionState.PROBING, SelectionTrigger.START): SelectionState.PROBING,
    (SelectionState.PROBING, SelectionTrigger.ANSWERED): SelectionState.CHOSEN,
    (SelectionState.PROBING, SelectionTrigger.EXHAUSTED): SelectionState.NONE,
    (SelectionState.CHOSEN, SelectionTrigger.START): SelectionState.PROBING,
    (SelectionState.NONE, SelectionTrigger.START): SelectionState.PROBING,
}


@frozen
class Candidate:
    """A candidate: its role (`lan`, `mesh`, `public`, …), its tier (0 is best) and the address to probe."""

    role: str
    priority: int
    url: str


@frozen
class Probe:
    """Action: probe this candidate, then call `answered` or `failed`."""

    candidate: Candidate


@frozen
class CancelProbe:
    """Action: cancel a probe whose result is no longer needed."""

    candidate: Candidate


@frozen
class Chosen:
    """Action: use this candidate; None: there is none for now."""

    candidate: Candidate | None


SelectionAction: TypeAlias = Probe | CancelProbe | Chosen


class CandidateSelector:
    """Selector among the candidates of one pairing.

    The methods that report an event return the next actions, in order.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._tiers: dict[int, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda each: each.priority):
            self._tiers.setdefault(candidate.priority, []).append(candidate)
        self._left: list[int] = []  # tiers still to try
        self._probing: dict[Candidate, float] = {}  # deadline of each probe
        self._reachable: dict[Candidate, float] = {}  # end of validity of each result
        self.state = SelectionState.IDLE
        self.chosen: Candidate | None = None

    def start(self, now: float) -> list[SelectionAction]:
        """Start the selection; a candidate that answered in the last 60 s needs no new probe."""
        actions: list[SelectionAction] = [CancelProbe(candidate) for candidate in self._probing]
        self._probing.clear()
        self._step(SelectionTrigger.START)
        self.chosen = None
        self._left = list(self._tiers)
        return actions + self._next_tier(now)

    def network_changed(self, now: float) -> list[SelectionAction]:
        """Discard all results and start again."""
        self._reachable.clear()
        return self.start(now)

    def answered(self, candidate: Candidate, now: float) -> list[SelectionAction]:
        """Choose a candidate that has answered its probe; do nothing if it is not being probed."""
        if candidate not in self._probing:
            return []
        del self._probing[candidate]
        self._reachable[candidate] = now + REACHABLE_TTL
        return self._choose(candidate)

    def failed(self, candidate: Candidate, now: float) -> list[SelectionAction]:
        """Drop the failed probe of a candidate; after the last one of a tier, try the next tier, or choose none."""
        if self._probing.pop(candidate, None) is None or self._probing:
            return []
        return self._next_tier(now)

    def advance(self, now: float) -> list[SelectionAction]:
        """Cancel the probes whose 4 s have passed; if none is left in this tier, try the next one, or choose none."""
        late = [candidate for candidate, deadline in self._probing.items() if deadline <= now]
        actions: list[SelectionAction] = []
        for candidate in late:
            actions.append(CancelProbe(candidate))
            actions += self.failed(candidate, now)
        return actions

    def next_deadline(self) -> float | None:
        """Return the time (monotonic s) at which `advance` is due; None while nothing is probed."""
        return min(self._probing.values(), default=None)

    def _next_tier(self, now: float) -> list[SelectionAction]:
        if not self._left:
            self._step(SelectionTrigger.EXHAUSTED)
            return [Chosen(None)]
        tier = self._tiers[self._left.pop(0)]
        for candidate in tier:
            if self._reachable.get(candidate, now) > now:
                return self._choose(candidate)
        self._probing = dict.fromkeys(tier, now + PROBE_TIMEOUT)
        return [Probe(candidate) for candidate in self._probing]

    def _choose(self, candidate: Candidate) -> list[SelectionAction]:
        cancelled: list[SelectionAction] = [CancelProbe(other) for other in self._probing]
        self._probing.clear()
        self._step(SelectionTrigger.ANSWERED)
        self.chosen = candidate
        return [*cancelled, Chosen(candidate)]

    def _step(self, trigger: SelectionTrigger) -> None:
        self.state = step(SELECTION_TABLE, self.state, trigger)
