"""What a planted bug is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import frozen

from fuzz.invariants import Invariant

__all__ = ["Patch", "Plant"]

Patch = pytest.MonkeyPatch


@frozen
class Plant:
    """A bug, the seed of a world that shows it, and the invariants of which one must find it.

    Those that are `quick` are looked for each time: of each invariant one that is soon found, and what takes no time.
    """

    plant: Callable[[Patch], None]
    seed: int
    found_by: tuple[Invariant, ...]
    quick: bool = False

    @property
    def noticed_by(self) -> tuple[Invariant, ...]:
        """Those, and what may come first: the books, and who looks through the house in the end."""
        return (*self.found_by, Invariant.BOOKS, Invariant.AS_TOLD)

    @property
    def name(self) -> str:
        return self.plant.__name__.strip("_")
