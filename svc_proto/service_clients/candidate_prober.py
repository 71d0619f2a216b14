"""Prober of a relay's candidates, in strict tiers, that selects the best (spec "Multi-route pairing").

`CandidateSelector` decides which candidates to probe, the timeouts and the selection; this module sends the probes. A
probe is `GET /health` of the relay behind a candidate (wire core 3.3). For a relay whose address was derived from the
API's, it is `/voice/config`; there a status of 401 or 403 is a good answer as well.
"""

from collections.abc import Sequence
from math import inf
from typing import assert_never

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.candidate_selection import (
    PROBE_TIMEOUT,
    CancelProbe,
    Candidate,
    CandidateSelector,
    Chosen,
    Probe,
    SelectionAction,
)
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_url import DERIVED_PROBE, RelayUrl
from svc_proto.wire.urls import has_scheme

__all__ = ["CandidateProber", "is_usable", "parse_candidate"]

MAX_ROLE_CHARS = 64  # characters; any role is permitted


class CandidateProber:
    """Prober of one relay's candidates. One that answered well is not probed for a minute, unless `anew` is set."""

    def __init__(self, engine: Engine, candidates: Sequence[Candidate], *, probe: str = "/health") -> None:
        self._engine = engine
        self._target = probe
        self._asks_who = (401, 403) if probe == DERIVED_PROBE else ()  # a refusal shows that the route exists
        self._choice = CandidateSelector(candidates)
        self._probes: dict[Candidate, Task] = {}
        self._timer = engine.timers.timer(self._late)
        self._bell = Condition(engine)
        self._over = False
        self.problems: dict[Candidate, str] = {}  # reason for each rejected candidate

    def select(self, *, anew: bool = False) -> Flow[Candidate | None]:
        """Return the first candidate to pass its probe, in the first tier in which any does; None if none does.

        A candidate of a tier that passed within the last minute is chosen without a probe of the tier. `anew` discards
        earlier results.
        """
        now = self._engine.now.mono
        self._over = False
        self.problems.clear()
        try:
            self._act(self._choice.network_changed(now) if anew else self._choice.start(now))
            while not self._over:
                yield from self._bell.wait(inf)
        finally:
            self._timer.cancel()
            probes, self._probes = self._probes, {}
            for task in probes.values():
                task.cancel()
        return self._choice.chosen

    def _act(self, actions: Sequence[SelectionAction]) -> None:
        for action in actions:
            match action:
                case Probe(candidate=candidate):
                    self._probe(candidate)
                case CancelProbe(candidate=candidate):
                    self.problems[candidate] = "no answer in time"
                    if candidate in self._probes:  # not of a cancelled selection
                        self._probes.pop(candidate).cancel()
                case Chosen():
                    self._over = True
                    self._bell.notify_all()
                case _ as never:
                    assert_never(never)
        due = self._choice.next_deadline()
        if due is not None:
            self._timer.set(due)

    def _probe(self, candidate: Candidate) -> None:
        def on_response(answer: HttpResult | Failure) -> None:
            self._probes.pop(candidate, None)
            now = self._engine.now.mono
            if isinstance(answer, Failure):
                self.problems[candidate] = answer.detail or answer.kind.value
            elif 200 <= answer.status < 300 or answer.status in self._asks_who:
                self._act(self._choice.answered(candidate, now))
                return
            else:
                self.problems[candidate] = f"status {answer.status}"
            self._act(self._choice.failed(candidate, now))

        task = self._engine.spawn(self._probe_url(candidate), on_done=on_response)
        if not task.done:
            self._probes[candidate] = task

    def _probe_url(self, candidate: Candidate) -> Flow[HttpResult | Failure]:
        try:
            url = f"{RelayUrl(candidate.url).http_url}{self._target}"
        except RemoteProtocolError as error:
            return Failure(FailureKind.INVALID, str(error))
        # The selector cancels a probe after 4 s; this timeout only bounds every wait.
        return (yield from fetch(self._engine, "GET", url, within=2 * PROBE_TIMEOUT))

    def _late(self) -> None:
        self._act(self._choice.advance(self._engine.now.mono))


def parse_candidate(value: object) -> Candidate | None:
    """Parse one of an invite's candidates (wire core 3.3); None for an unusable one."""
    members = JsonObject.of(value)
    role, url = members.text("role"), members.get_object("relay").text("url")
    priority = members.integer("priority") if "priority" in members else 0
    if priority is None or not 0 < len(role) <= MAX_ROLE_CHARS:
        return None
    return Candidate(role, priority, url) if is_usable(url) else None


def is_usable(url: str) -> bool:
    """Report whether a URL can be the address of a relay: a valid one with the scheme ws or wss."""
    return has_scheme(url, "ws", "wss")
