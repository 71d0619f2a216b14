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
from tests.fuzz.plant import Patch, Plant

__all__ = ["RELAY"]


def _who_comes_back_is_no_less_far_than_was_acknowledged(patch: Patch) -> None:
    resume = Cursor.from_resume

    def further(message: Mapping[str, object], acked: Cursor) -> Cursor:
        return resume(message, acked).up_to(acked)

    patch.setattr(Cursor, "from_resume", further)


def _what_was_acknowledged_last_counts(patch: Patch) -> None:
    patch.setattr(VoiceLife, "ack", lambda self, cursor: setattr(self, "acked", self._clamped(cursor)))


def _a_query_is_shown_as_it_was_sent(patch: Patch) -> None:
    begin = BridgeCommands.begin

    def open_(self: BridgeCommands, *args: Any, **more: Any) -> BridgeCommandRecord:
        record = begin(self, *args, **more)
        method, params = args[2], args[4]
        if method == "POST" and isinstance(record.params, dict):
            record.params = {**record.params, **{key: params[key] for key in params if key not in args[5]}}
        return record

    patch.setattr(BridgeCommands, "begin", open_)


def _wrong_passwords_count_for_the_proxy(patch: Patch) -> None:
    patch.setattr(Gate, "address", lambda self, request: request.peer.host)


def _anybody_may_say_whose_password_is_wrong(patch: Patch) -> None:
    def said(self: Gate, request: Request) -> str:
        hops = request.headers.tokens(b"x-forwarded-for")
        return hops[-1].decode() if hops else request.peer.host

    patch.setattr(Gate, "address", said)


def _a_list_that_is_reset_keeps_what_was_added(patch: Patch) -> None:
    patch.setattr(Blocklist, "reset", lambda self: self._packages.update(dict.fromkeys(DEFAULT_BLOCKLIST)))


def _a_verb_that_was_added_comes_last(patch: Patch) -> None:
    add = DestructiveVerbs.add

    def behind(self: DestructiveVerbs, verb: str) -> bool:
        before = dict(self._patterns)
        done = add(self, verb)
        self._patterns = {**before, **{key: each for key, each in self._patterns.items() if key not in before}}
        return done

    patch.setattr(DestructiveVerbs, "add", behind)


def _the_newest_code_makes_room(patch: Patch) -> None:
    register = PairingCodes.register

    def full(self: PairingCodes, code: str, now: Moment, meta: PairingMeta) -> None:
        if len(self) >= self._codes._cap:
            newest = [*self._codes.items()][-1][0]
            self._codes.discard(newest)
        register(self, code, now, meta)

    patch.setattr(PairingCodes, "register", full)


def _a_full_table_of_addresses_is_emptied(patch: Patch) -> None:
    failure = Limiter.failure

    def empty(self: Limiter, address: str, now: Moment) -> bool:
        if len(self._counting) >= self._counting._cap:
            self._counting.clear()
        return failure(self, address, now)

    patch.setattr(Limiter, "failure", empty)


def _a_session_too_many_takes_the_place_of_another(patch: Patch) -> None:
    def room(self: Sessions) -> None:
        while len(self._sessions) >= self.cap:
            oldest = self._sessions.values()[0]
            self._sessions.discard(oldest.token_hash)
            self._unfile(oldest)

    patch.setattr(Sessions, "_check_room", room)


def _a_command_too_many_is_told_of(patch: Patch) -> None:
    begin = BridgeCommands.begin

    def told(self: BridgeCommands, *args: Any, **more: Any) -> BridgeCommandRecord:
        if len(self._pending) >= self._cap and self._ring:
            self._ring.append(self._ring[-1])
        return begin(self, *args, **more)

    patch.setattr(BridgeCommands, "begin", told)


def _a_window_keeps_its_first_size(patch: Patch) -> None:
    patch.setattr(Child, "resize", lambda self, size: None)


def _half_a_character_is_not_shown_in_the_end(patch: Patch) -> None:
    take = OutputBuffer.take
    patch.setattr(OutputBuffer, "take", lambda self, final=False: take(self))


def _what_is_typed_nowhere_is_typed_in_the_last(patch: Patch) -> None:
    meant = Terminals._meant

    def last(self: Terminals, envelope: Any) -> Any:
        return meant(self, envelope) or next(reversed(self.held.values()), None)

    patch.setattr(Terminals, "_meant", last)


def _a_gateway_is_told_all_of_a_size(patch: Patch) -> None:
    def resize(self: tui.Tui, payload: Mapping[str, object]) -> None:
        gateway = self._gateway
        if gateway is not None:
            gateway.say({"jsonrpc": "2.0", "id": "resize-1", "method": "terminal.resize", "params": dict(payload)})

    patch.setattr(tui.Tui, "_resize", resize)


def _a_piece_of_sound_that_comes_again_counts_again(patch: Patch) -> None:
    append = AgentMode._append

    def twice(self: AgentMode, message: Mapping[str, object]) -> None:
        chunk = message.get("chunk_id")
        if isinstance(chunk, int) and chunk == self.last_chunk:
            self.last_chunk = chunk - 1
        append(self, message)

    patch.setattr(AgentMode, "_append", twice)


def _an_answer_is_for_whichever_question_there_is(patch: Patch) -> None:
    take = Confirmations.take

    def any_(self: Confirmations, question_id: str | None) -> Question | None:
        return take(self, None)

    patch.setattr(Confirmations, "take", any_)


