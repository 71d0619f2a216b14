"""What is thought of who guesses: five failures in a minute are a block of five minutes, and what is right forgives."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from fuzz.audit import Audit

__all__ = ["BLOCK", "FAILURES", "WINDOW", "Guesses"]

FAILURES, WINDOW, BLOCK = 5, 60.0, 300.0  # requirements, "Rate limiting of WebSocket authentication"; wire api 2.2


@define(eq=False)
class Guesses:
    """Those of one address."""

    failures: deque[float] = field(factory=deque)
    until: float = 0.0  # the end of its block

    @property
    def marks(self) -> list[float]:
        """When something of that is over."""
        return [self.until, *(when + WINDOW for when in self.failures)]

    def coming(self, now: float) -> list[float]:
        """When what counts now is over."""
        return [self.until] if now < self.until else self.marks[1:]

    def stay_clear(self, audit: Audit, near: float) -> None:
        """Not to be where nobody can tell what is right."""
        while any(abs(audit.now - mark) < near for mark in self.marks):
            audit.rest(2 * near)

    def failed(self, now: float) -> None:
        """One more, while there is no block."""
        while self.failures and now - self.failures[0] >= WINDOW:
            self.failures.popleft()
        self.failures.append(now)
        if len(self.failures) >= FAILURES:
            self.failures.clear()
            self.until = now + BLOCK
