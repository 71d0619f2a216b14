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
    """Who holds what at the moment: both changes take constant time."""

    def __init__(self) -> None:
        self._held: dict[str, dict[Held, None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        """Who holds something now; it may end meanwhile."""
        return iter(list(self._held))

    def enter(self, holder: str, held: Held) -> None:
        """A request of this holder begins."""
        self._held.setdefault(holder, {})[held] = None

    def leave(self, holder: str, held: Held) -> None:
        """A request of this holder is over; harmless when it was already."""
        mine = self._held.get(holder)
        if mine is not None:
            mine.pop(held, None)
            if not mine:
                del self._held[holder]

    def end(self, holder: str, refused: Refused) -> None:
        """The holder is gone, and with it all that it holds."""
        for held in list(self._held.get(holder, ())):
            held.withdraw(refused)
