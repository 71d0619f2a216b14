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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["EPISODES"]

EPISODES = Bed[Invariant]()


@EPISODES.around(18, Memory, "ask", Invariant.CONFIRMED)
def what_is_allowed_once_is_remembered(
    ask: Real[Flow[bool]], self: Memory, session_id: str, asked: ApprovalAsked, host: TurnHost
) -> Flow[bool]:
    allowed = yield from ask(self, session_id, asked, host)
    if allowed:
        self._remember(session_id, asked.pattern)
    return allowed


@EPISODES.around(27, Approvals, "_meant", Invariant.CONFIRMED)
def a_denial_is_for_the_newest_question(
    meant: Real[list[Approval]], self: Approvals, answer: Answer, now: float
) -> list[Approval]:
    found = meant(self, answer, now)
    return found if answer.call_id is not None or answer.everything else self._pending[-1:]


@EPISODES.instead(44, Keyed, "find", Invariant.ONE_ANSWER)
def a_run_that_failed_answers_its_key(self: Keyed) -> Run | None:
    return next((entry.run for entry in self._entries.values() if entry.fingerprint == self._mark), None)


@EPISODES.plant(12, Invariant.RECOVERY)
def who_only_listens_is_sent_away(patch: Patch) -> None:
    patch.setattr(HttpSession, "busy", property(lambda self: self.conversation.busy))
