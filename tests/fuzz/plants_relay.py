"""Bugs to plant on the relay's side: voices, what is hidden, tables that are full, programs behind channels, lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzz.invariants import Invariant
from svc_proto.about.monitor import Monitor
from svc_proto.basics.counts import Histogram
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import Level
from svc_proto.dashboard.access import Gate
from svc_proto.device.safety.blocklist import DEFAULT_BLOCKLIST, Blocklist
from svc_proto.device.safety.verbs import DestructiveVerbs
from svc_proto.engine.child import Child
from svc_proto.engine.message import Request
from svc_proto.engine.router import Match, Router
from svc_proto.machines import phones
from svc_proto.machines.bridge import BridgeCommandRecord, BridgeCommands
from svc_proto.machines.confirmations import Confirmations, Question
from svc_proto.machines.limiter import Limiter
from svc_proto.machines.pairing import PairingCodes, PairingMeta
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.machines.terminal import OutputBuffer
from svc_proto.machines.voice_session import Cursor, VoiceLife
from svc_proto.relay import media, tui
from svc_proto.relay.routes import sessions as session_routes
from svc_proto.relay.service import Relay
from svc_proto.relay.terminals import Terminals
from svc_proto.schema.redact import redact
from svc_proto.voice.agent import service
from svc_proto.voice.agent.instructions import ContextMessage, context_of
from svc_proto.voice.agent.runs import ApiRuns
from svc_proto.voice.agent.session import AgentMode
from svc_proto.wire import conditions
from svc_proto.wire.events import Headers
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["RELAY"]

RELAY = Bed(Invariant.AS_TOLD)


@RELAY.around(12, Cursor, "from_resume")
def who_comes_back_is_no_less_far_than_was_acknowledged(
    resume: Real[Cursor], message: Mapping[str, object], acked: Cursor
) -> Cursor:
    return resume(message, acked).up_to(acked)


@RELAY.plant(51)
def what_was_acknowledged_last_counts(patch: Patch) -> None:
    patch.setattr(VoiceLife, "ack", lambda self, cursor: setattr(self, "acked", self._clamped(cursor)))


@RELAY.around(0, BridgeCommands, "begin")
def a_query_is_shown_as_it_was_sent(
    begin: Real[BridgeCommandRecord], self: BridgeCommands, *args: Any, **more: Any
) -> BridgeCommandRecord:
    record = begin(self, *args, **more)
    method, params = args[2], args[4]
    if method == "POST" and isinstance(record.params, dict):
        record.params = {**record.params, **{key: params[key] for key in params if key not in args[5]}}
    return record


@RELAY.instead(13, Gate, "address")
def anybody_may_say_whose_password_is_wrong(self: Gate, request: Request) -> str:
    hops = request.headers.tokens(b"x-forwarded-for")
    return hops[-1].decode() if hops else request.peer.host


@RELAY.plant(66)
def a_list_that_is_reset_keeps_what_was_added(patch: Patch) -> None:
    patch.setattr(Blocklist, "reset", lambda self: self._packages.update(dict.fromkeys(DEFAULT_BLOCKLIST)))


@RELAY.around(31, DestructiveVerbs, "add")
def a_verb_that_was_added_comes_last(add: Real[bool], self: DestructiveVerbs, verb: str) -> bool:
    before = dict(self._patterns)
    done = add(self, verb)
    self._patterns = {**before, **{key: each for key, each in self._patterns.items() if key not in before}}
    return done


@RELAY.around(15, PairingCodes, "register")
def the_newest_code_makes_room(
    register: Real[None], self: PairingCodes, code: str, now: Moment, meta: PairingMeta
) -> None:
    if len(self) >= self._codes._cap:
        newest = [*self._codes.items()][-1][0]
        self._codes.discard(newest)
    register(self, code, now, meta)


@RELAY.around(9, Limiter, "failure")
def a_full_table_of_addresses_is_emptied(failure: Real[bool], self: Limiter, address: str, now: Moment) -> bool:
    if len(self._counting) >= self._counting._cap:
        self._counting.clear()
    return failure(self, address, now)


@RELAY.instead(9, Sessions, "_check_room")
def a_session_too_many_takes_the_place_of_another(self: Sessions) -> None:
    while len(self._sessions) >= self.cap:
        oldest = self._sessions.values()[0]
        self._sessions.discard(oldest.token_hash)
        self._unfile(oldest)


@RELAY.around(15, BridgeCommands, "begin")
def a_command_too_many_is_told_of(
    begin: Real[BridgeCommandRecord], self: BridgeCommands, *args: Any, **more: Any
) -> BridgeCommandRecord:
    if len(self._pending) >= self._cap and self._ring:
        self._ring.append(self._ring[-1])
    return begin(self, *args, **more)


@RELAY.around(16, OutputBuffer, "take")
def half_a_character_is_not_shown_in_the_end(take: Real[bytes], self: OutputBuffer, *, final: bool = False) -> bytes:
    return take(self)


@RELAY.around(2, Terminals, "_meant")
def what_is_typed_nowhere_is_typed_in_the_last(meant: Real[Any], self: Terminals, envelope: Any) -> Any:
    return meant(self, envelope) or next(reversed(self.held.values()), None)


@RELAY.instead(7, tui.Tui, "_resize")
def a_gateway_is_told_all_of_a_size(self: tui.Tui, payload: Mapping[str, object]) -> None:
    gateway = self._gateway
    if gateway is not None:
        gateway.say({"jsonrpc": "2.0", "id": "resize-1", "method": "terminal.resize", "params": dict(payload)})


@RELAY.around(3, AgentMode, "_append")
def a_piece_of_sound_that_comes_again_counts_again(
    append: Real[None], self: AgentMode, message: Mapping[str, object]
) -> None:
    chunk = message.get("chunk_id")
    if isinstance(chunk, int) and chunk == self.last_chunk:
        self.last_chunk = chunk - 1
    append(self, message)


@RELAY.around(3, Confirmations, "take")
def an_answer_is_for_whichever_question_there_is(
    take: Real[Question | None], self: Confirmations, question_id: str | None
) -> Question | None:
    return take(self, None)


@RELAY.instead(0, service, "context_of")
def a_conversation_knows_the_oldest_of_what_was_said(rows: list[object]) -> tuple[ContextMessage, ...]:
    return context_of(rows[:20])


@RELAY.around(1, Router, "match")
def a_405_allows_what_was_asked_for(match: Real[Match], self: Router, method: str, path: str) -> Match:
    try:
        return match(self, method, path)
    except Refused as refused:
        refused.headers = tuple((name, value + b"," + method.encode()) for name, value in refused.headers)
        raise


@RELAY.around(14, Monitor, "bind")
def guesses_of_monitors_count_for_pairing(bind: Real[None], self: Monitor, *args: Any) -> None:
    bind(self, *args)
    self._limiter = self._guesses


@RELAY.around(9, Relay, "_mention", Invariant.NO_SECRET)
def a_wrong_token_is_logged(mention: Real[None], self: Relay, refused: Refused, request: Request) -> None:
    mention(self, refused, request)
    if refused.status == 401:
        self.engine.log(Level.INFO, "refused", shown=(request.headers.get(b"authorization") or b"").decode("latin-1"))


@RELAY.instead(9, phones, "_copy", Invariant.NO_SECRET)
def a_status_shows_what_lies_in_lists(payload: Mapping[str, Any]) -> dict[str, Any]:
    shown: Any = redact(payload)
    return {name: value if isinstance(value, list) else shown[name] for name, value in payload.items()}


@RELAY.around(26, conditions, "_among")
def a_weak_tag_is_as_good_as_a_strong_one(among: Real[bool], *tags: Any, weak: bool) -> bool:
    return among(*tags, weak=True)


@RELAY.around(9, media, "failed_condition")
def a_range_goes_before_all_conditions(failed: Real[int | None], headers: Headers, *args: Any) -> int | None:
    return None if headers.get(b"range") is not None else failed(headers, *args)


@RELAY.around(9, session_routes, "_only")
def the_first_of_several_is_meant(only: Real[Session], found: list[Session]) -> Session:
    return only(found[:1])


@RELAY.around(0, Histogram, "add")
def a_phone_takes_no_time(add: Real[None], self: Histogram, value: float) -> None:
    add(self, 0.0)


RELAY.put(1, "wrong_passwords_count_for_the_proxy", Gate, "address", lambda self, request: request.peer.host)
RELAY.put(2, "a_window_keeps_its_first_size", Child, "resize", lambda self, size: None)
RELAY.put(0, "who_has_enough_stops_nothing", ApiRuns, "stop", lambda self, call_id: self.leave(call_id))
RELAY.put(113, "phones_without_a_name_are_one", phones, "_NO_ID", ())
