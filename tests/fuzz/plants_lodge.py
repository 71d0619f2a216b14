"""Bugs to plant in keys of a pairing's own, in an API that is told to go, and in what models are told of tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuzz.invariants import Invariant
from svc_proto.agent.contract import ToolCall
from svc_proto.agent.offer import ToolChoice, ToolOffer
from svc_proto.api import service, turn
from svc_proto.api.access import MAIN
from svc_proto.api.routes import completions
from svc_proto.api.run import Run
from svc_proto.api.service import Api
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.machines.device_keys import DeviceKeys
from tests.fuzz.plant import Patch, Plant

__all__ = ["LODGE"]


def _a_key_is_as_good_as_its_session(patch: Patch) -> None:
    good = DeviceKeys.is_good

    def lax(self: DeviceKeys, holder: str, now: Moment) -> bool:
        return self.sessions.keyed(holder) is not None or self.codes.have_key(holder, now)

    def strict(self: DeviceKeys, key: str, now: Moment) -> str | None:
        holder = sha256_hex(key)
        return holder if good(self, holder, now) else None

    patch.setattr(DeviceKeys, "is_good", lax)
    patch.setattr(DeviceKeys, "accepts", strict)


def _a_new_main_key_ends_every_stream(patch: Patch) -> None:
    end = Api._end_holder

    def all_of_them(self: Api, holder: str, why: str) -> None:
        for each in [*dict.fromkeys(self.engine.held.values())] if holder == MAIN else [holder]:
            end(self, each, why)

    patch.setattr(Api, "_end_holder", all_of_them)


def _a_run_outlives_its_key(patch: Patch) -> None:
    withdraw = Run.withdraw

    def stay(self: Run, refused: Refused) -> None:
        if self.holder == MAIN:
            withdraw(self, refused)

    patch.setattr(Run, "withdraw", stay)


def _a_key_is_good_for_two_minutes_more(patch: Patch) -> None:
    good = DeviceKeys.is_good

    def lax(self: DeviceKeys, holder: str, now: Moment) -> bool:
        before = Moment(mono=now.mono - 120.0, wall=now.wall - 120.0)
        return good(self, holder, now) or (self.sessions.keyed(holder) is not None and good(self, holder, before))

    patch.setattr(DeviceKeys, "is_good", lax)


def _who_goes_begins_turns_that_were_half_asked_for(patch: Patch) -> None:
    patch.setattr(Api, "refuse_while_stopping", lambda self: None)


def _who_goes_does_not_say_when_to_come_again(patch: Patch) -> None:
    patch.setattr(service, "draining", lambda: Refused(503, "gateway_draining", "gateway_draining: try again"))


def _a_turn_that_waits_is_stored_at_once(patch: Patch) -> None:
    perform = turn._perform

    def early(api: Api, run: Run, order: Any) -> Any:
        if run.record.state.value == "queued":
            yield from turn._open(api, order, turn._incoming(api, order))
        return (yield from perform(api, run, order))

    patch.setattr(turn, "_perform", early)


def _a_small_context_is_one_of_eight_thousand(patch: Patch) -> None:
    def wants_few(self: ToolChoice, context: int | None) -> bool:
        return self.few if self.few is not None else context is not None and context < 8_192

    patch.setattr(ToolChoice, "wants_few", wants_few)


def _a_group_of_tools_is_brought_again_and_again(patch: Patch) -> None:
    take = ToolOffer.take

    def lax(self: ToolOffer, calls: Iterable[ToolCall]) -> None:
        groups = dict(self._groups)
        take(self, calls)
        self._groups = groups

    patch.setattr(ToolOffer, "take", lax)


def _a_toolset_that_nobody_wants_is_offered(patch: Patch) -> None:
    wants = ToolChoice.wants
    patch.setattr(ToolChoice, "wants", lambda self, toolset: toolset == "memory" or wants(self, toolset))


def _a_client_may_ask_for_more_than_the_operator_gives(patch: Patch) -> None:
    order = completions._Completions._order

    def lax(self: Any, body: Any, talk: Any, options: Any, scope: Any) -> Any:
        made = yield from order(self, body, talk, options, scope)
        object.__setattr__(made, "max_tokens", options.max_tokens or made.max_tokens)
        return made

    patch.setattr(completions._Completions, "_order", lax)


TOLD = (Invariant.AS_TOLD,)
LODGE = (
    Plant(_a_key_is_as_good_as_its_session, 10, TOLD),
    Plant(_a_new_main_key_ends_every_stream, 33, TOLD),
    Plant(_a_run_outlives_its_key, 10, TOLD),
    Plant(_a_key_is_good_for_two_minutes_more, 86, TOLD),
    Plant(_who_goes_begins_turns_that_were_half_asked_for, 5, TOLD),
    Plant(_who_goes_does_not_say_when_to_come_again, 5, TOLD),
    Plant(_a_turn_that_waits_is_stored_at_once, 29, TOLD),
    Plant(_a_small_context_is_one_of_eight_thousand, 137, TOLD),
    Plant(_a_group_of_tools_is_brought_again_and_again, 38, TOLD),
    Plant(_a_toolset_that_nobody_wants_is_offered, 4, TOLD),
    Plant(_a_client_may_ask_for_more_than_the_operator_gives, 4, TOLD),
)
