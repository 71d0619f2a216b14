"""Injected faults of a simulation as probabilities, drawn from the simulation's generator."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

__all__ = ["SLOW", "SPIKE", "Faults"]

# s that a lost segment is late: one to four retransmissions (RFC 6298 section 5, Linux minimum)
SPIKE = (
    0.2,
    3.0,
)
SLOW = (0.5, 8.0)  # s that a slow operation takes: a disk that spins up, a store under a lock


@frozen(kw_only=True)
class Faults:
    """Probabilities between 0 and 1. Assign to `Simulation.faults` at any time; `Faults.NONE` ends the faults.

    Earlier faults keep their effect: `SimNetwork.heal` mends hung connections and partitions.
    """

    NONE: ClassVar[Faults]

    cut: float = 0.0  # per segment: the connection breaks, both ends get `Closed`
    hang: float = 0.0  # per segment: the connection delivers nothing more
    spike: float = 0.0  # per segment: lost and sent again, so late by `SPIKE`
    store: float = 0.0  # per store request: fails without effect
    file: float = 0.0  # per file operation: input/output error
    slow: float = 0.0  # per operation: takes `SLOW`
    late_answer: float = 0.0  # per `Cancel`: comes too late, the operation continues and is answered
    late_read: float = 0.0  # per `PauseReading`: one `Received` was already on its way
    late_wake: float = 0.0  # per timer: the process is woken up to 50 ms late
    clock_step: float = 0.0  # per timer: the host's wall clock is set, up to an hour forward or back

    @classmethod
    def some(cls, scale: float = 1.0) -> Faults:
        """Return a probability of each fault, from 0.0005 to 0.3, times `scale`; at 1, programs still make progress."""
        return cls(
            cut=0.001 * scale,
            hang=0.0005 * scale,
            spike=0.02 * scale,
            store=0.01 * scale,
            file=0.01 * scale,
            slow=0.02 * scale,
            late_answer=0.3 * scale,
            late_read=0.2 * scale,
            late_wake=0.2 * scale,
            clock_step=0.005 * scale,
        )


Faults.NONE = Faults()