def _who_has_enough_stops_nothing(patch: Patch) -> None:
    patch.setattr(ApiRuns, "stop", lambda self, call_id: self.leave(call_id))


def _a_conversation_knows_the_oldest_of_what_was_said(patch: Patch) -> None:
    def oldest(rows: list[object]) -> tuple[ContextMessage, ...]:
        return context_of(rows[:20])

    patch.setattr(service, "context_of", oldest)


def _a_405_allows_what_was_asked_for(patch: Patch) -> None:
    match = Router.match

    def lax(self: Router, method: str, path: str) -> Match:
        try:
            return match(self, method, path)
        except Refused as refused:
            refused.headers = tuple((name, value + b"," + method.encode()) for name, value in refused.headers)
            raise

    patch.setattr(Router, "match", lax)


def _guesses_of_monitors_count_for_pairing(patch: Patch) -> None:
    bind = Monitor.bind

    def one(self: Monitor, *args: Any) -> None:
        bind(self, *args)
        self._limiter = self._guesses

    patch.setattr(Monitor, "bind", one)


def _a_wrong_token_is_logged(patch: Patch) -> None:
    mention = Relay._mention

    def loud(self: Relay, refused: Refused, request: Request) -> None:
        mention(self, refused, request)
        if refused.status == 401:
            self.engine.log(
                Level.INFO, "refused", shown=(request.headers.get(b"authorization") or b"").decode("latin-1")
            )

    patch.setattr(Relay, "_mention", loud)


def _a_status_shows_what_lies_in_lists(patch: Patch) -> None:
    def shallow(payload: Mapping[str, Any]) -> dict[str, Any]:
        shown: Any = redact(payload)
        return {name: value if isinstance(value, list) else shown[name] for name, value in payload.items()}

    patch.setattr(phones, "_copy", shallow)


def _a_weak_tag_is_as_good_as_a_strong_one(patch: Patch) -> None:
    among = conditions._among
    patch.setattr(conditions, "_among", lambda tags, tag, weak: among(tags, tag, weak=True))


def _a_range_goes_before_all_conditions(patch: Patch) -> None:
    failed = conditions.failed_condition

    def unless_a_part(headers: Headers, *args: Any) -> int | None:
        return None if headers.get(b"range") is not None else failed(headers, *args)

    patch.setattr(media, "failed_condition", unless_a_part)


def _phones_without_a_name_are_one(patch: Patch) -> None:
    patch.setattr(phones, "_NO_ID", ())


def _the_first_of_several_is_meant(patch: Patch) -> None:
    only = session_routes._only
    patch.setattr(session_routes, "_only", lambda found: only(found[:1]))


def _a_phone_takes_no_time(patch: Patch) -> None:
    add = Histogram.add
    patch.setattr(Histogram, "add", lambda self, value: add(self, 0.0))


AS_TOLD = (Invariant.AS_TOLD,)
RELAY = (
    Plant(_who_comes_back_is_no_less_far_than_was_acknowledged, 12, AS_TOLD),
    Plant(_what_was_acknowledged_last_counts, 51, AS_TOLD),
    Plant(_a_query_is_shown_as_it_was_sent, 0, AS_TOLD),
    Plant(_wrong_passwords_count_for_the_proxy, 1, AS_TOLD),
    Plant(_anybody_may_say_whose_password_is_wrong, 13, AS_TOLD),
    Plant(_a_list_that_is_reset_keeps_what_was_added, 66, AS_TOLD),
    Plant(_a_verb_that_was_added_comes_last, 31, AS_TOLD),
    Plant(_the_newest_code_makes_room, 15, AS_TOLD),
    Plant(_a_full_table_of_addresses_is_emptied, 9, AS_TOLD),
    Plant(_a_session_too_many_takes_the_place_of_another, 9, AS_TOLD),
    Plant(_a_command_too_many_is_told_of, 15, AS_TOLD),
    Plant(_a_window_keeps_its_first_size, 2, AS_TOLD),
    Plant(_half_a_character_is_not_shown_in_the_end, 16, AS_TOLD),
    Plant(_what_is_typed_nowhere_is_typed_in_the_last, 2, AS_TOLD),
    Plant(_a_gateway_is_told_all_of_a_size, 7, AS_TOLD),
    Plant(_a_piece_of_sound_that_comes_again_counts_again, 3, AS_TOLD),
    Plant(_an_answer_is_for_whichever_question_there_is, 3, AS_TOLD),
    Plant(_who_has_enough_stops_nothing, 0, AS_TOLD),
    Plant(_a_conversation_knows_the_oldest_of_what_was_said, 0, AS_TOLD),
    Plant(_a_weak_tag_is_as_good_as_a_strong_one, 26, AS_TOLD),
    Plant(_a_range_goes_before_all_conditions, 9, AS_TOLD),
    Plant(_phones_without_a_name_are_one, 113, AS_TOLD),
    Plant(_the_first_of_several_is_meant, 9, AS_TOLD),
    Plant(_a_phone_takes_no_time, 0, AS_TOLD),
    Plant(_a_405_allows_what_was_asked_for, 1, AS_TOLD),
    Plant(_guesses_of_monitors_count_for_pairing, 14, AS_TOLD),
    Plant(_a_wrong_token_is_logged, 9, (Invariant.NO_SECRET,)),
    Plant(_a_status_shows_what_lies_in_lists, 9, (Invariant.NO_SECRET,)),
)
