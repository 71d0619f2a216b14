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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["LODGE"]

LODGE = Bed(Invariant.AS_TOLD)


@LODGE.plant(10)
def a_key_is_as_good_as_its_session(patch: Patch) -> None:
    good = DeviceKeys.is_good

    def lax(self: DeviceKeys, holder: str, now: Moment) -> bool:
        return self.sessions.keyed(holder) is not None or self.codes.have_key(holder, now)

    def strict(self: DeviceKeys, key: str, now: Moment) -> str | None:
        holder = sha256_hex(key)
        return holder if good(self, holder, now) else None

    patch.setattr(DeviceKeys, "is_good", lax)
    patch.setattr(DeviceKeys, "accepts", strict)


@LODGE.around(33, Api, "_end_holder")
def a_new_main_key_ends_every_stream(end: Real[None], self: Api, holder: str, why: str) -> None:
    for each in [*dict.fromkeys(self.engine.held.values())] if holder == MAIN else [holder]:
        end(self, each, why)


@LODGE.around(10, Run, "withdraw")
def a_run_outlives_its_key(withdraw: Real[None], self: Run, refused: Refused) -> None:
    if self.holder == MAIN:
        withdraw(self, refused)


@LODGE.around(86, DeviceKeys, "is_good")
def a_key_is_good_for_two_minutes_more(good: Real[bool], self: DeviceKeys, holder: str, now: Moment) -> bool:
    before = Moment(mono=now.mono - 120.0, wall=now.wall - 120.0)
    return good(self, holder, now) or (self.sessions.keyed(holder) is not None and good(self, holder, before))


@LODGE.plant(5)
def who_goes_does_not_say_when_to_come_again(patch: Patch) -> None:
    patch.setattr(service, "draining", lambda: Refused(503, "gateway_draining", "gateway_draining: try again"))


@LODGE.around(29, turn, "_perform")
def a_turn_that_waits_is_stored_at_once(perform: Real[Any], api: Api, run: Run, order: Any) -> Any:
    if run.record.state.value == "queued":
        yield from turn._open(api, order, turn._incoming(api, order))
    return (yield from perform(api, run, order))


@LODGE.instead(137, ToolChoice, "wants_few")
def a_small_context_is_one_of_eight_thousand(self: ToolChoice, context: int | None) -> bool:
    return self.few if self.few is not None else context is not None and context < 8_192


@LODGE.around(38, ToolOffer, "take")
def a_group_of_tools_is_brought_again_and_again(take: Real[None], self: ToolOffer, calls: Iterable[ToolCall]) -> None:
    groups = dict(self._groups)
    take(self, calls)
    self._groups = groups


@LODGE.around(4, ToolChoice, "wants")
def a_toolset_that_nobody_wants_is_offered(wants: Real[bool], self: ToolChoice, toolset: str) -> bool:
    return toolset == "memory" or wants(self, toolset)


@LODGE.around(4, completions._Completions, "_order")
def a_client_may_ask_for_more_than_the_operator_gives(
    order: Real[Any], self: Any, body: Any, talk: Any, options: Any, scope: Any
) -> Any:
    made = yield from order(self, body, talk, options, scope)
    object.__setattr__(made, "max_tokens", options.max_tokens or made.max_tokens)
    return made


LODGE.put(5, "who_goes_begins_turns_that_were_half_asked_for", Api, "refuse_while_stopping", lambda self: None)
