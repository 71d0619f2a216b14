"""Exchanges by whose they are, so that they can end when their holder (a session, say) does.

The policy names the holder in `Request.holder`; an exchange without one costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from svc_proto.basics.errors import Refused

__all__ = ["Held", "Holders"]


class Held(Protocol):
    """What ends with its holder."""

    def withdraw(self, refused: Refused) -> None:
        """The holder is gone: stop, and say so as long as that can be said."""
        ...


class Holders:
    """Who holds what at the moment. Whoever ends looks through all of it: that is rare, requests are not."""

    def __init__(self) -> None:
        self._held: dict[Held, str] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        """Who holds something now; it may end meanwhile."""
        return iter(dict.fromkeys(self._held.values()))

    def enter(self, holder: str, held: Held) -> None:
        """A request of this holder begins."""
        self._held[held] = holder

    def leave(self, held: Held) -> None:
        """A request is over; harmless when it was already."""
        self._held.pop(held, None)

    def end(self, holder: str, refused: Refused) -> None:
        """The holder is gone, and with it all that it holds."""
        for held in [held for held, mine in self._held.items() if mine == holder]:
            held.withdraw(refused)
