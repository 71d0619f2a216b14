"""Bugs to plant in the lives of sessions and phones: lifetimes, renewals, ends, a store that fails, a phone again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz.invariants import Invariant
from svc_proto.basics.entropy import Entropy, new_uuid
from svc_proto.basics.moment import Moment
from svc_proto.device.safety.gate import SafetyGate
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines import bridge, grants, sessions
from svc_proto.machines.bridge import BridgeCommands
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.relay.client_socket import ClientSocket
from svc_proto.relay.service import Relay
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["LIVES"]

LIVES = Bed[Invariant]()


@LIVES.plant(31, Invariant.LIVE_GRANT, Invariant.GRANT_HELD)
def a_socket_keeps_the_grants_of_its_welcome(patch: Patch) -> None:
    welcome = ClientSocket._welcome
    kept: dict[ClientSocket, dict[str, float | None]] = {}

    def remember(self: ClientSocket, session: Session, token: str, identity: str) -> bool:
        kept[self] = session.grants
        return welcome(self, session, token, identity)

    def holds(self: ClientSocket, channel: str) -> bool:
        wall = self.relay.engine.now.wall
        return self.session is not None and self.session.is_active(wall) and grants.holds(kept[self], channel, wall)

    patch.setattr(ClientSocket, "_welcome", remember)
    patch.setattr(ClientSocket, "holds", holds)


@LIVES.plant(2, Invariant.SETTLED, Invariant.AFTER_END, quick=True)
def a_revoked_caller_waits_on(patch: Patch) -> None:
    patch.setattr(Engine, "end_holder", lambda self, holder, refused: None)


@LIVES.around(111, Relay, "save", Invariant.LIFETIME, Invariant.DEAD_TOKEN)
def a_store_that_takes_no_change_is_not_told(
    save: Real[Flow[None]], self: Relay, session: Session, *, again: bool = False
) -> Flow[None]:
    yield from save(self, session, again=again)


def _by_the_clock_of_the_start(patch: Patch, name: str, place: int) -> None:
    starts: dict[Sessions, Moment] = {}
    on_started, method = Relay.on_started, getattr(Sessions, name)

    def begin(self: Relay) -> None:
        on_started(self)
        starts[self.sessions] = self.started

    def late(self: Sessions, *args: Any, **options: Any) -> Any:
        began, now = starts[self], args[place]
        wrong = Moment(now.mono, began.wall + now.mono - began.mono)
        return method(self, *args[:place], wrong, *args[place + 1 :], **options)

    patch.setattr(Relay, "on_started", begin)
    patch.setattr(Sessions, name, late)


@LIVES.plant(0, Invariant.LIFETIME, quick=True)
def a_lifetime_counts_from_the_clock_of_the_start(patch: Patch) -> None:
    _by_the_clock_of_the_start(patch, "create", 0)


@LIVES.plant(8, Invariant.LIFETIME)
def a_renewal_counts_from_the_clock_of_the_start(patch: Patch) -> None:
    _by_the_clock_of_the_start(patch, "patch", 1)


@LIVES.plant(11, Invariant.SOCKETS_ENDED, Invariant.BOOKS)
def nobody_looks_at_a_clock_that_was_set(patch: Patch) -> None:
    patch.setattr("svc_proto.relay.service.RECHECK", 1e12)


@LIVES.around(0, sessions, "session_expiry", Invariant.LIFETIME, quick=True)
def a_lifetime_has_no_maximum(expiry: Real[float | None], wall: float, ttl: Any, max_ttl: float | None) -> float | None:
    return expiry(wall, ttl, None)


@LIVES.around(1, Sessions, "patch", Invariant.LIFETIME)
def a_renewal_lets_short_grants_grow(
    change: Real[None], self: Sessions, session: Session, now: Moment, **options: Any
) -> None:
    session.preset = ()
    change(self, session, now, **options)


@LIVES.plant(1, Invariant.ONE_ANSWER, Invariant.RECOVERY, quick=True)
def a_request_id_is_given_again(patch: Patch) -> None:
    settle = BridgeCommands._settle
    used: list[str] = []

    def remember(self: BridgeCommands, command: Any, trigger: bridge.BridgeTrigger) -> None:
        settle(self, command, trigger)
        used.append(command.request_id)

    patch.setattr(BridgeCommands, "_settle", remember)

    def ids(entropy: Entropy) -> Iterator[str]:
        while True:
            yield used.pop() if used else new_uuid(entropy)

    patch.setattr("svc_proto.relay.service.uuids", ids)


@LIVES.around(29, Relay, "forget", Invariant.REACHED, quick=True)
def an_old_socket_takes_the_phone_along(forget: Real[None], self: Relay, client: ClientSocket) -> None:
    forget(self, client)
    if client.session is None:
        return
    for number in list(self.clients):
        phone = self.phones.of_socket(number)
        if phone is not None and phone.device_id == client.session.device_id:
            self.remove_phone(number)


@LIVES.plant(20, Invariant.CONFIRMED, Invariant.NO_BUG)
def a_question_outlives_its_connection(patch: Patch) -> None:
    patch.setattr(SafetyGate, "connection_lost", lambda self: None)
