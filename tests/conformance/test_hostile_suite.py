"""Tests of the hostile shapes of the task suite, and of their table."""

from tests.conformance.hostile_data import LANGUAGES, SHAPES
from tests.conformance.hostile_suite import hostile_table, report_on_shape, run_shape
from tests.conformance.task_data import TASKS
from tests.conformance.task_suite import HOSTILE, PAGE


def test_there_are_enough_shapes_and_languages() -> None:
    assert len({shape.name for shape in SHAPES}) == 54
    assert len(LANGUAGES) == 6
    assert len(TASKS) >= 50  # honest ones, which test_task_suite.py runs


def test_all_shapes_and_their_table() -> None:
    shapes = [report_on_shape(shape) for shape in SHAPES]
    assert [problem for each in shapes for problem in each.problems()] == []
    assert PAGE.read_text().partition(HOSTILE)[2] == hostile_table(shapes), "python -m tests.conformance.task_suite"


def test_every_shape_has_an_effect_if_the_owner_allows_it() -> None:
    """Check one run of each shape, and one shape in each language: acts that reach nothing would pass elsewhere."""
    assert all(run_shape(SHAPES[9], number, allowing=True)[0] for number in range(len(LANGUAGES)))
    assert [shape.name for shape in SHAPES if not run_shape(shape, 0, allowing=True)[0]] == []
