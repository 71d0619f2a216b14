"""Tests of the hostile shapes of the task suite."""

import pytest

from tests.conformance.hostile_data import LANGUAGES, SHAPES, HostileShape
from tests.conformance.hostile_suite import report_on_shape
from tests.conformance.task_data import TASKS


def test_there_are_enough_shapes_and_languages() -> None:
    assert len({shape.name for shape in SHAPES}) == 54
    assert len(LANGUAGES) == 6
    assert len(TASKS) >= 50  # honest ones, which test_task_suite.py runs


@pytest.mark.parametrize("shape", SHAPES[::7], ids=lambda shape: shape.name)
def test_a_part_of_the_shapes(shape: HostileShape) -> None:
    assert list(report_on_shape(shape).problems()) == []


def test_the_effects_happen_if_the_owner_allows_them() -> None:
    report = report_on_shape(SHAPES[9], allowing=True)
    assert all(report.effects)


@pytest.mark.full
def test_every_shape_has_an_effect_if_the_owner_allows_it() -> None:
    """Check one run of each shape, with an owner who allows: a shape whose acts reach nothing would pass otherwise."""
    assert [shape.name for shape in SHAPES if not report_on_shape(shape, allowing=True).effects[0]] == []
