"""Bugs to plant in promises about time, order and whose something is: each part works, and the whole is not as told."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.api import turn
from svc_proto.api.run import Run
from svc_proto.api.subscriber import MAX_BEHIND, MAX_EVENTS_BEHIND, Subscriber, SubscriberState
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import Level, OpenedFile, OpenFile, ReleaseFile
from svc_proto.engine.channel import Channel
from svc_proto.engine.flow import Flow, Later, ask
from svc_proto.facts import Failure
from svc_proto.machines.bridge import BridgeCommands
from svc_proto.machines.inbox import MAX_NOTIFICATIONS, Notifications
from svc_proto.machines.limiter import Limiter, address_key
from svc_proto.machines.media import MediaEntry
from svc_proto.machines.phones import Phones
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.machines.voice_session import VoiceState
from svc_proto.relay.client_socket import ClientSocket
from svc_proto.relay.media import Media
from svc_proto.relay.service import Relay
from svc_proto.relay.terminals import Terminals
from svc_proto.relay.tui import _Gateway
from svc_proto.voice.family import Family
from tests.fuzz.plant import Patch, Plant

__all__ = ["PROMISES"]


def _a_change_forgets_what_was_set_before(patch: Patch) -> None:
    change = Sessions.patch

    def forgetful(self: Sessions, session: Session, now: Moment, **options: Any) -> None:
        change(self, session, now, **options)
        if options["grants"]:
            session.preset = tuple(options["grants"])

    patch.setattr(Sessions, "patch", forgetful)


def _nobody_looks_for_old_sessions_again(patch: Patch) -> None:
    def expire(self: Relay) -> None:
        for session in self.sessions.expire_due(self.engine.now):
            self.engine.log(Level.INFO, "session expired", session=session.token_prefix)
            self.end_session(session, "the session has expired")
            self._records.erase_later(session)

    patch.setattr(Relay, "expire_sessions", expire)


def _failures_count_until_a_minute_without_one(patch: Patch) -> None:
    failure = Limiter.failure

    def longer(self: Limiter, address: str, now: Moment) -> bool:
        if (entry := self._counting.peek(address_key(address))) is not None:
            entry.failures = deque([now.mono] * len(entry.failures))
        return failure(self, address, now)

    patch.setattr(Limiter, "failure", longer)


def _a_code_is_used_up_beside_a_token(patch: Patch) -> None:
    authenticate = ClientSocket._authenticate

    def greedy(self: ClientSocket, envelope: Any) -> None:
        relay, now, payload = self.relay, self.relay.engine.now, {} if envelope is None else envelope.payload
        code, token = payload.get("pairing_code"), payload.get("session_token")
        if code and token and relay.sessions.lookup(str(token), now) is not None:
            relay.codes.consume(str(code), now)
        authenticate(self, envelope)

    patch.setattr(ClientSocket, "_authenticate", greedy)


def _a_grant_that_was_shortened_ends_when_stored(patch: Patch) -> None:
    save, changed = Relay.save, Relay.grants_changed

    def then(self: Relay, session: Session, *, again: bool = False) -> Flow[Failure | None]:
        stored = yield from save(self, session, again=again)
        if not isinstance(stored, Failure):
            changed(self, session)
        return stored

    patch.setattr(Relay, "save", then)
    patch.setattr(Relay, "grants_changed", lambda self, session: None)


def _a_caller_that_leaves_ends_its_command(patch: Patch) -> None:
    begin, cancel = BridgeCommands.begin, Later.cancel
    begun: list[tuple[BridgeCommands, str, Any]] = []

    def remember(self: BridgeCommands, request_id: str, *rest: Any) -> Any:
        begun.append((self, request_id, rest[-2]))
        return begin(self, request_id, *rest)

    def leave(self: Later) -> None:
        cancel(self)
        for commands, request_id, tell in begun:
            if getattr(getattr(tell, "tell", tell), "__self__", None) is self:
                commands.timeout(request_id)

    patch.setattr(BridgeCommands, "begin", remember)
    patch.setattr(Later, "cancel", leave)


def _a_phone_has_the_status_of_the_last(patch: Patch) -> None:
    register = Phones.register

    def inherit(self: Phones, socket: int, **members: Any) -> int | None:
        last = self._last_left
        replaced = register(self, socket, **members)
        phone = self.of_socket(socket)
        if phone is not None and phone.status is None and last is not None:
            phone.status, phone.reported_at = last.status, last.reported_at
        return replaced

    patch.setattr(Phones, "register", inherit)


def _what_is_evicted_stays_on_the_disk(patch: Patch) -> None:
    drop = Media._drop
    patch.setattr(
        Media, "_drop", lambda self, entry: drop(self, entry) if self._engine.now.mono >= entry.deadline else None
    )


def _a_file_is_judged_once(patch: Patch) -> None:
    def open_token(self: Media, token: str) -> Flow[tuple[MediaEntry, OpenedFile]]:
        entry = self.registry.lookup(token, self._engine.now)
        if entry is None:
            raise Refused(404, "not_found", "the token is unknown or expired")
        opened = yield from ask(self._engine, OpenFile(self._engine.new_op(), entry.path))
        if isinstance(opened, Failure):
            raise Refused(404, "not_found", "the file is gone")
        if not opened.regular or opened.real_path != entry.path:
            self._engine.emit(ReleaseFile(opened.handle))
            raise Refused(404, "not_found", "the file is gone")
        return entry, opened

    patch.setattr(Media, "open_token", open_token)


def _a_notification_takes_the_place_of_another(patch: Patch) -> None:
    post = Notifications.post

    def replace(self: Notifications, payload: Mapping[str, object]) -> bool:
        self._ring = deque((old for old in self._ring if old.get("key") != payload.get("key")), MAX_NOTIFICATIONS)
        return post(self, payload)

    patch.setattr(Notifications, "post", replace)


def _the_history_is_read_before_the_turn_has_its_place(patch: Patch) -> None:
    perform = turn._perform

    def early(api: Any, run: Run, order: turn.TurnOrder) -> Flow[Any]:
        history = order.history
        if history is None and not order.results:
            history = yield from api.history(order.session_id)
        return (yield from perform(api, run, evolve(order, history=history)))

    patch.setattr(turn, "_perform", early)


def _a_run_waits_for_whoever_may_come(patch: Patch) -> None:
    def behind(self: Subscriber) -> bool:
        much = len(self._pieces) > MAX_EVENTS_BEHIND or self._size > MAX_BEHIND
        return much and self.state is not SubscriberState.GONE

    patch.setattr(Subscriber, "behind", property(behind))


def _the_first_who_leaves_stops_the_run(patch: Patch) -> None:
    def look(self: Run) -> None:
        unread = self.reader is None or self.reader.state is SubscriberState.GONE
        if self._stops_alone and unread and self.ended is None:
            self._api.runs.stop(self.record.id)

    patch.setattr(Run, "_look_around", look)


def _a_terminal_that_is_attached_again_is_not_the_last(patch: Patch) -> None:
    attach = Terminals._attach

    def in_place(self: Terminals, envelope: Any) -> Flow[None]:
        order = list(self.held)
        yield from attach(self, envelope)
        names = [*(name for name in order if name in self.held), *(name for name in self.held if name not in order)]
        self.held = {name: self.held[name] for name in names}

    patch.setattr(Terminals, "_attach", in_place)


def _the_end_of_a_gateway_overtakes_its_lines(patch: Patch) -> None:
    def at_once(self: _Gateway, status: int | None) -> None:
        self._end = f"the agent gateway exited with {status}"
        self._tui.lost(self._end)

    patch.setattr(_Gateway, "on_exit", at_once)


def _room_is_made_of_what_others_have(patch: Patch) -> None:
    def make_room(self: Family, principal: Any) -> None:
        own = [session for session in self.sessions() if session.principal.matches(principal)]
        if len(own) < self.of_one and len(self.sessions()) < self.most:
            return
        for state in (VoiceState.FRESH, VoiceState.DETACHED):
            for session in self.sessions():
                if session.life.state is state:
                    session.close("too many sessions")
                    return
        raise Refused(503, "too_many_sessions", "too many voice sessions are open")

    patch.setattr(Family, "make_room", make_room)


def _each_write_gives_more_time(patch: Patch) -> None:
    write = Channel.write

    def patient(self: Channel, data: bytes) -> None:
        write(self, data)
        self._stall.set(self.engine.now.mono + self.limits.write_timeout)

    patch.setattr(Channel, "write", patient)


PROMISES = (
    Plant(_a_change_forgets_what_was_set_before, 1, (Invariant.LIFETIME,)),
    Plant(_nobody_looks_for_old_sessions_again, 0, (Invariant.SOCKETS_ENDED, Invariant.DEAD_TOKEN, Invariant.BOOKS)),
    Plant(_failures_count_until_a_minute_without_one, 3, (Invariant.NOT_BLOCKED,)),
    Plant(_a_code_is_used_up_beside_a_token, 3, (Invariant.LIVE_CODE,), quick=True),
    Plant(_a_grant_that_was_shortened_ends_when_stored, 134, (Invariant.VOICE_GRANT,)),
    Plant(_a_caller_that_leaves_ends_its_command, 2, (Invariant.IN_TIME, Invariant.REPORTED)),
    Plant(_a_phone_has_the_status_of_the_last, 1, (Invariant.REPORTED,)),
    Plant(_what_is_evicted_stays_on_the_disk, 7, (Invariant.MEDIA_LIFE, Invariant.BOOKS)),
    Plant(_a_file_is_judged_once, 41, (Invariant.OWN_BYTES,)),
    Plant(_a_notification_takes_the_place_of_another, 17, (Invariant.REPORTED,), quick=True),
    Plant(_the_history_is_read_before_the_turn_has_its_place, 1, (Invariant.HISTORY,), quick=True),
    Plant(_a_run_waits_for_whoever_may_come, 17, (Invariant.BOUNDED,)),
    Plant(_the_first_who_leaves_stops_the_run, 1, (Invariant.STREAM,), quick=True),
    Plant(_a_terminal_that_is_attached_again_is_not_the_last, 22, (Invariant.OWN_BYTES,)),
    Plant(_the_end_of_a_gateway_overtakes_its_lines, 66, (Invariant.TUI_ERROR,), quick=True),
    Plant(_room_is_made_of_what_others_have, 144, (Invariant.VOICE_ROOM,), quick=True),
    Plant(_each_write_gives_more_time, 131, (Invariant.BOUNDED,)),
)
