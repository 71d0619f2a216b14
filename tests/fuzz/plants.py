"""Bugs to plant in the product, one at a time: each takes a rule away that some line of the specification asks for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fuzz.invariants import Invariant
from runtimes.sim.process import Process
from svc_proto.api import subscriber, turn
from svc_proto.api.projections.session import SessionProjection
from svc_proto.api.rows import Message
from svc_proto.api.store import AddMessages
from svc_proto.api.subscriber import Subscriber
from svc_proto.basics import strict_json
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.basics.moment import Moment
from svc_proto.commands import Level, Query, ReleaseFile
from svc_proto.engine.callers import Proxies
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http2_channel import Http2Channel
from svc_proto.facts import Done
from svc_proto.machines import bridge, grants, limiter, pairing, sessions
from svc_proto.machines.bridge import BridgeCommands, Outcome
from svc_proto.machines.limiter import Limiter
from svc_proto.machines.media import MediaEntry, MediaRegistry
from svc_proto.machines.pairing import PairingCodes, PairingMeta
from svc_proto.machines.phones import Phone
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.relay import service
from svc_proto.relay.access import Access
from svc_proto.relay.client_socket import ClientSocket
from svc_proto.relay.commons import PhoneLine
from svc_proto.relay.service import Relay
from svc_proto.relay.terminals import Terminal
from svc_proto.relay.tui import Tui
from svc_proto.schema import chat_events
from svc_proto.voice.agent.runs import ApiRuns
from svc_proto.voice.agent.session import AgentMode
from svc_proto.voice.family import Family
from svc_proto.voice.realtime import run
from svc_proto.voice.realtime.orders import Emit
from svc_proto.voice.session import VoiceSession
from svc_proto.voice.socket import VoiceSocket
from svc_proto.wire.events import Event, ResponseData, StreamReset
from svc_proto.wire.http2 import Http2Connection
from tests.fuzz.plant import Bed, Patch, Real
from tests.fuzz.plants_answers import ANSWERS
from tests.fuzz.plants_asked import ASKED
from tests.fuzz.plants_audits import AUDITS
from tests.fuzz.plants_books import BOOKS
from tests.fuzz.plants_doors import DOORS
from tests.fuzz.plants_episodes import EPISODES
from tests.fuzz.plants_errands import ERRANDS
from tests.fuzz.plants_kept import KEPT
from tests.fuzz.plants_lives import LIVES
from tests.fuzz.plants_lodge import LODGE
from tests.fuzz.plants_manners import MANNERS
from tests.fuzz.plants_mcp import MCP
from tests.fuzz.plants_promises import PROMISES
from tests.fuzz.plants_relay import RELAY
from tests.fuzz.plants_rooms import ROOMS
from tests.fuzz.plants_servers import SERVERS
from tests.fuzz.plants_turns import TURNS

__all__ = ["PLANTS"]

CORE = Bed[Invariant]()


# --- sessions and grants ------------------------------------------------------------------------------------------


@CORE.instead(0, sessions, "build_grants", Invariant.GRANT_CLAMPED, quick=True)
def a_grant_is_not_clamped(
    now: float, expires_at: float | None, preset: Mapping[str, float] | None
) -> dict[str, float | None]:
    return {
        **grants.default_grants(now, expires_at),
        **{channel: grants.expiry_after(now, span) for channel, span in (preset or {}).items()},
    }


@CORE.plant(1, Invariant.DEAD_TOKEN, Invariant.LIVE_GRANT, quick=True)
def a_dead_token_is_accepted(patch: Patch) -> None:
    kept: dict[str, Session] = {}
    file = Sessions._file

    def remember(self: Sessions, session: Session) -> None:
        kept[session.token_hash] = session
        file(self, session)

    patch.setattr(Sessions, "_file", remember)
    patch.setattr(Sessions, "shown", lambda self, token_hash, now: kept.get(token_hash))


@CORE.plant(0, Invariant.AFTER_END)
def the_socket_of_a_revoked_session_stays(patch: Patch) -> None:
    patch.setattr(Relay, "end_session", lambda self, session, reason: None)


@CORE.instead(4, Relay, "save", Invariant.LIVE_TOKEN, Invariant.VOICE_GRANT, quick=True)
def a_session_is_not_stored(self: Relay, session: Session, *, again: bool = False) -> Flow[None]:
    self.watch_sessions()
    yield from sleep(self.engine, 0.001)


@CORE.around(32, service, "authorize", Invariant.LIVE_GRANT, quick=True)
def the_callers_grant_is_not_asked_for(authorize: Real[object], wanted: Access, *rest: Any) -> object:
    return authorize(Access.BEARER if wanted is Access.BRIDGE else wanted, *rest)


@CORE.instead(51, Relay, "phone_for", Invariant.LIVE_GRANT)
def the_phones_grant_is_not_asked_for(self: Relay, selector: str | None) -> tuple[Phone, PhoneLine]:
    phone = self.phones.choose(selector)
    return phone, self.clients[phone.socket].socket


# --- codes and guesses --------------------------------------------------------------------------------------------


@CORE.instead(0, PairingCodes, "consume", Invariant.CODE_ONCE, quick=True)
def a_code_works_twice(self: PairingCodes, code: str, now: Moment) -> PairingMeta | None:
    entry = self._codes.get(code, now.mono)
    return None if entry is None else entry.meta


# --- Device Control -----------------------------------------------------------------------------------------------


@CORE.around(1, BridgeCommands, "answer", Invariant.OWN_ANSWER, quick=True)
def replies_are_mixed_up(
    answer: Real[Outcome | None],
    self: BridgeCommands,
    request_id: object,
    socket: int,
    payload: Mapping[str, object],
    now: Moment,
    size: int,
) -> Outcome | None:
    return answer(self, next(iter(self._pending), request_id), socket, payload, now, size)


@CORE.around(1, BridgeCommands, "answer", Invariant.OWN_ANSWER)
def anybody_may_answer(
    answer: Real[Outcome | None],
    self: BridgeCommands,
    request_id: object,
    socket: int,
    payload: Mapping[str, object],
    now: Moment,
    size: int,
) -> Outcome | None:
    command = self._pending.get(str(request_id))
    return answer(self, request_id, socket if command is None else command.socket, payload, now, size)


@CORE.instead(
    1, BridgeCommands, "_settle", Invariant.ONE_ANSWER, Invariant.RECOVERY, Invariant.NO_BUG, Invariant.REPORTED
)
def a_settled_command_is_settled_again(self: BridgeCommands, command: Any, trigger: bridge.BridgeTrigger) -> None:
    command.decision = bridge.BRIDGE_TABLE[bridge.Decision.PENDING, trigger]
    if trigger is bridge.BridgeTrigger.THIRTY_SECONDS:  # else it would be due for ever
        del self._pending[command.request_id]


# --- terminals ----------------------------------------------------------------------------------------------------


@CORE.around(28, ClientSocket, "holds", Invariant.LIVE_GRANT)
def the_terminal_grant_is_not_asked_for(holds: Real[bool], self: ClientSocket, channel: str) -> bool:
    return channel == "terminal" or holds(self, channel)


@CORE.instead(2, Terminal, "_send", Invariant.OWN_BYTES, quick=True)
def a_terminal_shows_what_belongs_to_another(self: Terminal, text: str) -> None:
    relay = self._owner.client.relay
    if text:
        payload: dict[str, object] = {"session_name": self.name, "data": text}
        next(iter(relay.clients.values())).send("terminal", "terminal.output", payload)


@CORE.plant(3, Invariant.AFTER_END, Invariant.RECOVERY)
def a_shell_outlives_its_socket(patch: Patch) -> None:
    patch.setattr(ClientSocket, "end_programs", lambda self: None)


# --- agent gateways -----------------------------------------------------------------------------------------------


@CORE.around(9, ClientSocket, "holds", Invariant.LIVE_GRANT)
def the_tui_grant_is_not_asked_for(holds: Real[bool], self: ClientSocket, channel: str) -> bool:
    return channel == "tui" or holds(self, channel)


@CORE.instead(1, Tui, "lapse", Invariant.TUI_ERROR)
def a_missing_grant_is_the_end_of_a_gateway(self: Tui, identity: str = "") -> None:
    self.close()
    self.lost("tui grant expired or missing")


@CORE.plant(3, Invariant.AFTER_END, Invariant.RECOVERY, Invariant.OWN_BYTES, Invariant.ONE_ANSWER)
def a_gateway_outlives_its_socket(patch: Patch) -> None:
    patch.setattr(Tui, "close", lambda self: None)


# --- secrets ------------------------------------------------------------------------------------------------------


@CORE.around(0, ClientSocket, "_welcome", Invariant.NO_SECRET, quick=True)
def a_token_is_logged(welcome: Real[bool], self: ClientSocket, session: Session, token: str, identity: str) -> bool:
    self.relay.engine.log(Level.INFO, "welcome", token=token)
    return welcome(self, session, token, identity)


@CORE.plant(1, Invariant.NO_SECRET)
def params_are_not_redacted(patch: Patch) -> None:
    patch.setattr(bridge, "abridge", lambda value, limit, hide_text=False: (value, strict_json.dumps(value)[:limit]))


# --- media --------------------------------------------------------------------------------------------------------


@CORE.instead(1, MediaRegistry, "lookup", Invariant.OWN_BYTES, Invariant.MEDIA_LIFE)
def a_token_leads_to_another_file(self: MediaRegistry, token: str, now: Moment) -> MediaEntry | None:
    return next(iter(self._entries.values()), None)


@CORE.around(1, Engine, "emit", Invariant.RECOVERY, quick=True)
def files_stay_open(emit: Real[None], self: Engine, command: Any) -> None:
    if not isinstance(command, ReleaseFile):
        emit(self, command)


# --- chat ---------------------------------------------------------------------------------------------------------


@CORE.instead(0, turn, "_store", Invariant.STORED)
def the_answer_is_told_before_it_is_stored(api: Any, *rows: Message) -> Flow[None]:
    yield from ()
    request = AddMessages(session_id=rows[0].session_id, messages=rows)
    api.engine.emit(Query(api.engine.new_op(), request))


@CORE.plant(1, Invariant.STORED, Invariant.STREAM)
def a_delta_is_lost(patch: Patch) -> None:
    take = Subscriber.take
    taken = [0]

    def forgetful(self: Subscriber, event: Any) -> None:
        taken[0] += 1
        if taken[0] % 50:
            take(self, event)

    patch.setattr(Subscriber, "take", forgetful)


@CORE.around(0, SessionProjection, "_ended", Invariant.STREAM, quick=True)
def done_comes_twice(
    ended: Real[list[chat_events.ChatEvent]], self: SessionProjection, event: Any
) -> list[chat_events.ChatEvent]:
    return [*ended(self, event), chat_events.Done()]


@CORE.plant(28, Invariant.BOUNDED, quick=True)
def a_slow_reader_holds_nobody_up(patch: Patch) -> None:
    patch.setattr(subscriber, "MAX_BEHIND", 10**9)
    patch.setattr(subscriber, "MAX_EVENTS_BEHIND", 10**9)


# --- HTTP/2 ---


@CORE.around(
    1,
    Http2Connection,
    "send",
    Invariant.OWN_BYTES,
    Invariant.OWN_ANSWER,
    Invariant.STATUS,
    Invariant.RECOVERY,
    Invariant.STREAM,
    quick=True,
)
def an_answer_goes_to_another_stream(send: Real[None], self: Http2Connection, event: Event) -> None:
    if isinstance(event, ResponseData) and not self._client:
        event = ResponseData(next(iter(self._streams)), event.data)
    with suppress(LocalProtocolError):
        send(self, event)


@CORE.around(1, Http2Channel, "take", Invariant.NO_BUG, Invariant.RECOVERY, quick=True)
def a_lost_stream_is_not_told(take: Real[None], self: Http2Channel, event: Event) -> None:
    if not isinstance(event, StreamReset):
        take(self, event)


# --- voice --------------------------------------------------------------------------------------------------------


@CORE.around(1, Session, "holds", Invariant.VOICE_GRANT, quick=True)
def the_voice_grant_is_not_asked_for(holds: Real[bool], self: Session, channel: str, wall: float) -> bool:
    return self.is_active(wall) if channel.startswith("voice:") else holds(self, channel, wall)


@CORE.plant(126, Invariant.SOCKETS_ENDED, Invariant.VOICE_GRANT, quick=True)
def a_voice_socket_outlives_its_session(patch: Patch) -> None:
    patch.setattr(Family, "end_bearer", lambda self, bearer_hash, reason: None)


@CORE.plant(3, Invariant.VOICE_BEARER, quick=True)
def the_api_key_opens_voice_from_anywhere(patch: Patch) -> None:
    patch.setattr(Proxies, "keep_secrets", lambda self, request: True)


@CORE.plant(3, Invariant.VOICE_STREAM, quick=True)
def some_sound_is_lost(patch: Patch) -> None:
    emit_audio = VoiceSession.emit_audio
    sent = [0]

    def forgetful(self: VoiceSession, *args: Any, **fields: object) -> None:
        sent[0] += 1
        if sent[0] % 50:
            emit_audio(self, *args, **fields)
        else:
            self.life.number(audio=True)

    patch.setattr(VoiceSession, "emit_audio", forgetful)


@CORE.around(0, VoiceSession, "emit_audio", Invariant.VOICE_STREAM, Invariant.ONE_END, Invariant.OWN_BYTES, quick=True)
def sound_goes_to_another_session(emit_audio: Real[None], self: VoiceSession, *args: Any, **fields: object) -> None:
    emit_audio(self.family.sessions()[0], *args, **fields)


@CORE.around(0, AgentMode, "tell", Invariant.ONE_END)
def a_response_ends_twice(tell: Real[None], self: AgentMode, emit: Emit) -> None:
    tell(self, emit)
    if emit.type == "voice.response.done":
        tell(self, emit)


@CORE.around(0, VoiceSession, "created", Invariant.NO_SECRET)
def a_resume_token_is_in_the_event_log(
    created: Real[None], self: VoiceSession, fields: Mapping[str, object], **more: Any
) -> None:
    created(self, {**fields, "resume_token": self.resume_token}, **more)


# --- the boundary -------------------------------------------------------------------------------------------------


@CORE.around(0, Process, "post", Invariant.NO_BUG, quick=True)
def an_operation_is_answered_twice(post: Real[None], self: Process, item: Any) -> None:
    post(self, item)
    if isinstance(item, Done) and item.op % 10 == 0:
        post(self, item)


CORE.put(6, "an_expired_code_works", pairing, "CODE_LIFETIME", 660.0, Invariant.CODE_ONCE)
CORE.put(1, "six_failures_are_needed", limiter, "MAX_FAILURES", 6, Invariant.BLOCKED, quick=True)
CORE.put(0, "four_failures_are_enough", limiter, "MAX_FAILURES", 4, Invariant.NOT_BLOCKED)
CORE.put(0, "a_block_is_over_too_early", limiter, "BLOCK_FOR", 2.0, Invariant.BLOCKED)
CORE.put(1, "a_registration_clears_no_blocks", Limiter, "clear", lambda self: None, Invariant.NOT_BLOCKED, quick=True)
CORE.put(50, "a_late_reply_is_accepted", bridge, "RESPONSE_TIMEOUT", 45.0, Invariant.IN_TIME, quick=True)
CORE.put(1, "a_voice_socket_outlives_its_grant", VoiceSocket, "recheck", lambda self: None, Invariant.VOICE_GRANT)
CORE.put(88, "a_cancelled_run_goes_on", ApiRuns, "stop", ApiRuns.leave, Invariant.CANCELLED, quick=True)
CORE.put(26, "a_no_is_taken_for_a_yes", run, "choice_for", lambda answer: "once", Invariant.CONFIRMED, quick=True)
CORE.put(0, "a_voice_session_never_expires", VoiceSession, "_due", lambda self: None, Invariant.VOICE_OVER)

PLANTS = [
    *CORE.plants,
    *MCP.plants,
    *LIVES.plants,
    *DOORS.plants,
    *KEPT.plants,
    *PROMISES.plants,
    *EPISODES.plants,
    *ERRANDS.plants,
    *BOOKS.plants,
    *AUDITS.plants,
    *RELAY.plants,
    *ASKED.plants,
    *ANSWERS.plants,
    *ROOMS.plants,
    *LODGE.plants,
    *SERVERS.plants,
    *TURNS.plants,
    *MANNERS.plants,
]
