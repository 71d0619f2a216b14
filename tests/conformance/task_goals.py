"""The class `Task`, and the conditions that make up the goals of phone tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from clients.phone.emulator.device import EmulatedDevice
from tests.conformance.task_steps import SeenScreen, Step, open_app, tap

Goal: TypeAlias = Callable[[EmulatedDevice, str], bool]  # of the phone and the answer
TaskRow: TypeAlias = tuple[str, Sequence[Step], Goal]


@frozen(kw_only=True)
class Task:
    """A task for a phone: prompt, right steps and goal. `answer` is the model's text at its end."""

    name: str
    shape: str
    prompt: str
    steps: Sequence[Step]
    goal: Goal
    answer: str = "Done."

    @property
    def app(self) -> str:
        """Return the package that the first step opens; empty if it opens none."""
        return str(self.steps[0](SeenScreen())[1].get("package", ""))


# --- goals ------------------------------------------------------------------------------------------------------------


def text_is(package: str, name: str, value: str) -> Goal:
    return lambda device, answer: device.texts.get((package, name), "") == value


def switch_is(package: str, name: str, on: bool) -> Goal:
    return lambda device, answer: device.switches.get((package, name), False) is on


def count_is(package: str, collection: str, count: int, **members: str) -> Goal:
    """Return a goal: exactly `count` records of the collection have the given members."""

    def goal(device: EmulatedDevice, answer: str) -> bool:
        found = device.content.list(package, collection)
        return sum(all(record.get(name) == value for name, value in members.items()) for record in found) == count

    return goal


def sent(kind: str, count: int = 1, **fields: str) -> Goal:
    """Return a goal: `count` items of a kind have left the phone, the last one with the given fields."""

    def goal(device: EmulatedDevice, answer: str) -> bool:
        items = [item for item in device.outbox if item.kind == kind]
        found = items[-1].details.get("fields", {}) if items else {}
        return len(items) == count and isinstance(found, Mapping) and all(found.get(n) == v for n, v in fields.items())

    return goal


def said(answer: str) -> Goal:
    return lambda device, given: given == answer


def both(*goals: Goal) -> Goal:
    return lambda device, answer: all(goal(device, answer) for goal in goals)


def shows(screen: str) -> Goal:
    return lambda device, answer: device._visible_screen() == screen


def drawn(*line: int) -> Goal:
    points = (line[:2], line[2:])
    return lambda device, answer: any(each.kind == "drag" and each.points == points for each in device.gestures)


def row(prompt: str, goal: Goal, package: str, *steps: Step | str) -> TaskRow:
    """Return the row of a task: its prompt, the steps in an app, of which a text stands for a tap, and its goal."""
    return prompt, [open_app(package), *(tap(step) if isinstance(step, str) else step for step in steps)], goal


def tasks_of(shape: str, *rows: TaskRow, answer: str = "Done.") -> Iterator[Task]:
    for prompt, steps, goal in rows:
        yield Task(name="", shape=shape, prompt=prompt, steps=steps, goal=goal, answer=answer)
