"""The script of one simulated deployment: a list of steps, kept as text."""

from __future__ import annotations

import json

from attrs import frozen

from fuzz.steps import STEP_KINDS, Fault, Step, slots

PAIRED = 2.0  # s after which the phone and two devices are paired; a code whose answer is lost is used up


@frozen
class Script:
    """The steps in order of time, the seed of all other chance in the world, and what is gone through in the end."""

    seed: int
    steps: tuple[Step, ...]
    checks: tuple[str, ...] = ()  # by their names; none: those that the seed draws

    @property
    def faults(self) -> int:
        """How many of the steps are faults."""
        return sum(isinstance(step, Fault) for step in self.steps)

    def to_json(self) -> str:
        """One line for the seed, and the rooms if there are some, and one for each step."""
        rows = [[step.at, step.name, {name: getattr(step, name) for name in slots(type(step))}] for step in self.steps]
        first = {"seed": self.seed, **({"rooms": self.checks} if self.checks else {})}
        return "\n".join([json.dumps(first), *map(json.dumps, rows)]) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Script:
        """Read what `to_json` wrote. ValueError for anything else."""
        first, *rows = text.splitlines()
        steps: list[Step] = []
        for row in rows:
            at, name, numbers = json.loads(row)
            if name not in STEP_KINDS:
                raise ValueError(f"no step is named {name}")
            steps.append(STEP_KINDS[name](at, **numbers))
        head = json.loads(first)
        return cls(head["seed"], tuple(steps), tuple(head.get("rooms", ())))
