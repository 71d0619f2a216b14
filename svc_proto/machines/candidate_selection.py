"""Which of several routes to a host a client uses (SPEC.md "Multi-route pairing", wire core 3.3).

Candidates are tried tier by tier in strict priority; a worse tier is tried only when no route of the better ones
answers. Within a tier all are probed at once and the first that answers wins; the other probes are given up. A probe
has 4 s. A route that answered counts as reachable for 60 s. A network change forgets all that and starts anew.

| state   | trigger   | next    |                                               |
|---------|-----------|---------|-----------------------------------------------|
| IDLE    | START     | PROBING |                                               |
| PROBING | ANSWERED  | CHOSEN  | the first of its tier                          |
| PROBING | EXHAUSTED | NONE    | no route of any tier answers                   |
| any     | START     | PROBING | a network change, or another try               |
"""

from __future__ import annotations

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
    """Where the choice stands."""

    IDLE = "idle"
    PROBING = "probing"
    CHOSEN = "chosen"
    NONE = "none"


class SelectionTrigger(Enum):
    """What moves it."""

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
    """One route: its role (`lan`, `mesh`, `public`, …), its tier (0 is best) and the address to probe."""

    role: str
    priority: int
    url: str


@frozen
class Probe:
    """Ask this candidate whether it is there; say `answered` or `failed`."""

    candidate: Candidate


@frozen
class CancelProbe:
    """Stop asking a route whose answer does not matter any more."""

    candidate: Candidate


@frozen
class Chosen:
    """Use this route; None: there is none for now."""

    candidate: Candidate | None


SelectionAction: TypeAlias = Probe | CancelProbe | Chosen


class CandidateSelector:
    """The choice among the candidates of one pairing. Each call returns what to do next, in order."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._tiers: dict[int, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda each: each.priority):
            self._tiers.setdefault(candidate.priority, []).append(candidate)
        self._left: list[int] = []  # tiers still to try
        self._probing: dict[Candidate, float] = {}  # and when each probe is given up
        self._reachable: dict[Candidate, float] = {}  # until when
        self.state = SelectionState.IDLE
        self.chosen: Candidate | None = None

    def start(self, now: float) -> list[SelectionAction]:
        """Choose. What was found reachable less than 60 s ago is believed."""
        actions: list[SelectionAction] = [CancelProbe(candidate) for candidate in self._probing]
        self._probing.clear()
        self._step(SelectionTrigger.START)
        self.chosen = None
        self._left = list(self._tiers)
        return actions + self._next_tier(now)

    def network_changed(self, now: float) -> list[SelectionAction]:
        """Forget what was reachable and choose anew."""
        self._reachable.clear()
        return self.start(now)

    def answered(self, candidate: Candidate, now: float) -> list[SelectionAction]:
        """A probe succeeded."""
        if candidate not in self._probing:
            return []
        del self._probing[candidate]
        self._reachable[candidate] = now + REACHABLE_TTL
        return self._choose(candidate)

    def failed(self, candidate: Candidate, now: float) -> list[SelectionAction]:
        """A probe failed."""
        if self._probing.pop(candidate, None) is None or self._probing:
            return []
        return self._next_tier(now)

    def advance(self, now: float) -> list[SelectionAction]:
        """Give up the probes whose 4 s are over."""
        late = [candidate for candidate, deadline in self._probing.items() if deadline <= now]
        actions: list[SelectionAction] = []
        for candidate in late:
            actions.append(CancelProbe(candidate))
            actions += self.failed(candidate, now)
        return actions

    def next_deadline(self) -> float | None:
        """When `advance` is due (monotonic seconds)."""
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
