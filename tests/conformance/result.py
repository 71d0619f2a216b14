"""Result of a suite: a line with the counts, and one for each deviation."""

from attrs import define, field


@define
class Result:
    """Cases of a suite: the number of passed ones, and those different on purpose, failed, and left out."""

    name: str
    passed: int = 0
    different: dict[str, str] = field(factory=dict)
    failed: dict[str, str] = field(factory=dict)
    left_out: dict[str, str] = field(factory=dict)
    repeated: list[str] = field(factory=list)  # run a second time, whose outcome counts
    figures: str = ""  # what was measured

    def note(self, case: str, problem: str | None, reason: str | None = None) -> None:
        """Record a case: passed without a problem, different on purpose with a problem and a `reason`, else failed.

        A reason without a problem is a failure, too.
        """
        if problem is None and reason is None:
            self.passed += 1
        elif problem is None:
            self.failed[case] = f"agrees now, but is listed as different: {reason}"
        elif reason is not None:
            self.different[case] = reason
        else:
            self.failed[case] = problem

    def compare(self, case: str, seen: object, wanted: object) -> None:
        """Record a case that passes if `seen` equals `wanted`."""
        self.note(case, None if seen == wanted else f"{seen!r:.500}, not {wanted!r:.500}")

    def leave_out(self, case: str, reason: str) -> None:
        """Record a case that does not apply."""
        self.left_out[case] = reason

    def lines(self) -> list[str]:
        """Return the lines for the terminal: counts and figures, then each failed case and each intended difference."""
        run = self.passed + len(self.different) + len(self.failed)
        head = f"{self.name}: {self.passed} of {run} passed, {len(self.failed)} failed"
        if self.different:
            head += f", {len(self.different)} differ on purpose"
        if self.left_out:
            head += f", {len(self.left_out)} left out"
        if self.repeated:
            head += f", run twice: {' '.join(self.repeated)}"
        if self.figures:
            head += f"; {self.figures}"
        return [
            head,
            *(f"  FAILED    {case}: {problem}" for case, problem in self.failed.items()),
            *(f"  different {case}: {reason}" for case, reason in self.different.items()),
        ]
