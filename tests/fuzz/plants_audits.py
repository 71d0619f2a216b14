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
from tests.fuzz.plant import Patch, Plant

__all__ = ["AUDITS"]


def _a_good_token_ends_a_block(patch: Patch) -> None:
    success = Limiter.success

    def forgive(self: Limiter, address: str, now: Moment) -> None:
        success(self, address, now)
        self._blocked.discard(address_key(address))

    patch.setattr(Limiter, "success", forgive)


def _a_stranger_that_leaves_keeps_its_place(patch: Patch) -> None:
    exit_ = Strangers._exit

    def stay(self: Strangers, guest: Guest) -> None:
        address = guest.address
        before = address.guests
        exit_(self, guest)
        address.guests = before if before > self._most // 2 else address.guests

    patch.setattr(Strangers, "_exit", stay)


def _an_address_has_the_share_of_all(patch: Patch) -> None:
    patch.setattr(Strangers, "_fits", lambda self, address: True)


def _the_activity_forgets_the_last_of_a_hundred(patch: Patch) -> None:
    records = BridgeCommands.records

    def fewer(self: BridgeCommands, limit: int = 100, **more: Any) -> list[dict[str, object]]:
        found = records(self, limit, **more)
        return found[:99]

    patch.setattr(BridgeCommands, "records", fewer)


def _what_lies_in_lists_is_not_redacted(patch: Patch) -> None:
    shown = BridgeCommands._shown

    def lax(self: BridgeCommands, params: Mapping[str, object]) -> object:
        found = shown(self, params)
        lists = {key: value for key, value in params.items() if isinstance(value, list)}
        return {**found, **lists} if isinstance(found, dict) else found

    patch.setattr(BridgeCommands, "_shown", lax)


def _an_alias_beats_an_id(patch: Patch) -> None:
    def called(self: Phone, selector: str) -> bool:
        return selector.lower() in (alias.lower() for alias in self.aliases)

    patch.setattr(Phone, "is_called", called)


def _a_423_is_an_error(patch: Patch) -> None:
    patch.setattr(bridge, "_BLOCKED_STATUSES", (403,))


def _the_newest_status_comes_last(patch: Patch) -> None:
    newest = Phones._newest_first
    patch.setattr(Phones, "_newest_first", lambda self: list(reversed(newest(self))))


def _few_notifications_are_the_oldest(patch: Patch) -> None:
    def recent(self: Notifications, limit: int) -> list[Mapping[str, object]]:
        return list(reversed(list(self._ring)[:limit]))

    patch.setattr(Notifications, "recent", recent)


def _what_is_read_is_as_old_as_it_was(patch: Patch) -> None:
    def lookup(self: MediaRegistry, token: str, now: Moment) -> MediaEntry | None:
        entry = self._entries.get(token, now.mono)
        if entry is not None:
            entry.last_accessed = now.wall
        return entry

    patch.setattr(MediaRegistry, "lookup", lookup)


def _the_newest_upload_makes_room(patch: Patch) -> None:
    reserve = Uploads.reserve

    def wrong(self: Uploads, owner: str, size: int, evict: Callable[[str], None]) -> None:
        self._owned = dict(reversed(self._owned.items()))
        try:
            reserve(self, owner, size, evict)
        finally:
            self._owned = dict(reversed(self._owned.items()))

    patch.setattr(Uploads, "reserve", wrong)


def _who_was_seen_last_was_seen_first(patch: Patch) -> None:
    def record(session: Session, is_current: bool, *, online: bool = False) -> dict[str, object]:
        return {**session_record(session, is_current, online=online), "first_seen": session.last_seen}

    patch.setattr(session_routes, "session_record", record)


def _a_revoked_socket_is_closed_as_if_it_had_ended(patch: Patch) -> None:
    def evict(self: ClientSocket, reason: str) -> None:
        self.end_programs()
        self.complain(reason, "session_ended")
        self.socket.close(1000, reason)

    patch.setattr(ClientSocket, "evict", evict)


def _sessions_are_listed_by_their_age(patch: Patch) -> None:
    active = Sessions.active
    patch.setattr(Sessions, "active", lambda self, now: sorted(active(self, now), key=lambda one: one.created_at))


def _a_copy_forgets_its_orders(patch: Patch) -> None:
    init = ForkChat.__init__

    def made(self: ForkChat, *, source: str, session: Any, now: float) -> None:
        init(self, source=source, session=evolve(session, system_prompt=None), now=now)

    patch.setattr(ForkChat, "__init__", made)


