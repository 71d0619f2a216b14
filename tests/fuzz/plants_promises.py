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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["PROMISES"]

PROMISES = Bed[Invariant]()


@PROMISES.around(1, Sessions, "patch", Invariant.LIFETIME)
def a_change_forgets_what_was_set_before(
    change: Real[None], self: Sessions, session: Session, now: Moment, **options: Any
) -> None:
    change(self, session, now, **options)
    if options["grants"]:
        session.preset = tuple(options["grants"])


@PROMISES.instead(0, Relay, "expire_sessions", Invariant.SOCKETS_ENDED, Invariant.DEAD_TOKEN, Invariant.BOOKS)
def nobody_looks_for_old_sessions_again(self: Relay) -> None:
    for session in self.sessions.expire_due(self.engine.now):
        self.engine.log(Level.INFO, "session expired", session=session.token_prefix)
        self.end_session(session, "the session has expired")
        self._records.erase_later(session)


@PROMISES.around(3, Limiter, "failure", Invariant.NOT_BLOCKED)
def failures_count_until_a_minute_without_one(failure: Real[bool], self: Limiter, address: str, now: Moment) -> bool:
    if (entry := self._counting.peek(address_key(address))) is not None:
        entry.failures = deque([now.mono] * len(entry.failures))
    return failure(self, address, now)


@PROMISES.around(3, ClientSocket, "_authenticate", Invariant.LIVE_CODE, quick=True)
def a_code_is_used_up_beside_a_token(authenticate: Real[None], self: ClientSocket, envelope: Any) -> None:
    relay, now, payload = self.relay, self.relay.engine.now, {} if envelope is None else envelope.payload
    code, token = payload.get("pairing_code"), payload.get("session_token")
    if code and token and relay.sessions.lookup(str(token), now) is not None:
        relay.codes.consume(str(code), now)
    authenticate(self, envelope)


@PROMISES.plant(134, Invariant.VOICE_GRANT)
def a_grant_that_was_shortened_ends_when_stored(patch: Patch) -> None:
    save, changed = Relay.save, Relay.grants_changed

    def then(self: Relay, session: Session, *, again: bool = False) -> Flow[Failure | None]:
        stored = yield from save(self, session, again=again)
        if not isinstance(stored, Failure):
            changed(self, session)
        return stored

    patch.setattr(Relay, "save", then)
    patch.setattr(Relay, "grants_changed", lambda self, session: None)


@PROMISES.plant(2, Invariant.IN_TIME, Invariant.REPORTED)
def a_caller_that_leaves_ends_its_command(patch: Patch) -> None:
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


@PROMISES.around(1, Phones, "register", Invariant.REPORTED)
def a_phone_has_the_status_of_the_last(
    register: Real[int | None], self: Phones, socket: int, **members: Any
) -> int | None:
    last = self._last_left
    replaced = register(self, socket, **members)
    phone = self.of_socket(socket)
    if phone is not None and phone.status is None and last is not None:
        phone.status, phone.reported_at = last.status, last.reported_at
    return replaced


@PROMISES.around(7, Media, "_drop", Invariant.MEDIA_LIFE, Invariant.BOOKS)
def what_is_evicted_stays_on_the_disk(drop: Real[None], self: Media, entry: MediaEntry) -> None:
    if self._engine.now.mono >= entry.deadline:
        drop(self, entry)


@PROMISES.instead(41, Media, "open_token", Invariant.OWN_BYTES)
def a_file_is_judged_once(self: Media, token: str) -> Flow[tuple[MediaEntry, OpenedFile]]:
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


@PROMISES.around(17, Notifications, "post", Invariant.REPORTED, quick=True)
def a_notification_takes_the_place_of_another(
    post: Real[bool], self: Notifications, payload: Mapping[str, object]
) -> bool:
    self._ring = deque((old for old in self._ring if old.get("key") != payload.get("key")), MAX_NOTIFICATIONS)
    return post(self, payload)


@PROMISES.around(1, turn, "_perform", Invariant.HISTORY, quick=True)
def the_history_is_read_before_the_turn_has_its_place(
    perform: Real[Flow[Any]], api: Any, run: Run, order: turn.TurnOrder
) -> Flow[Any]:
    history = order.history
    if history is None and not order.results:
        history = yield from api.history(order.session_id)
    return (yield from perform(api, run, evolve(order, history=history)))


@PROMISES.plant(17, Invariant.BOUNDED)
def a_run_waits_for_whoever_may_come(patch: Patch) -> None:
    def behind(self: Subscriber) -> bool:
        much = len(self._pieces) > MAX_EVENTS_BEHIND or self._size > MAX_BEHIND
        return much and self.state is not SubscriberState.GONE

    patch.setattr(Subscriber, "behind", property(behind))


@PROMISES.instead(1, Run, "_look_around", Invariant.STREAM, quick=True)
def the_first_who_leaves_stops_the_run(self: Run) -> None:
    unread = self.reader is None or self.reader.state is SubscriberState.GONE
    if self._stops_alone and unread and self.ended is None:
        self._api.runs.stop(self.record.id)


@PROMISES.around(22, Terminals, "_attach", Invariant.OWN_BYTES)
def a_terminal_that_is_attached_again_is_not_the_last(
    attach: Real[Flow[None]], self: Terminals, envelope: Any
) -> Flow[None]:
    order = list(self.held)
    yield from attach(self, envelope)
    names = [*(name for name in order if name in self.held), *(name for name in self.held if name not in order)]
    self.held = {name: self.held[name] for name in names}


@PROMISES.instead(66, _Gateway, "on_exit", Invariant.TUI_ERROR, quick=True)
def the_end_of_a_gateway_overtakes_its_lines(self: _Gateway, status: int | None) -> None:
    self._end = f"the agent gateway exited with {status}"
    self._tui.lost(self._end)


@PROMISES.instead(144, Family, "make_room", Invariant.VOICE_ROOM, quick=True)
def room_is_made_of_what_others_have(self: Family, principal: Any) -> None:
    own = [session for session in self.sessions() if session.principal.matches(principal)]
    if len(own) < self.of_one and len(self.sessions()) < self.most:
        return
    for state in (VoiceState.FRESH, VoiceState.DETACHED):
        for session in self.sessions():
            if session.life.state is state:
                session.close("too many sessions")
                return
    raise Refused(503, "too_many_sessions", "too many voice sessions are open")


@PROMISES.around(131, Channel, "write", Invariant.BOUNDED)
def each_write_gives_more_time(write: Real[None], self: Channel, data: bytes) -> None:
    write(self, data)
    self._stall.set(self.engine.now.mono + self.limits.write_timeout)
