"""Script of one simulated deployment: a list of steps, stored as text."""

from __future__ import annotations

import json

from attrs import frozen

from fuzz.steps import STEP_KINDS, Step, slots

PAIRED = 2.0  # s after which the phone and two devices are paired; a code whose response is lost is used up


@frozen
class Script:
    """Steps in order of time, and the seed of all other randomness."""

    seed: int
    steps: tuple[Step, ...]

    def to_json(self) -> str:
        """Return the script as text: a line for the seed, and one for each step."""
        rows = [[step.at, step.name, {name: getattr(step, name) for name in slots(type(step))}] for step in self.steps]
        return "\n".join([json.dumps({"seed": self.seed}), *map(json.dumps, rows)]) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Script:
        """Parse the output of `to_json`. Raise ValueError for a text that is not JSON, or has an unknown step."""
        first, *rows = text.splitlines()
        steps: list[Step] = []
        for row in rows:
            at, name, numbers = json.loads(row)
            if name not in STEP_KINDS:
                raise ValueError(f"no step is named {name}")
            steps.append(STEP_KINDS[name](at, **numbers))
        return cls(json.loads(first)["seed"], tuple(steps))
