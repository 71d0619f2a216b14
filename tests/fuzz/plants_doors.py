"""Bugs to plant in the doors: somebody is believed who should not be, or goes on behind the end of a session."""

from __future__ import annotations

from fuzz.invariants import Invariant
from svc_proto.basics.moment import Moment
from svc_proto.engine import callers
from svc_proto.engine.core import Engine
from svc_proto.engine.exchange import Exchange
from svc_proto.engine.message import Request
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.relay import access
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["DOORS"]

DOORS = Bed[Invariant]()


@DOORS.plant(6, Invariant.DOORS)
def any_secret_will_do(patch: Patch) -> None:
    patch.setattr("svc_proto.relay.local_door.shows_secret", lambda headers, secret: True)


@DOORS.around(1, access, "_bearer", Invariant.DOORS, Invariant.DEAD_TOKEN)
def a_wrong_token_is_taken_for_another(
    real: Real[Session], request: Request, sessions: Sessions, now: Moment
) -> Session:
    living = sessions.active(now)
    return living[0] if living else real(request, sessions, now)


@DOORS.plant(2, Invariant.AFTER_END, quick=True)
def half_a_request_is_carried_out(patch: Patch) -> None:
    patch.setattr(Engine, "end_holder", lambda self, holder, refused: None)
    patch.setattr(Exchange, "_ask_again", lambda self: None)


DOORS.put(3, "a_page_is_taken_for_a_program", callers, "is_foreign_page", lambda request: False, Invariant.DOORS)
DOORS.put(25, "a_name_may_be_rebound", callers, "is_loopback_name", lambda url: True, Invariant.DOORS)
DOORS.put(
    2, "a_proxy_is_taken_for_a_program", callers, "is_forwarded", lambda request: False, Invariant.DOORS, quick=True
)
DOORS.put(1, "a_page_may_open_the_socket", access, "is_foreign_page", lambda request: False, Invariant.DOORS)
