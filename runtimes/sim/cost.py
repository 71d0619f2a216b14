"""Cost model of the simulator: how much simulated time one call of a core's `handle` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import ClassVar, Self

from attrs import frozen

from svc_proto.commands import Command, Query
from svc_proto.facts import Done, Fact

__all__ = ["HandleCost", "MeteredRows"]

SHARE = 1 / 3  # share of drawn worlds that have a cost
FACTORS = (1.0, 20.0)  # from an idle core of a current machine to a small board that shares its core with other work


@frozen(kw_only=True)
class HandleCost:
    """Seconds that one call of `handle` takes. Assign to `Simulation.cost` before a host is made, or to `SimHost.cost`.

    `MEASURED` is CPython 3.11 on one idle core of a current x86-64 machine:

    - `per_call`: a request with a handful of facts takes 100 to 200 us of processor time with everything around it;
    - `per_record`: to compare one stored session with the known one takes 20 us;
    - `per_byte`: JSON is written at 13 ns and read at 24 ns for each byte. Bytes that are only passed on are cheaper.
    """

    NONE: ClassVar[HandleCost]
    MEASURED: ClassVar[HandleCost]

    per_call: float = 0.0  # s for each call, also one without a fact
    per_record: float = 0.0  # s for each row that the core takes from an answer of the store, and each store request
    per_byte: float = 0.0  # s for each byte of payload of the fact and of the commands

    @classmethod
    def draw(cls, seed: int, host: str) -> HandleCost:
        """Draw the cost of a host: `NONE` for two of three seeds, else `MEASURED` times a factor of the host's own.

        The draw has a generator of its own, so nothing else in a simulation with this seed changes by it.
        """
        if Random(f"cost {seed}").random() >= SHARE:
            return cls.NONE
        least, most = FACTORS
        return cls.MEASURED.times(least * (most / least) ** Random(f"cost {seed} {host}").random())

    def times(self, factor: float) -> HandleCost:
        """Return the cost on a host that is `factor` times as slow."""
        return HandleCost(
            per_call=self.per_call * factor, per_record=self.per_record * factor, per_byte=self.per_byte * factor
        )

    def of(self, fact: Fact | None, commands: Sequence[Command], rows: int) -> float:
        """Return the seconds of a call that was given `fact`, took `rows` rows and returned `commands`."""
        records, size = rows, _payload(fact.result if isinstance(fact, Done) else fact)
        for command in commands:
            records += isinstance(command, Query)
            size += _payload(command)
        return self.per_call + self.per_record * records + self.per_byte * size


HandleCost.NONE = HandleCost()
HandleCost.MEASURED = HandleCost(per_call=50e-6, per_record=20e-6, per_byte=20e-9)


class MeteredRows(tuple[object, ...]):
    """Rows of an answer; `report` is called for each row when an iteration yields it for the first time.

    So a core that works through a long answer in several calls pays in each call for the rows of that call.
    """

    _report: Callable[[], None]
    _taken: int

    def __new__(cls, rows: tuple[object, ...], report: Callable[[], None]) -> Self:
        """Create the rows; none of them has been reported yet."""
        metered = super().__new__(cls, rows)
        metered._report, metered._taken = report, 0
        return metered

    def __iter__(self) -> Iterator[object]:
        """Yield the rows; report each one before it is yielded for the first time."""
        for number, row in enumerate(super().__iter__(), start=1):
            if number > self._taken:
                self._taken = number
                self._report()
            yield row


def _payload(value: object) -> int:
    data = value if isinstance(value, bytes) else getattr(value, "data", b"")
    return len(data) if isinstance(data, bytes) else 0
