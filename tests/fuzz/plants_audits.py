"""Bugs to plant that show only who goes through a room by itself: limits, orders, counts and what is kept for whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.api import idempotency
from svc_proto.api.routes import runs
from svc_proto.api.store import ForkChat, ListMessages
from svc_proto.api.subscriber import SubscriberState
from svc_proto.basics.moment import Moment
from svc_proto.dashboard.relay_calls import _RelayCalls
from svc_proto.engine.message import Request, Response
from svc_proto.machines import approvals, bridge, chatrun, terminal, voice_session
from svc_proto.machines.bridge import BridgeCommands
from svc_proto.machines.inbox import Notifications
from svc_proto.machines.limiter import Limiter, address_key
from svc_proto.machines.media import MediaEntry, MediaRegistry
from svc_proto.machines.phones import Phone, Phones
from svc_proto.machines.session import Session, session_record
from svc_proto.machines.sessions import Sessions
from svc_proto.machines.strangers import Guest, Strangers
from svc_proto.machines.voice_session import Cursor, VoiceLife
from svc_proto.relay import terminals
from svc_proto.relay.client_socket import ClientSocket
from svc_proto.relay.routes import sessions as session_routes
from svc_proto.relay.uploads import Uploads
from svc_proto.voice import session
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["AUDITS"]

AUDITS = Bed(Invariant.AS_TOLD)


@AUDITS.around(0, Limiter, "success", quick=True)
def a_good_token_ends_a_block(success: Real[None], self: Limiter, address: str, now: Moment) -> None:
    success(self, address, now)
    self._blocked.discard(address_key(address))


@AUDITS.around(2, Strangers, "_exit")
def a_stranger_that_leaves_keeps_its_place(exit_: Real[None], self: Strangers, guest: Guest) -> None:
    address = guest.address
    before = address.guests
    exit_(self, guest)
    address.guests = before if before > self._most // 2 else address.guests


@AUDITS.around(0, BridgeCommands, "records")
def the_activity_forgets_the_last_of_a_hundred(
    records: Real[list[dict[str, object]]], self: BridgeCommands, limit: int = 100, **more: Any
) -> list[dict[str, object]]:
    found = records(self, limit, **more)
    return found[:99]


@AUDITS.around(0, BridgeCommands, "_shown")
def what_lies_in_lists_is_not_redacted(
    shown: Real[object], self: BridgeCommands, params: Mapping[str, object]
) -> object:
    found = shown(self, params)
    lists = {key: value for key, value in params.items() if isinstance(value, list)}
    return {**found, **lists} if isinstance(found, dict) else found


@AUDITS.instead(0, Phone, "is_called")
def an_alias_beats_an_id(self: Phone, selector: str) -> bool:
    return selector.lower() in (alias.lower() for alias in self.aliases)


@AUDITS.around(0, Phones, "_newest_first")
def the_newest_status_comes_last(newest: Real[list[Phone]], self: Phones) -> list[Phone]:
    return list(reversed(newest(self)))


@AUDITS.instead(5, Notifications, "recent", Invariant.AS_TOLD, Invariant.REPORTED)
def few_notifications_are_the_oldest(self: Notifications, limit: int) -> list[Mapping[str, object]]:
    return list(reversed(list(self._ring)[:limit]))


@AUDITS.instead(30, MediaRegistry, "lookup")
def what_is_read_is_as_old_as_it_was(self: MediaRegistry, token: str, now: Moment) -> MediaEntry | None:
    entry = self._entries.get(token, now.mono)
    if entry is not None:
        entry.last_accessed = now.wall
    return entry


@AUDITS.around(26, Uploads, "reserve")
def the_newest_upload_makes_room(
    reserve: Real[None], self: Uploads, owner: str, size: int, evict: Callable[[str], None]
) -> None:
    self._owned = dict(reversed(self._owned.items()))
    try:
        reserve(self, owner, size, evict)
    finally:
        self._owned = dict(reversed(self._owned.items()))


@AUDITS.instead(1, session_routes, "session_record")
def who_was_seen_last_was_seen_first(session: Session, is_current: bool, *, online: bool = False) -> dict[str, object]:
    return {**session_record(session, is_current, online=online), "first_seen": session.last_seen}


@AUDITS.instead(1, ClientSocket, "evict")
def a_revoked_socket_is_closed_as_if_it_had_ended(self: ClientSocket, reason: str) -> None:
    self.end_programs()
    self.complain(reason, "session_ended")
    self.socket.close(1000, reason)


@AUDITS.around(3, Sessions, "active")
def sessions_are_listed_by_their_age(active: Real[list[Session]], self: Sessions, now: Moment) -> list[Session]:
    return sorted(active(self, now), key=lambda one: one.created_at)


@AUDITS.around(0, ForkChat, "__init__")
def a_copy_forgets_its_orders(init: Real[None], self: ForkChat, *, source: str, session: Any, now: float) -> None:
    init(self, source=source, session=evolve(session, system_prompt=None), now=now)


@AUDITS.around(0, ListMessages, "__init__")
def the_latest_rows_begin_at_the_oldest(init: Real[None], self: ListMessages, **more: Any) -> None:
    init(self, **{**more, "latest": False})


@AUDITS.around(3, runs._Runs, "events")
def a_run_is_read_by_all(events: Real[Any], self: Any, request: Request) -> Any:
    run = self._api.runs.get(request.params["run_id"])
    if run is not None and run.reader is not None and run.reader.state is SubscriberState.READING:
        return Response(200)
    return (yield from events(self, request))


@AUDITS.instead(4, VoiceLife, "missed")
def sound_that_was_heard_is_told_again(self: VoiceLife, cursor: Cursor) -> tuple[str, ...]:
    return tuple(text for ids, text in self._ring if ids.event > cursor.event or ids.audio)


@AUDITS.plant(1, Invariant.AS_TOLD, Invariant.VOICE_OVER)
def a_voice_session_waits_for_a_minute_more(patch: Patch) -> None:
    for_ever = voice_session.UNATTENDED + 60.0
    for module in (voice_session, session):
        patch.setattr(module, "UNATTENDED", for_ever)


AUDITS.put(2, "an_address_has_the_share_of_all", Strangers, "_fits", lambda self, address: True)
AUDITS.put(0, "a_423_is_an_error", bridge, "_BLOCKED_STATUSES", (403,))
AUDITS.put(3, "a_run_is_forgotten_after_half_an_hour", chatrun, "KEEP_ENDED", 1_800.0)
AUDITS.put(0, "an_early_yes_is_for_whatever_is_asked", approvals, "SETTLING", 0.0)
AUDITS.put(23, "a_key_is_good_for_ten_minutes", idempotency, "KEEP", 600.0)
AUDITS.put(
    17, "five_terminals_fit", terminals, "MAX_TERMINALS", terminal.MAX_TERMINALS + 1, Invariant.AS_TOLD, Invariant.BOOKS
)
AUDITS.put(
    6, "the_board_asks_for_all_commands", _RelayCalls, "activity", lambda self, request: self._get("/bridge/activity")
)
