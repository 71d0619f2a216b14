"""Fixtures for the tests of the engine."""

import pytest

from tests.engine.toy_service import ToyPlaybook, open_book


@pytest.fixture
def book() -> ToyPlaybook:
    """Return a playbook of a started toy service, with one accepted connection."""
    return open_book()
