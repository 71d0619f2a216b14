"""Tests of the phone tasks, and of their page."""

import pytest

from tests.conformance import hostile_data
from tests.conformance.hostile_suite import report_on_shape
from tests.conformance.task_data import SHAPES, TASKS, Task
from tests.conformance.task_runs import ERRORS, error_of
from tests.conformance.task_suite import PAGE, page_of, problems_of, report_on


def name_of(task: Task) -> str:
    return task.name


def test_the_tasks_have_the_shapes_and_the_errors() -> None:
    assert len(TASKS) >= 100
    assert len(SHAPES) == 19
    assert {error_of(task) for task in TASKS} == set(ERRORS)
    assert f"\n{len(TASKS)} tasks for a phone" in PAGE.read_text()


@pytest.mark.parametrize("task", TASKS[::9], ids=name_of)
def test_a_part_of_the_tasks(task: Task) -> None:
    assert list(problems_of(report_on(task))) == []


@pytest.mark.full
def test_all_tasks_and_the_page() -> None:
    reports = [report_on(task) for task in TASKS]
    assert [(each.task.name, problem) for each in reports for problem in problems_of(each)] == []
    shapes = [report_on_shape(shape) for shape in hostile_data.SHAPES]
    assert [problem for each in shapes for problem in each.problems()] == []
    assert page_of(reports, shapes) == PAGE.read_text(), "python -m tests.conformance.task_suite"
