"""Errands: one person does one thing after another with what is their own, and knows what each answer has to be.

An errand is a generator. It yields what is asked (`Ask`), or for how long it rests, and is given the answer; beside it
goes the plainest model of the specification, which each answer is compared with. Since nobody else touches what it
works with, there is one right answer. Where an answer is lost, or somebody has trouble, a question that changes nothing
is asked again, and after any other the errand is given up: nobody knows what came of it.

What outlives an errand (`lasts`) is asked for once more when all faults are over: no restart may have touched it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, field, frozen

from fuzz.invariants import Invariant
from fuzz.model import Session, violated
from tests.support.sim_http import RequestClient

if TYPE_CHECKING:
    from fuzz.people.chats import Chats
    from fuzz.people.crowd import Crowd
    from fuzz.people.pairing import Pairing

__all__ = ["Ask", "Clerk", "Errand", "Errands", "GivenUp", "Kind", "is_one", "said_back"]

GIVEN_UP = "errands given up"
AGAIN = 7.0  # s after which a question that had no answer is asked again
TRIES = 12
SERVER_ERRORS = range(500, 600)
NO_ANSWER = (0, 401, 408, 429, *SERVER_ERRORS)

Errand: TypeAlias = "Generator[Ask | float, RequestClient, None]"
Kind: TypeAlias = "Callable[[Clerk], Errand]"


class GivenUp(Exception):  # noqa: N818 - the name says what happened
    """Nobody knows any more what would be right."""


@frozen
class Ask:
    """What is asked of the API, or of the relay by a session or by the operator."""

    method: str
    path: str
    body: object = None
    of_relay: bool = False
    by: Session | None = None
    headers: Mapping[str, str] = field(factory=dict)
    for_a_place: bool = False  # of which there may be none
    takes: tuple[int, ...] = ()  # statuses that are an answer here, and elsewhere a reason to give up


@define(eq=False)
class Clerk:
    """Somebody on an errand, and whom they know."""

    crowd: Crowd
    chats: Chats
    pairing: Pairing
    rng: Random
    session: Session  # of the relay
    name: str
    begun: float
    outages: int
    busy: dict[str, None]  # what one of them alone may work with, and does
    lasts: list[Kind] = field(factory=list)

    @property
    def same_programs(self) -> bool:
        """Whether nothing was started anew meanwhile: what is kept in memory is still there."""
        return self.outages == self.crowd.world.outages

    def ask(
        self, method: str, path: str, body: object = None, **more: Any
    ) -> Generator[Ask | float, RequestClient, RequestClient]:
        """Ask the API."""
        return (yield Ask(method, path, body, **more))

    def relay(
        self, method: str, path: str, body: object = None, **more: Any
    ) -> Generator[Ask | float, RequestClient, RequestClient]:
        """Ask the relay as a session, or with `by=None` as the operator."""
        return (yield Ask(method, path, body, of_relay=True, **{"by": self.session, **more}))

    def alone(self, what: str, errand: Errand) -> Errand:
        """Do this if nobody else works with something that only one of all may work with at a time."""
        if what in self.busy:
            return
        self.busy[what] = None
        try:
            yield from errand
        finally:
            del self.busy[what]

    def word(self) -> str:
        """A word that nobody else says."""
        return f"errand{self.crowd.number()}x"


@define(eq=False)
class _Way:
    """An errand under way."""

    clerk: Clerk
    flow: Errand
    about: str
    tries: int = 1  # of what is asked now


class Errands:
    """The steps of those who are sent on errands, of these kinds."""

    def __init__(self, crowd: Crowd, chats: Chats, pairing: Pairing, kinds: tuple[Kind, ...]) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._chats = chats
        self._pairing = pairing
        self._kinds = kinds
        self._clerks: list[Clerk] = []
        self._busy: dict[str, None] = {}

    def begin(self, which: int) -> None:
        """Send somebody."""
        if not self.crowd.sessions:
            return
        crowd = self.crowd
        number = crowd.number()
        clerk = Clerk(
            crowd,
            self._chats,
            self._pairing,
            Random(f"errand {self.world.script.seed} {number}"),
            crowd.session(number),
            f"errand {number}",
            crowd.now,
            self.world.outages,
            self._busy,
        )
        self._clerks.append(clerk)
        kind = self._kinds[which % len(self._kinds)]
        self._go(_Way(clerk, kind(clerk), kind.__name__), None)

    def look_back(self) -> None:
        """Everything is well again: what was to last is there."""
        for clerk in self._clerks:
            for kind in clerk.lasts:
                clerk.begun, clerk.outages = self.crowd.now, self.world.outages
                self._go(_Way(clerk, kind(clerk), kind.__name__), None)

    def _go(self, way: _Way, answer: RequestClient | None) -> None:
        try:
            order = next(way.flow) if answer is None else way.flow.send(answer)
        except StopIteration:
            self.world.count(f"errands: {way.about}")
            return
        except GivenUp:
            self._give_up(way)
            return
        if isinstance(order, float):
            self.world.sim.after(order, lambda: self._go(way, None))
        else:
            self._ask(way, order)

    def _ask(self, way: _Way, order: Ask) -> None:
        sent, world = self.crowd.now, self.world

        def done(caller: RequestClient) -> None:
            if caller.status == 401 and order.by is not None and not order.takes:
                self.crowd.refused(order.by, sent)
            elif caller.status in order.takes or caller.status not in NO_ANSWER:
                way.tries = 1
                self._go(way, caller)
                return
            else:
                self._check_trouble(way, order, caller)
                if order.method == "GET" and way.tries < TRIES and not world.left:
                    way.tries += 1
                    world.sim.after(AGAIN, lambda: self._ask(way, order))
                    return
            self._give_up(way)

        if world.left:
            self._give_up(way)
            return
        if order.of_relay:
            self.crowd.ask(order.by, order.method, order.path, order.body, done, order.headers)
        else:
            self._chats.ask(order.method, order.path, order.body, done, headers=order.headers)

    def _give_up(self, way: _Way) -> None:
        way.flow.close()
        self.world.count(GIVEN_UP)

    def _check_trouble(self, way: _Way, order: Ask, caller: RequestClient) -> None:
        """Who has no place for us says so; nothing else fails while all is well."""
        world = self.world
        if order.for_a_place or caller.status in (0, 401, 408) or world.store_trouble or world.disk_trouble:
            return
        if world.quiet_since(way.clerk.begun) and world.outages == way.clerk.outages and not world.store_refused:
            told = f"{caller.status} {caller.answer.body!r:.200}"
            violated(Invariant.STATUS, f"{way.about}: {order.method} {order.path} got {told}, and all is well")


def said_back(told: str, text: str) -> None:
    """A model that is well says back what it was asked; one that breaks off says some of it."""
    whole, said = f"You said {text}", told.strip()
    if whole.startswith(said) and said != whole:
        raise GivenUp
    if said != whole:
        violated(Invariant.OWN_BYTES, f"{text!r} was answered {told!r:.100}")


def is_one(caller: RequestClient, status: int, why: str, code: str = "") -> Any:
    """The answer has this status, and code; its body."""
    told = caller.answer.json
    error = told.get("error") if isinstance(told, dict) else None
    named = error.get("code") if isinstance(error, dict) else told.get("code") if isinstance(told, dict) else None
    if caller.status != status or (code and named != code):
        wanted = f"{status} {code}".strip()
        so = f"{caller.method} {caller.path}: {caller.status} {caller.answer.body!r:.300}"
        violated(Invariant.AS_TOLD, f"{why} is answered {wanted}; {so}")
    return told
