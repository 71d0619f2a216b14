"""Tasks for a phone in the shapes of phone benchmarks, in words and apps of our own.

A task has the prompt, the steps that reach its goal, and the goal as a condition on the phone and the answer.
"""

from attrs import evolve

from tests.conformance.task_data_forms import WELCOME, form_tasks, setting_tasks
from tests.conformance.task_data_lists import list_tasks, message_tasks, text_tasks
from tests.conformance.task_goals import Task

__all__ = ["SHAPES", "TASKS", "WELCOME", "Task"]


def _numbered() -> tuple[Task, ...]:
    found = [task for part in (setting_tasks, form_tasks, text_tasks, message_tasks, list_tasks) for task in part()]
    return tuple(evolve(task, name=f"{number:03} {task.prompt}") for number, task in enumerate(found, 1))


TASKS: tuple[Task, ...] = _numbered()
SHAPES = tuple(dict.fromkeys(task.shape for task in TASKS))
