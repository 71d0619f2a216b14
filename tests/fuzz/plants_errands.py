"""Bugs to plant that somebody on an errand notices; and ends, limits and answers that are for all."""

from __future__ import annotations

from typing import Any

from fuzz.invariants import Invariant
from svc_proto.agent import memory
from svc_proto.api.idempotency import Keyed
from svc_proto.api.routes import sessions
from svc_proto.api.run import Run
from svc_proto.basics.moment import Moment
from svc_proto.machines.approvals import Answer, Approval, Approvals
from svc_proto.machines.chatrun import ChatRun, ChatRuns
from svc_proto.machines.pairing import PairingCodes, PairingMeta, normalise
from svc_proto.machines.phones import Phones
from svc_proto.machines.terminal import TerminalTrigger
from svc_proto.relay.terminals import Terminal
from tests.fuzz.plant import Bed, Real

__all__ = ["ERRANDS"]

ERRANDS = Bed[Invariant]()


@ERRANDS.around(20, sessions, "_changes", Invariant.AS_TOLD, quick=True)
def what_was_put_away_stays_so(
    changes: Real[dict[str, object]], body: dict[str, object], now: float
) -> dict[str, object]:
    found = changes(body, now)
    return found | {"archived": True} if "archived" in found else found


@ERRANDS.instead(1, Keyed, "find", Invariant.ONE_ANSWER, Invariant.OWN_BYTES)
def a_key_answers_whatever_is_asked(self: Keyed) -> Run | None:
    return next((entry.run for entry in reversed(self._entries.values())), None) if self.name else None


@ERRANDS.around(18, Approvals, "_meant", Invariant.CONFIRMED)
def a_denial_of_all_is_for_one(
    meant: Real[list[Approval]], self: Approvals, answer: Answer, now: float
) -> list[Approval]:
    return meant(self, answer, now)[:1]


@ERRANDS.around(0, PairingCodes, "register", Invariant.LIFETIME)
def a_code_keeps_what_was_said_first(
    register: Real[None], self: PairingCodes, code: str, now: Moment, meta: PairingMeta
) -> None:
    known = self._codes.peek(normalise(code))
    register(self, code, now, meta if known is None else known.meta)


@ERRANDS.around(3, Terminal, "_close", Invariant.ONE_END)
def what_a_shell_says_last_is_lost(close: Real[None], self: Terminal, trigger: TerminalTrigger, **more: Any) -> None:
    if trigger is TerminalTrigger.EXIT:
        self._buffer.take(final=True)
    close(self, trigger, **more)


@ERRANDS.around(15, ChatRuns, "_may_start", Invariant.BOOKS)
def one_run_too_many(may_start: Real[bool], self: ChatRuns, run: ChatRun) -> bool:
    self.cap += 1
    try:
        return may_start(self, run)
    finally:
        self.cap -= 1


@ERRANDS.around(11, Phones, "register", Invariant.REACHED)
def the_newest_phone_is_the_active_one(
    register: Real[int | None], self: Phones, socket: int, **more: Any
) -> int | None:
    replaced = register(self, socket, **more)
    self._active = self._device_ids[socket]
    return replaced


@ERRANDS.around(26, memory, "_find", Invariant.AS_TOLD)
def the_first_of_several_notes_is_meant(find: Real[Any], entries: tuple[str, ...], old_text: str) -> Any:
    return next((entry for entry in entries if old_text.strip() in entry), find(entries, old_text))
