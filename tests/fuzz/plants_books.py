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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["BOOKS"]

BOOKS = Bed[Invariant]()


@BOOKS.plant(0, Invariant.BOOKS, quick=True)
def a_choice_outlives_its_phone(patch: Patch) -> None:
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


@BOOKS.plant(0, Invariant.REPORTED)
def a_phone_reports_once(patch: Patch) -> None:
    report, known = DevicePhone._report_status, WeakSet[DevicePhone]()

    def once(self: DevicePhone) -> None:
        if self not in known:
            known.add(self)
            report(self)

    patch.setattr(DevicePhone, "_report_status", once)


@BOOKS.around(16, ChatRuns, "stop", Invariant.BOOKS, quick=True)
def a_run_stopped_in_line_keeps_its_slot(stop: Real[None], self: ChatRuns, run: ChatRun, now: Moment) -> None:
    if run.id in self._waiting:
        run.has_slot = False
    stop(self, run, now)


@BOOKS.around(3, _Upload, "abandon", Invariant.BOOKS)
def a_cut_upload_keeps_its_share(abandon: Real[None], self: _Upload) -> None:
    self._reserved = 0
    abandon(self)


@BOOKS.around(2, Http2Sender, "_forget", Invariant.BOOKS)
def a_window_goes_with_its_stream(forget: Real[None], self: Http2Sender, known: Stream) -> None:
    known.owed = 0
    forget(self, known)


@BOOKS.around(16, Socket, "heard", Invariant.BOOKS, Invariant.SOCKETS_ENDED)
def who_talks_is_not_closed(heard: Real[None], self: Socket, texts: Sequence[str] = ()) -> None:
    heard(self, texts)
    self._timer.set(self._keepalive.due)