def _the_latest_rows_begin_at_the_oldest(patch: Patch) -> None:
    init = ListMessages.__init__

    def made(self: ListMessages, **more: Any) -> None:
        init(self, **{**more, "latest": False})

    patch.setattr(ListMessages, "__init__", made)


def _a_run_is_forgotten_after_half_an_hour(patch: Patch) -> None:
    patch.setattr(chatrun, "KEEP_ENDED", 1_800.0)


def _an_early_yes_is_for_whatever_is_asked(patch: Patch) -> None:
    patch.setattr(approvals, "SETTLING", 0.0)


def _a_run_is_read_by_all(patch: Patch) -> None:
    events = runs._Runs.events

    def shared(self: Any, request: Request) -> Any:
        run = self._api.runs.get(request.params["run_id"])
        if run is not None and run.reader is not None and run.reader.state is SubscriberState.READING:
            return Response(200)
        return (yield from events(self, request))

    patch.setattr(runs._Runs, "events", shared)


def _a_key_is_good_for_ten_minutes(patch: Patch) -> None:
    patch.setattr(idempotency, "KEEP", 600.0)


def _five_terminals_fit(patch: Patch) -> None:
    patch.setattr(terminals, "MAX_TERMINALS", terminal.MAX_TERMINALS + 1)


def _sound_that_was_heard_is_told_again(patch: Patch) -> None:
    def missed(self: VoiceLife, cursor: Cursor) -> tuple[str, ...]:
        return tuple(text for ids, text in self._ring if ids.event > cursor.event or ids.audio)

    patch.setattr(VoiceLife, "missed", missed)


def _a_voice_session_waits_for_a_minute_more(patch: Patch) -> None:
    for_ever = voice_session.UNATTENDED + 60.0
    for module in (voice_session, session):
        patch.setattr(module, "UNATTENDED", for_ever)


def _the_board_asks_for_all_commands(patch: Patch) -> None:
    patch.setattr(_RelayCalls, "activity", lambda self, request: self._get("/bridge/activity"))


AUDITS = (
    Plant(_a_good_token_ends_a_block, 0, (Invariant.AS_TOLD,), quick=True),
    Plant(_a_stranger_that_leaves_keeps_its_place, 2, (Invariant.AS_TOLD,)),
    Plant(_an_address_has_the_share_of_all, 2, (Invariant.AS_TOLD,)),
    Plant(_the_activity_forgets_the_last_of_a_hundred, 0, (Invariant.AS_TOLD,)),
    Plant(_what_lies_in_lists_is_not_redacted, 0, (Invariant.AS_TOLD,)),
    Plant(_an_alias_beats_an_id, 0, (Invariant.AS_TOLD,)),
    Plant(_a_423_is_an_error, 0, (Invariant.AS_TOLD,)),
    Plant(_the_newest_status_comes_last, 0, (Invariant.AS_TOLD,)),
    Plant(_few_notifications_are_the_oldest, 5, (Invariant.AS_TOLD, Invariant.REPORTED)),
    Plant(_what_is_read_is_as_old_as_it_was, 30, (Invariant.AS_TOLD,)),
    Plant(_the_newest_upload_makes_room, 26, (Invariant.AS_TOLD,)),
    Plant(_who_was_seen_last_was_seen_first, 1, (Invariant.AS_TOLD,)),
    Plant(_a_revoked_socket_is_closed_as_if_it_had_ended, 1, (Invariant.AS_TOLD,)),
    Plant(_sessions_are_listed_by_their_age, 3, (Invariant.AS_TOLD,)),
    Plant(_a_copy_forgets_its_orders, 0, (Invariant.AS_TOLD,)),
    Plant(_the_latest_rows_begin_at_the_oldest, 0, (Invariant.AS_TOLD,)),
    Plant(_a_run_is_forgotten_after_half_an_hour, 3, (Invariant.AS_TOLD,)),
    Plant(_an_early_yes_is_for_whatever_is_asked, 0, (Invariant.AS_TOLD,)),
    Plant(_a_run_is_read_by_all, 3, (Invariant.AS_TOLD,)),
    Plant(_a_key_is_good_for_ten_minutes, 23, (Invariant.AS_TOLD,)),
    Plant(_five_terminals_fit, 17, (Invariant.AS_TOLD, Invariant.BOOKS)),
    Plant(_sound_that_was_heard_is_told_again, 4, (Invariant.AS_TOLD,)),
    Plant(_a_voice_session_waits_for_a_minute_more, 1, (Invariant.AS_TOLD, Invariant.VOICE_OVER)),
    Plant(_the_board_asks_for_all_commands, 6, (Invariant.AS_TOLD,)),
)
