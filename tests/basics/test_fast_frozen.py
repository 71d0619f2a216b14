"""Frozen values: compared and hashed by their fields; tests enforce immutability at run time too."""

import subprocess
import sys

import pytest
from attrs import field
from attrs.exceptions import FrozenInstanceError

from svc_proto.basics.fast_frozen import fast_frozen

CHEAP = """
from svc_proto.basics.fast_frozen import fast_frozen, enforce_immutability

@fast_frozen
class Point:
    x: int
    y: int = 0

point = Point(1)
point.y = 3  # no check at runtime: mypy finds it
enforce_immutability()

@fast_frozen
class Size:
    width: int

assert Point(1, 3) == point
try:
    Size(1).width = 2
except AttributeError:
    print("refused")
"""


@fast_frozen
class Place:
    x: int
    name: str = ""


@fast_frozen
class Answer:
    status: int
    reason: str = field(default="", eq=False, repr=False)


@fast_frozen
class Nothing: ...


@fast_frozen(kw_only=True)
class Named:
    x: int = 0
    y: int


def test_values_compare_by_their_fields() -> None:
    assert Place(1) == Place(1, "")
    assert Place(1) != Place(2)
    assert len({Place(1), Place(1), Place(1, "a")}) == 2
    assert repr(Place(1)) == "Place(x=1, name='')"
    other: object = (1, "")
    assert Place(1) != other


def test_values_may_be_made_by_name_alone() -> None:
    assert Named(y=2) == Named(x=0, y=2)
    with pytest.raises(TypeError, match="positional"):
        Named(1, 2)  # type: ignore[call-arg]  # that is the point
    with pytest.raises(FrozenInstanceError):
        Named(y=2).x = 1  # type: ignore[misc]  # and that


def test_excluded_fields_are_neither_compared_nor_shown() -> None:
    assert Answer(200, "a") == Answer(200, "b")
    assert hash(Answer(200, "a")) == hash(Answer(200, "b"))
    assert repr(Answer(200, "a")) == "Answer(status=200)"
    assert Nothing() == Nothing()
    other: object = Answer(200)
    assert Nothing() != other


def test_a_value_cannot_be_changed() -> None:
    place = Place(1)
    with pytest.raises(FrozenInstanceError):
        place.name = "b"  # type: ignore[misc]  # that is what is tested
    with pytest.raises(FrozenInstanceError):
        del place.name
    assert place == Place(1)


def test_without_enforcement_values_have_no_overhead() -> None:
    done = subprocess.run([sys.executable, "-c", CHEAP], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
