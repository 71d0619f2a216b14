"""Bugs to plant in what is kept for a while: media, questions, rows, what waits to be told, and sessions of voice."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fuzz.invariants import Invariant
from svc_proto.api import turn
from svc_proto.api.rows import Message
from svc_proto.api.subscriber import Subscriber, SubscriberState
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import FinishBlob
from svc_proto.device.performer import Performer
from svc_proto.engine.flow import Flow, ask
from svc_proto.engine.socket import Socket
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.media import MediaEntry, MediaRegistry, MediaState
from svc_proto.relay.media import Media
from svc_proto.relay.upload import DISK_PATIENCE, IncomingFile
from svc_proto.voice.realtime.conversation import VoiceConversation
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["KEPT"]

KEPT = Bed[Invariant]()

IMPATIENT = 0.3  # s, where a disk has two minutes


@KEPT.plant(17, Invariant.MEDIA_LIFE, quick=True)
def a_token_survives_its_eviction(patch: Patch) -> None:
    evicted: dict[str, MediaEntry] = {}
    drop, lookup = Media._drop, MediaRegistry.lookup

    def keep(self: Media, entry: MediaEntry) -> None:
        if entry.state is MediaState.EVICTED:
            evicted[entry.token] = entry
        drop(self, entry)

    patch.setattr(Media, "_drop", keep)
    patch.setattr(MediaRegistry, "lookup", lambda self, token, now: lookup(self, token, now) or evicted.get(token))


@KEPT.around(9, MediaRegistry, "lookup", Invariant.MEDIA_LIFE)
def reading_extends_a_token(
    lookup: Real[MediaEntry | None], self: MediaRegistry, token: str, now: Moment
) -> MediaEntry | None:
    entry = lookup(self, token, now)
    if entry is not None:
        entry.deadline = now.mono + self._ttl
        self._entries.put(token, entry, entry.deadline)
    return entry


@KEPT.instead(100, IncomingFile, "finish", Invariant.NO_BUG)
def an_upload_is_finished_twice(self: IncomingFile) -> Flow[str]:
    assert self._blob is not None
    order = FinishBlob(self.engine.new_op(), self._blob)
    path = yield from ask(self.engine, order, within=IMPATIENT)
    if isinstance(path, Failure) and path.kind is FailureKind.TIMED_OUT:
        path = yield from ask(self.engine, FinishBlob(self.engine.new_op(), self._blob), within=DISK_PATIENCE)
    if isinstance(path, Failure):
        raise self.not_stored(path)
    self._blob = None
    return path


@KEPT.around(2, Subscriber, "take", Invariant.STREAM)
def nobody_is_told_what_was_before_him(take: Real[None], self: Subscriber, event: Any) -> None:
    if self.state is not SubscriberState.AWAITED:
        take(self, event)


@KEPT.around(119, turn, "_store", Invariant.STORED, quick=True)
def a_row_that_cannot_be_stored_is_forgotten(store: Real[Flow[None]], api: Any, *rows: Message) -> Flow[None]:
    with suppress(Refused):
        yield from store(api, *rows)


@KEPT.around(66, VoiceConversation, "provider_lost", Invariant.VOICE_OVER, quick=True)
def a_session_outlives_its_provider(lost: Real[None], self: VoiceConversation, message: str) -> None:
    run = self.runs.turn
    if run is None or not run.live:
        lost(self, message)


KEPT.put(20, "questions_outlive_their_connection", Performer, "drop", lambda self: None, Invariant.CONFIRMED)
KEPT.put(31, "a_drained_socket_wakes_nobody", Socket, "drained", lambda self: None, Invariant.ONE_END)
