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
from svc_proto.relay import access
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
from tests.fuzz.plant import Patch, Plant
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


# --- sessions and grants ------------------------------------------------------------------------------------------


def _a_grant_is_not_clamped(patch: Patch) -> None:
    def build(now: float, expires_at: float | None, preset: Mapping[str, float] | None) -> dict[str, float | None]:
        return {
            **grants.default_grants(now, expires_at),
            **{channel: grants.expiry_after(now, span) for channel, span in (preset or {}).items()},
        }

    patch.setattr(sessions, "build_grants", build)


def _a_dead_token_is_accepted(patch: Patch) -> None:
    kept: dict[str, Session] = {}
    file = Sessions._file

    def remember(self: Sessions, session: Session) -> None:
        kept[session.token_hash] = session
        file(self, session)

    patch.setattr(Sessions, "_file", remember)
    patch.setattr(Sessions, "shown", lambda self, token_hash, now: kept.get(token_hash))


def _the_socket_of_a_revoked_session_stays(patch: Patch) -> None:
    patch.setattr(Relay, "end_session", lambda self, session, reason: None)


def _a_session_is_not_stored(patch: Patch) -> None:
    def save(self: Relay, session: Session, *, again: bool = False) -> Flow[None]:
        self.watch_sessions()
        yield from sleep(self.engine, 0.001)

    patch.setattr(Relay, "save", save)


def _the_callers_grant_is_not_asked_for(patch: Patch) -> None:
    real = access.authorize

    def authorize(wanted: access.Access, *rest: Any) -> object:
        return real(access.Access.BEARER if wanted is access.Access.BRIDGE else wanted, *rest)

    patch.setattr("svc_proto.relay.service.authorize", authorize)


def _the_phones_grant_is_not_asked_for(patch: Patch) -> None:
    def phone_for(self: Relay, selector: str | None) -> tuple[Phone, PhoneLine]:
        phone = self.phones.choose(selector)
        return phone, self.clients[phone.socket].socket

    patch.setattr(Relay, "phone_for", phone_for)


# --- codes and guesses --------------------------------------------------------------------------------------------


def _a_code_works_twice(patch: Patch) -> None:
    def consume(self: PairingCodes, code: str, now: Moment) -> PairingMeta | None:
        entry = self._codes.get(code, now.mono)
        return None if entry is None else entry.meta

    patch.setattr(PairingCodes, "consume", consume)


def _an_expired_code_works(patch: Patch) -> None:
    patch.setattr(pairing, "CODE_LIFETIME", 660.0)


def _six_failures_are_needed(patch: Patch) -> None:
    patch.setattr(limiter, "MAX_FAILURES", 6)


def _four_failures_are_enough(patch: Patch) -> None:
    patch.setattr(limiter, "MAX_FAILURES", 4)


def _a_block_is_over_too_early(patch: Patch) -> None:
    patch.setattr(limiter, "BLOCK_FOR", 2.0)


def _a_registration_clears_no_blocks(patch: Patch) -> None:
    patch.setattr(Limiter, "clear", lambda self: None)


# --- Device Control -----------------------------------------------------------------------------------------------


def _a_late_reply_is_accepted(patch: Patch) -> None:
    patch.setattr(bridge, "RESPONSE_TIMEOUT", 45.0)


def _replies_are_mixed_up(patch: Patch) -> None:
    answer = BridgeCommands.answer

    def swapped(
        self: BridgeCommands, request_id: object, socket: int, payload: Mapping[str, object], now: Moment, size: int
    ) -> Outcome | None:
        return answer(self, next(iter(self._pending), request_id), socket, payload, now, size)

    patch.setattr(BridgeCommands, "answer", swapped)


def _anybody_may_answer(patch: Patch) -> None:
    answer = BridgeCommands.answer

    def lax(
        self: BridgeCommands, request_id: object, socket: int, payload: Mapping[str, object], now: Moment, size: int
    ) -> Outcome | None:
        command = self._pending.get(str(request_id))
        return answer(self, request_id, socket if command is None else command.socket, payload, now, size)

    patch.setattr(BridgeCommands, "answer", lax)


def _a_settled_command_is_settled_again(patch: Patch) -> None:
    def settle(self: BridgeCommands, command: Any, trigger: bridge.BridgeTrigger) -> None:
        command.decision = bridge.BRIDGE_TABLE[bridge.Decision.PENDING, trigger]
        if trigger is bridge.BridgeTrigger.THIRTY_SECONDS:  # else it would be due for ever
            del self._pending[command.request_id]

    patch.setattr(BridgeCommands, "_settle", settle)


