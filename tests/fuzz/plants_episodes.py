"""Bugs to plant that only an episode shows: questions about notes, keys asked again, agents that speak MCP."""

from __future__ import annotations

from fuzz.invariants import Invariant
from svc_proto.agent.approvals import ApprovalMemory as Memory
from svc_proto.agent.contract import ApprovalAsked, TurnHost
from svc_proto.api.idempotency import Keyed
from svc_proto.api.run import Run
from svc_proto.engine.flow import Flow
from svc_proto.machines.approvals import Answer, Approval, Approvals
from svc_proto.mcp.http_sessions import HttpSession
from tests.fuzz.plant import Patch, Plant

__all__ = ["EPISODES"]


def _what_is_allowed_once_is_remembered(patch: Patch) -> None:
    ask = Memory.ask

    def remember(self: Memory, session_id: str, asked: ApprovalAsked, host: TurnHost) -> Flow[bool]:
        allowed = yield from ask(self, session_id, asked, host)
        if allowed:
            self._remember(session_id, asked.pattern)
        return allowed

    patch.setattr(Memory, "ask", remember)


def _a_denial_is_for_the_newest_question(patch: Patch) -> None:
    meant = Approvals._meant

    def newest(self: Approvals, answer: Answer, now: float) -> list[Approval]:
        found = meant(self, answer, now)
        return found if answer.call_id is not None or answer.everything else self._pending[-1:]

    patch.setattr(Approvals, "_meant", newest)


def _a_run_that_failed_answers_its_key(patch: Patch) -> None:
    def find(self: Keyed) -> Run | None:
        return next((entry.run for entry in self._entries.values() if entry.fingerprint == self._mark), None)

    patch.setattr(Keyed, "find", find)


def _who_only_listens_is_sent_away(patch: Patch) -> None:
    patch.setattr(HttpSession, "busy", property(lambda self: self.conversation.busy))


EPISODES = (
    Plant(_what_is_allowed_once_is_remembered, 18, (Invariant.CONFIRMED,)),
    Plant(_a_denial_is_for_the_newest_question, 27, (Invariant.CONFIRMED,)),
    Plant(_a_run_that_failed_answers_its_key, 44, (Invariant.ONE_ANSWER,)),
    Plant(_who_only_listens_is_sent_away, 12, (Invariant.RECOVERY,)),
)
