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
from tests.fuzz.plant import Patch, Plant

__all__ = ["KEPT"]

IMPATIENT = 0.3  # s, where a disk has two minutes


def _a_token_survives_its_eviction(patch: Patch) -> None:
    evicted: dict[str, MediaEntry] = {}
    drop, lookup = Media._drop, MediaRegistry.lookup

    def keep(self: Media, entry: MediaEntry) -> None:
        if entry.state is MediaState.EVICTED:
            evicted[entry.token] = entry
        drop(self, entry)

    patch.setattr(Media, "_drop", keep)
    patch.setattr(MediaRegistry, "lookup", lambda self, token, now: lookup(self, token, now) or evicted.get(token))


def _reading_extends_a_token(patch: Patch) -> None:
    lookup = MediaRegistry.lookup

    def longer(self: MediaRegistry, token: str, now: Moment) -> MediaEntry | None:
        entry = lookup(self, token, now)
        if entry is not None:
            entry.deadline = now.mono + self._ttl
            self._entries.put(token, entry, entry.deadline)
        return entry

    patch.setattr(MediaRegistry, "lookup", longer)


def _an_upload_is_finished_twice(patch: Patch) -> None:
    def finish(self: IncomingFile) -> Flow[str]:
        assert self._blob is not None
        order = FinishBlob(self.engine.new_op(), self._blob)
        path = yield from ask(self.engine, order, within=IMPATIENT)
        if isinstance(path, Failure) and path.kind is FailureKind.TIMED_OUT:
            path = yield from ask(self.engine, FinishBlob(self.engine.new_op(), self._blob), within=DISK_PATIENCE)
        if isinstance(path, Failure):
            raise self.not_stored(path)
        self._blob = None
        return path

    patch.setattr(IncomingFile, "finish", finish)


def _questions_outlive_their_connection(patch: Patch) -> None:
    patch.setattr(Performer, "drop", lambda self: None)


def _nobody_is_told_what_was_before_him(patch: Patch) -> None:
    take = Subscriber.take

    def late(self: Subscriber, event: Any) -> None:
        if self.state is not SubscriberState.AWAITED:
            take(self, event)

    patch.setattr(Subscriber, "take", late)


def _a_row_that_cannot_be_stored_is_forgotten(patch: Patch) -> None:
    store = turn._store

    def hopeful(api: Any, *rows: Message) -> Flow[None]:
        with suppress(Refused):
            yield from store(api, *rows)

    patch.setattr(turn, "_store", hopeful)


def _a_session_outlives_its_provider(patch: Patch) -> None:
    lost = VoiceConversation.provider_lost

    def hopeful(self: VoiceConversation, message: str) -> None:
        run = self.runs.turn
        if run is None or not run.live:
            lost(self, message)

    patch.setattr(VoiceConversation, "provider_lost", hopeful)


def _a_drained_socket_wakes_nobody(patch: Patch) -> None:
    patch.setattr(Socket, "drained", lambda self: None)


KEPT = (
    Plant(_a_token_survives_its_eviction, 17, (Invariant.MEDIA_LIFE,), quick=True),
    Plant(_reading_extends_a_token, 9, (Invariant.MEDIA_LIFE,)),
    Plant(_an_upload_is_finished_twice, 100, (Invariant.NO_BUG,)),
    Plant(_questions_outlive_their_connection, 20, (Invariant.CONFIRMED,)),
    Plant(_nobody_is_told_what_was_before_him, 2, (Invariant.STREAM,)),
    Plant(_a_row_that_cannot_be_stored_is_forgotten, 119, (Invariant.STORED,), quick=True),
    Plant(_a_session_outlives_its_provider, 66, (Invariant.VOICE_OVER,), quick=True),
    Plant(_a_drained_socket_wakes_nobody, 31, (Invariant.ONE_END,)),
)