# --- terminals ----------------------------------------------------------------------------------------------------


def _the_terminal_grant_is_not_asked_for(patch: Patch) -> None:
    holds = ClientSocket.holds
    patch.setattr(ClientSocket, "holds", lambda self, channel: channel == "terminal" or holds(self, channel))


def _a_terminal_shows_what_belongs_to_another(patch: Patch) -> None:
    def send(self: Terminal, text: str) -> None:
        relay = self._owner.client.relay
        if text:
            payload: dict[str, object] = {"session_name": self.name, "data": text}
            next(iter(relay.clients.values())).send("terminal", "terminal.output", payload)

    patch.setattr(Terminal, "_send", send)


def _a_shell_outlives_its_socket(patch: Patch) -> None:
    patch.setattr(ClientSocket, "end_programs", lambda self: None)


# --- agent gateways -----------------------------------------------------------------------------------------------


def _the_tui_grant_is_not_asked_for(patch: Patch) -> None:
    holds = ClientSocket.holds
    patch.setattr(ClientSocket, "holds", lambda self, channel: channel == "tui" or holds(self, channel))


def _a_missing_grant_is_the_end_of_a_gateway(patch: Patch) -> None:
    def lapse(self: Tui, identity: str = "") -> None:
        self.close()
        self.lost("tui grant expired or missing")

    patch.setattr(Tui, "lapse", lapse)


def _a_gateway_outlives_its_socket(patch: Patch) -> None:
    patch.setattr(Tui, "close", lambda self: None)


# --- secrets ------------------------------------------------------------------------------------------------------


def _a_token_is_logged(patch: Patch) -> None:
    welcome = ClientSocket._welcome

    def telling(self: ClientSocket, session: Session, token: str, identity: str) -> bool:
        self.relay.engine.log(Level.INFO, "welcome", token=token)
        return welcome(self, session, token, identity)

    patch.setattr(ClientSocket, "_welcome", telling)


def _params_are_not_redacted(patch: Patch) -> None:
    patch.setattr(bridge, "abridge", lambda value, limit, hide_text=False: (value, strict_json.dumps(value)[:limit]))


# --- media --------------------------------------------------------------------------------------------------------


def _a_token_leads_to_another_file(patch: Patch) -> None:
    def lookup(self: MediaRegistry, token: str, now: Moment) -> MediaEntry | None:
        return next(iter(self._entries.values()), None)

    patch.setattr(MediaRegistry, "lookup", lookup)


def _files_stay_open(patch: Patch) -> None:
    emit = Engine.emit

    def leaking(self: Engine, command: Any) -> None:
        if not isinstance(command, ReleaseFile):
            emit(self, command)

    patch.setattr(Engine, "emit", leaking)


# --- chat ---------------------------------------------------------------------------------------------------------


def _the_answer_is_told_before_it_is_stored(patch: Patch) -> None:
    def later(api: Any, *rows: Message) -> Flow[None]:
        yield from ()
        request = AddMessages(session_id=rows[0].session_id, messages=rows)
        api.engine.emit(Query(api.engine.new_op(), request))

    patch.setattr(turn, "_store", later)


def _a_delta_is_lost(patch: Patch) -> None:
    take = Subscriber.take
    taken = [0]

    def forgetful(self: Subscriber, event: Any) -> None:
        taken[0] += 1
        if taken[0] % 50:
            take(self, event)

    patch.setattr(Subscriber, "take", forgetful)


def _done_comes_twice(patch: Patch) -> None:
    ended = SessionProjection._ended

    def twice(self: SessionProjection, event: Any) -> list[chat_events.ChatEvent]:
        return [*ended(self, event), chat_events.Done()]

    patch.setattr(SessionProjection, "_ended", twice)


def _a_slow_reader_holds_nobody_up(patch: Patch) -> None:
    patch.setattr(subscriber, "MAX_BEHIND", 10**9)
    patch.setattr(subscriber, "MAX_EVENTS_BEHIND", 10**9)


# --- HTTP/2 ---


def _an_answer_goes_to_another_stream(patch: Patch) -> None:
    send = Http2Connection.send

    def astray(self: Http2Connection, event: Event) -> None:
        if isinstance(event, ResponseData) and not self._client:
            event = ResponseData(next(iter(self._streams)), event.data)
        with suppress(LocalProtocolError):
            send(self, event)

    patch.setattr(Http2Connection, "send", astray)


