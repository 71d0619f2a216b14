"""Pending answers of a realtime agent: of tasks that continue in the background (wire terminal-voice 6.9).

A queued or promoted task is a pending answer. It is resolved when the answer is played or fails. If the user cancels,
all pending answers are dropped when the relay confirms the cancellation.
"""

from __future__ import annotations

from attrs import define

__all__ = ["PendingAnswers"]


@define
class PendingAnswers:
    """Count of pending answers; true while there is one."""

    _count: int = 0
    _failing: bool = False  # the next error resolves one of them
    _forgiven: bool = False  # the user cancelled all of them, and the relay has not confirmed yet

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self) -> None:
        """Count one more pending answer."""
        self._count += 1

    def resolve_one(self) -> None:
        """Remove an answer that was played or has failed."""
        self._count = max(self._count - 1, 0)

    def clear(self) -> None:
        """Remove all answers: the relay has ended all of the tasks."""
        self._count = 0

    def cancel_all(self) -> None:
        """Mark all answers as cancelled by the user."""
        self._forgiven = True

    def turn_cancelled(self) -> None:
        """Handle a turn's cancellation by the relay: cancelled answers are removed."""
        if self._forgiven:
            self._forgiven = False
            self.clear()

    def completed(self, *, ok: bool) -> None:
        """Record the end of a task. Its answer follows, or an error in its place."""
        self._failing = not ok

    def has_failed(self) -> bool:
        """Report whether the error just received replaces an answer, and reset that; call it once for each error."""
        failing, self._failing = self._failing, False
        return failing
