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
from tests.fuzz.plant import Patch, Plant

__all__ = ["ERRANDS"]


def _what_was_put_away_stays_so(patch: Patch) -> None:
    changes = sessions._changes

    def for_ever(body: dict[str, object], now: float) -> dict[str, object]:
        found = changes(body, now)
        return found | {"archived": True} if "archived" in found else found

    patch.setattr(sessions, "_changes", for_ever)


def _a_key_answers_whatever_is_asked(patch: Patch) -> None:
    def find(self: Keyed) -> Run | None:
        return next((entry.run for entry in reversed(self._entries.values())), None) if self.name else None

    patch.setattr(Keyed, "find", find)


def _a_denial_of_all_is_for_one(patch: Patch) -> None:
    meant = Approvals._meant

    def first(self: Approvals, answer: Answer, now: float) -> list[Approval]:
        return meant(self, answer, now)[:1]

    patch.setattr(Approvals, "_meant", first)


def _a_code_keeps_what_was_said_first(patch: Patch) -> None:
    register = PairingCodes.register

    def keep(self: PairingCodes, code: str, now: Moment, meta: PairingMeta) -> None:
        known = self._codes.peek(normalise(code))
        register(self, code, now, meta if known is None else known.meta)

    patch.setattr(PairingCodes, "register", keep)


def _what_a_shell_says_last_is_lost(patch: Patch) -> None:
    close = Terminal._close

    def cut(self: Terminal, trigger: TerminalTrigger, **more: Any) -> None:
        if trigger is TerminalTrigger.EXIT:
            self._buffer.take(final=True)
        close(self, trigger, **more)

    patch.setattr(Terminal, "_close", cut)


def _one_run_too_many(patch: Patch) -> None:
    may_start = ChatRuns._may_start

    def squeezed(self: ChatRuns, run: ChatRun) -> bool:
        self.cap += 1
        try:
            return may_start(self, run)
        finally:
            self.cap -= 1

    patch.setattr(ChatRuns, "_may_start", squeezed)


def _the_newest_phone_is_the_active_one(patch: Patch) -> None:
    register = Phones.register

    def first(self: Phones, socket: int, **more: Any) -> int | None:
        replaced = register(self, socket, **more)
        self._active = self._device_ids[socket]
        return replaced

    patch.setattr(Phones, "register", first)


def _the_first_of_several_notes_is_meant(patch: Patch) -> None:
    find = memory._find

    def first(entries: tuple[str, ...], old_text: str) -> Any:
        return next((entry for entry in entries if old_text.strip() in entry), find(entries, old_text))

    patch.setattr(memory, "_find", first)


ERRANDS = (
    Plant(_what_was_put_away_stays_so, 20, (Invariant.AS_TOLD,), quick=True),
    Plant(_a_key_answers_whatever_is_asked, 1, (Invariant.ONE_ANSWER, Invariant.OWN_BYTES)),
    Plant(_a_denial_of_all_is_for_one, 18, (Invariant.CONFIRMED,)),
    Plant(_a_code_keeps_what_was_said_first, 0, (Invariant.LIFETIME,)),
    Plant(_what_a_shell_says_last_is_lost, 3, (Invariant.ONE_END,)),
    Plant(_one_run_too_many, 15, (Invariant.BOOKS,)),
    Plant(_the_newest_phone_is_the_active_one, 11, (Invariant.REACHED,)),
    Plant(_the_first_of_several_notes_is_meant, 26, (Invariant.AS_TOLD,)),
)