def _a_lost_stream_is_not_told(patch: Patch) -> None:
    take = Http2Channel.take

    def deaf(self: Http2Channel, event: Event) -> None:
        if not isinstance(event, StreamReset):
            take(self, event)

    patch.setattr(Http2Channel, "take", deaf)


# --- voice --------------------------------------------------------------------------------------------------------


def _the_voice_grant_is_not_asked_for(patch: Patch) -> None:
    holds = Session.holds

    def lax(self: Session, channel: str, wall: float) -> bool:
        return self.is_active(wall) if channel.startswith("voice:") else holds(self, channel, wall)

    patch.setattr(Session, "holds", lax)


def _a_voice_socket_outlives_its_grant(patch: Patch) -> None:
    patch.setattr(VoiceSocket, "recheck", lambda self: None)


def _a_voice_socket_outlives_its_session(patch: Patch) -> None:
    patch.setattr(Family, "end_bearer", lambda self, bearer_hash, reason: None)


def _the_api_key_opens_voice_from_anywhere(patch: Patch) -> None:
    patch.setattr(Proxies, "keep_secrets", lambda self, request: True)


def _some_sound_is_lost(patch: Patch) -> None:
    emit_audio = VoiceSession.emit_audio
    sent = [0]

    def forgetful(self: VoiceSession, *args: Any, **fields: object) -> None:
        sent[0] += 1
        if sent[0] % 50:
            emit_audio(self, *args, **fields)
        else:
            self.life.number(audio=True)

    patch.setattr(VoiceSession, "emit_audio", forgetful)


def _sound_goes_to_another_session(patch: Patch) -> None:
    emit_audio = VoiceSession.emit_audio

    def astray(self: VoiceSession, *args: Any, **fields: object) -> None:
        emit_audio(self.family.sessions()[0], *args, **fields)

    patch.setattr(VoiceSession, "emit_audio", astray)


def _a_response_ends_twice(patch: Patch) -> None:
    tell = AgentMode.tell

    def twice(self: AgentMode, emit: Emit) -> None:
        tell(self, emit)
        if emit.type == "voice.response.done":
            tell(self, emit)

    patch.setattr(AgentMode, "tell", twice)


def _a_cancelled_run_goes_on(patch: Patch) -> None:
    patch.setattr(ApiRuns, "stop", ApiRuns.leave)


def _a_no_is_taken_for_a_yes(patch: Patch) -> None:
    patch.setattr(run, "choice_for", lambda answer: "once")


def _a_voice_session_never_expires(patch: Patch) -> None:
    patch.setattr(VoiceSession, "_due", lambda self: None)


def _a_resume_token_is_in_the_event_log(patch: Patch) -> None:
    created = VoiceSession.created

    def telling(self: VoiceSession, fields: Mapping[str, object], **more: Any) -> None:
        created(self, {**fields, "resume_token": self.resume_token}, **more)

    patch.setattr(VoiceSession, "created", telling)


# --- the boundary -------------------------------------------------------------------------------------------------


def _an_operation_is_answered_twice(patch: Patch) -> None:
    post = Process.post

    def twice(self: Process, item: Any) -> None:
        post(self, item)
        if isinstance(item, Done) and item.op % 10 == 0:
            post(self, item)

    patch.setattr(Process, "post", twice)


