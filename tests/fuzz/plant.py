"""What a planted bug is: something that is there in the place of something else, and how a world shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

import pytest
from attrs import frozen

__all__ = ["Bed", "Patch", "Plant", "Real"]

Patch = pytest.MonkeyPatch
Planting: TypeAlias = Callable[[Patch], None]
Sign = TypeVar("Sign")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., object])
Real: TypeAlias = Callable[..., Result]
"""What is there otherwise, as a function that is called around it is given it."""


@frozen
class Plant(Generic[Sign]):
    """A bug, the seed of a world that shows it, and the signs of which one must be seen then.

    Those that are `quick` are looked for each time: of each sign one that is soon found, and what takes no time.
    """

    name: str
    plant: Planting
    seed: int
    found_by: tuple[Sign, ...]
    quick: bool


class Bed(Generic[Sign]):
    """Plants that belong together, and the signs of those that name none.

    An `owner` is a class or a module, and `place` the name of what is replaced there.
    """

    def __init__(self, *usual: Sign) -> None:
        self.plants: list[Plant[Sign]] = []
        self._usual = usual

    def plant(self, seed: int, *found_by: Sign, quick: bool = False) -> Callable[[Planting], Planting]:
        """Decorate what does it by hand."""

        def take(function: Planting) -> Planting:
            self.plants.append(Plant(function.__name__, function, seed, found_by or self._usual, quick))
            return function

        return take

    def put(
        self, seed: int, name: str, owner: object, place: str, value: object, *found_by: Sign, quick: bool = False
    ) -> None:
        """One that is there in the place of a value, or of a method in a few words."""

        def plant(patch: Patch) -> None:
            patch.setattr(owner, place, value)

        self.plants.append(Plant(name, plant, seed, found_by or self._usual, quick))

    def instead(
        self, seed: int, owner: object, place: str, *found_by: Sign, quick: bool = False
    ) -> Callable[[Function], Function]:
        """Decorate what is called in the place of a function."""

        def take(function: Function) -> Function:
            self.put(seed, function.__name__, owner, place, function, *found_by, quick=quick)
            return function

        return take

    def around(
        self, seed: int, owner: object, place: str, *found_by: Sign, quick: bool = False
    ) -> Callable[[Function], Function]:
        """Decorate the same, which is given that function as its first argument."""

        def take(function: Function) -> Function:
            real = getattr(owner, place)

            def called(*args: Any, **options: Any) -> Any:
                return function(real, *args, **options)

            self.put(seed, function.__name__, owner, place, called, *found_by, quick=quick)
            return function

        return take
