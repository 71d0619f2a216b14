"""Tests of the phone tasks, and of their page."""

from tests.conformance.task_data import SHAPES, TASKS
from tests.conformance.task_runs import ERRORS, error_of
from tests.conformance.task_suite import HOSTILE, PAGE, problems_of, report_on, tasks_text


def test_the_tasks_have_the_shapes_and_the_errors() -> None:
    assert len(TASKS) >= 100
    assert len(SHAPES) == 19
    assert {error_of(task) for task in TASKS} == set(ERRORS)
    assert f"\n{len(TASKS)} tasks for a phone" in PAGE.read_text()


def test_all_tasks_and_their_page() -> None:
    reports = [report_on(task) for task in TASKS]
    assert [(each.task.name, problem) for each in reports for problem in problems_of(each)] == []
    assert PAGE.read_text().partition(HOSTILE)[0] == tasks_text(reports), "python -m tests.conformance.task_suite"
