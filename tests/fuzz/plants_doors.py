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
from tests.fuzz.plant import Patch, Plant

__all__ = ["DOORS"]


def _a_page_is_taken_for_a_program(patch: Patch) -> None:
    patch.setattr(callers, "is_foreign_page", lambda request: False)


def _a_name_may_be_rebound(patch: Patch) -> None:
    patch.setattr(callers, "is_loopback_name", lambda url: True)


def _a_proxy_is_taken_for_a_program(patch: Patch) -> None:
    patch.setattr(callers, "is_forwarded", lambda request: False)


def _a_page_may_open_the_socket(patch: Patch) -> None:
    patch.setattr(access, "is_foreign_page", lambda request: False)


def _any_secret_will_do(patch: Patch) -> None:
    patch.setattr("svc_proto.relay.local_door.shows_secret", lambda headers, secret: True)


def _a_wrong_token_is_taken_for_another(patch: Patch) -> None:
    real = access._bearer

    def lax(request: Request, sessions: Sessions, now: Moment) -> Session:
        living = sessions.active(now)
        return living[0] if living else real(request, sessions, now)

    patch.setattr(access, "_bearer", lax)


def _half_a_request_is_carried_out(patch: Patch) -> None:
    patch.setattr(Engine, "end_holder", lambda self, holder, refused: None)
    patch.setattr(Exchange, "_ask_again", lambda self: None)


DOORS = (
    Plant(_a_page_is_taken_for_a_program, 3, (Invariant.DOORS,)),
    Plant(_a_name_may_be_rebound, 25, (Invariant.DOORS,)),
    Plant(_a_proxy_is_taken_for_a_program, 2, (Invariant.DOORS,), quick=True),
    Plant(_a_page_may_open_the_socket, 1, (Invariant.DOORS,)),
    Plant(_any_secret_will_do, 6, (Invariant.DOORS,)),
    Plant(_a_wrong_token_is_taken_for_another, 1, (Invariant.DOORS, Invariant.DEAD_TOKEN)),
    Plant(_half_a_request_is_carried_out, 2, (Invariant.AFTER_END,), quick=True),
)
