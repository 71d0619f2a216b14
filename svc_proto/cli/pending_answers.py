"""The answers that a realtime agent still owes: of tasks that go on in the background (wire terminal-voice 6.9).

A task that is queued or promoted is an answer to come. It is kept when the answer was spoken, broken when an error says
that it will not come, and forgiven when the person cancels, once the relay says so.
"""

from __future__ import annotations

from attrs import define

__all__ = ["PendingAnswers"]


@define
class PendingAnswers:
    """How many answers are to come; true while there is one."""

    _count: int = 0
    _failing: bool = False  # the next error is of one of them
    _forgiven: bool = False  # all of them, and the relay has not said so yet

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self) -> None:
        """One more."""
        self._count += 1

    def resolve_one(self) -> None:
        """One has come, or never will."""
        self._count = max(self._count - 1, 0)

    def clear(self) -> None:
        """The relay has ended all of the tasks."""
        self._count = 0

    def cancel_all(self) -> None:
        """The person cancels, and wants none of them."""
        self._forgiven = True

    def turn_cancelled(self) -> None:
        """The relay has cancelled a turn: with it, all that was forgiven."""
        if self._forgiven:
            self._forgiven = False
            self.clear()

    def completed(self, *, ok: bool) -> None:
        """A task has ended. Its answer follows, or an error in its place."""
        self._failing = not ok

    def has_failed(self) -> bool:
        """Whether the error that has just come stands in place of one; asked once for each error."""
        failing, self._failing = self._failing, False
        return failing
