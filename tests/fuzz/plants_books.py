"""Bugs to plant in what nobody is told of: a place that is not given back, a record or a choice without its owner."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

from fuzz.invariants import Invariant
from svc_proto.basics.moment import Moment
from svc_proto.device.phone import Phone as DevicePhone
from svc_proto.engine.socket import Socket
from svc_proto.machines import phones
from svc_proto.machines.chatrun import ChatRun, ChatRuns
from svc_proto.machines.phones import Phones
from svc_proto.relay.routes.media import _Upload
from svc_proto.wire.http2_sender import Http2Sender
from svc_proto.wire.http2_stream import Stream
from tests.fuzz.plant import Patch, Plant

__all__ = ["BOOKS"]


def _a_choice_outlives_its_phone(patch: Patch) -> None:
    remove, choose = Phones.remove, Phones.choose

    def keep(self: Phones, socket: int) -> phones.Phone | None:
        before = self._active
        gone = remove(self, socket)
        self._active = before
        return gone

    def look(self: Phones, selector: str | None) -> phones.Phone:
        before = self._active
        self._active = before if before in self._phones else None
        try:
            return choose(self, selector)
        finally:
            self._active = before

    patch.setattr(Phones, "remove", keep)
    patch.setattr(Phones, "choose", look)


def _a_phone_reports_once(patch: Patch) -> None:
    report, known = DevicePhone._report_status, WeakSet[DevicePhone]()

    def once(self: DevicePhone) -> None:
        if self not in known:
            known.add(self)
            report(self)

    patch.setattr(DevicePhone, "_report_status", once)


def _a_run_stopped_in_line_keeps_its_slot(patch: Patch) -> None:
    stop = ChatRuns.stop

    def forgetful(self: ChatRuns, run: ChatRun, now: Moment) -> None:
        if run.id in self._waiting:
            run.has_slot = False
        stop(self, run, now)

    patch.setattr(ChatRuns, "stop", forgetful)


def _a_cut_upload_keeps_its_share(patch: Patch) -> None:
    abandon = _Upload.abandon

    def forgetful(self: _Upload) -> None:
        self._reserved = 0
        abandon(self)

    patch.setattr(_Upload, "abandon", forgetful)


def _a_window_goes_with_its_stream(patch: Patch) -> None:
    forget = Http2Sender._forget

    def forgetful(self: Http2Sender, known: Stream) -> None:
        known.owed = 0
        forget(self, known)

    patch.setattr(Http2Sender, "_forget", forgetful)


def _who_talks_is_not_closed(patch: Patch) -> None:
    heard = Socket.heard

    def always(self: Socket, texts: Sequence[str] = ()) -> None:
        heard(self, texts)
        self._timer.set(self._keepalive.due)

    patch.setattr(Socket, "heard", always)


BOOKS = (
    Plant(_a_choice_outlives_its_phone, 0, (Invariant.BOOKS,), quick=True),
    Plant(_a_phone_reports_once, 0, (Invariant.REPORTED,)),
    Plant(_a_run_stopped_in_line_keeps_its_slot, 16, (Invariant.BOOKS,), quick=True),
    Plant(_a_cut_upload_keeps_its_share, 3, (Invariant.BOOKS,)),
    Plant(_a_window_goes_with_its_stream, 2, (Invariant.BOOKS,)),
    Plant(_who_talks_is_not_closed, 16, (Invariant.BOOKS, Invariant.SOCKETS_ENDED)),
)