PLANTS = (
    *MCP,
    *LIVES,
    *DOORS,
    Plant(_a_grant_is_not_clamped, 0, (Invariant.GRANT_CLAMPED,), quick=True),
    Plant(_a_dead_token_is_accepted, 1, (Invariant.DEAD_TOKEN, Invariant.LIVE_GRANT), quick=True),
    Plant(_the_socket_of_a_revoked_session_stays, 0, (Invariant.AFTER_END,)),
    Plant(_a_session_is_not_stored, 4, (Invariant.LIVE_TOKEN, Invariant.VOICE_GRANT), quick=True),
    Plant(_the_callers_grant_is_not_asked_for, 32, (Invariant.LIVE_GRANT,), quick=True),
    Plant(_the_phones_grant_is_not_asked_for, 51, (Invariant.LIVE_GRANT,)),
    Plant(_a_code_works_twice, 0, (Invariant.CODE_ONCE,), quick=True),
    Plant(_an_expired_code_works, 6, (Invariant.CODE_ONCE,)),
    Plant(_six_failures_are_needed, 1, (Invariant.BLOCKED,), quick=True),
    Plant(_four_failures_are_enough, 0, (Invariant.NOT_BLOCKED,)),
    Plant(_a_block_is_over_too_early, 0, (Invariant.BLOCKED,)),
    Plant(_a_registration_clears_no_blocks, 1, (Invariant.NOT_BLOCKED,), quick=True),
    Plant(_a_late_reply_is_accepted, 50, (Invariant.IN_TIME,), quick=True),
    Plant(_replies_are_mixed_up, 1, (Invariant.OWN_ANSWER,), quick=True),
    Plant(_anybody_may_answer, 1, (Invariant.OWN_ANSWER,)),
    Plant(
        _a_settled_command_is_settled_again,
        1,
        (Invariant.ONE_ANSWER, Invariant.RECOVERY, Invariant.NO_BUG, Invariant.REPORTED),
    ),
    Plant(_the_terminal_grant_is_not_asked_for, 28, (Invariant.LIVE_GRANT,)),
    Plant(_a_terminal_shows_what_belongs_to_another, 2, (Invariant.OWN_BYTES,), quick=True),
    Plant(_a_shell_outlives_its_socket, 3, (Invariant.AFTER_END, Invariant.RECOVERY)),
    Plant(_the_tui_grant_is_not_asked_for, 9, (Invariant.LIVE_GRANT,)),
    Plant(_a_missing_grant_is_the_end_of_a_gateway, 1, (Invariant.TUI_ERROR,)),
    Plant(
        _a_gateway_outlives_its_socket,
        3,
        (Invariant.AFTER_END, Invariant.RECOVERY, Invariant.OWN_BYTES, Invariant.ONE_ANSWER),
    ),
    Plant(_a_token_is_logged, 0, (Invariant.NO_SECRET,), quick=True),
    Plant(_params_are_not_redacted, 1, (Invariant.NO_SECRET,)),
    Plant(_a_token_leads_to_another_file, 1, (Invariant.OWN_BYTES, Invariant.MEDIA_LIFE)),
    Plant(_files_stay_open, 1, (Invariant.RECOVERY,), quick=True),
    Plant(_the_answer_is_told_before_it_is_stored, 0, (Invariant.STORED,)),
    Plant(_a_delta_is_lost, 1, (Invariant.STORED, Invariant.STREAM)),
    Plant(_done_comes_twice, 0, (Invariant.STREAM,), quick=True),
    Plant(_a_slow_reader_holds_nobody_up, 28, (Invariant.BOUNDED,), quick=True),
    Plant(
        _an_answer_goes_to_another_stream,
        1,
        (Invariant.OWN_BYTES, Invariant.OWN_ANSWER, Invariant.STATUS, Invariant.RECOVERY, Invariant.STREAM),
        quick=True,
    ),
    Plant(_a_lost_stream_is_not_told, 1, (Invariant.NO_BUG, Invariant.RECOVERY), quick=True),
    Plant(_the_voice_grant_is_not_asked_for, 1, (Invariant.VOICE_GRANT,), quick=True),
    Plant(_a_voice_socket_outlives_its_grant, 1, (Invariant.VOICE_GRANT,)),
    Plant(_a_voice_socket_outlives_its_session, 126, (Invariant.SOCKETS_ENDED, Invariant.VOICE_GRANT), quick=True),
    Plant(_the_api_key_opens_voice_from_anywhere, 3, (Invariant.VOICE_BEARER,), quick=True),
    Plant(_some_sound_is_lost, 3, (Invariant.VOICE_STREAM,), quick=True),
    Plant(
        _sound_goes_to_another_session, 0, (Invariant.VOICE_STREAM, Invariant.ONE_END, Invariant.OWN_BYTES), quick=True
    ),
    Plant(_a_response_ends_twice, 0, (Invariant.ONE_END,)),
    Plant(_a_cancelled_run_goes_on, 88, (Invariant.CANCELLED,), quick=True),
    Plant(_a_no_is_taken_for_a_yes, 26, (Invariant.CONFIRMED,), quick=True),
    Plant(_a_voice_session_never_expires, 0, (Invariant.VOICE_OVER,)),
    Plant(_a_resume_token_is_in_the_event_log, 0, (Invariant.NO_SECRET,)),
    Plant(_an_operation_is_answered_twice, 0, (Invariant.NO_BUG,), quick=True),
    *KEPT,
    *PROMISES,
    *EPISODES,
    *ERRANDS,
    *BOOKS,
    *AUDITS,
    *RELAY,
    *ASKED,
    *ANSWERS,
    *ROOMS,
    *LODGE,
    *SERVERS,
    *TURNS,
    *MANNERS,
)
