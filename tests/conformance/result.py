"""What a suite found, for people: one line a suite, and one for each thing that is not as the suite wants it."""

from __future__ import annotations

from attrs import define, field


@define
class Result:
    """Passed, different on purpose, failed, left out; `lines` tells all but what has passed."""

    name: str
    passed: int = 0
    different: dict[str, str] = field(factory=dict)
    failed: dict[str, str] = field(factory=dict)
    left_out: dict[str, str] = field(factory=dict)
    repeated: list[str] = field(factory=list)  # were run a second time, whose outcome counts

    def note(self, case: str, problem: str | None, reason: str | None = None) -> None:
        """A case was run: it has no problem, or one with a `reason`, or one that is a failure."""
        if problem is None and reason is None:
            self.passed += 1
        elif problem is None:
            self.failed[case] = f"agrees now, but is listed as different: {reason}"
        elif reason is not None:
            self.different[case] = reason
        else:
            self.failed[case] = problem

    def compare(self, case: str, seen: object, wanted: object) -> None:
        """A case passes if what was seen is what was wanted."""
        self.note(case, None if seen == wanted else f"{seen!r:.500}, not {wanted!r:.500}")

    def leave_out(self, case: str, reason: str) -> None:
        """A case does not apply."""
        self.left_out[case] = reason

    def lines(self) -> list[str]:
        """For the terminal."""
        run = self.passed + len(self.different) + len(self.failed)
        head = f"{self.name}: {self.passed} of {run} passed, {len(self.failed)} failed"
        if self.different:
            head += f", {len(self.different)} differ on purpose"
        if self.left_out:
            head += f", {len(self.left_out)} left out"
        if self.repeated:
            head += f", run twice: {' '.join(self.repeated)}"
        return [
            head,
            *(f"  FAILED    {case}: {problem}" for case, problem in self.failed.items()),
            *(f"  different {case}: {reason}" for case, reason in self.different.items()),
        ]
