"""Fixture `rig`: a phone that is online."""

import pytest

from tests.phone.harness import TOKEN, PhoneHarness


@pytest.fixture
def rig() -> PhoneHarness:
    rig = PhoneHarness(token=TOKEN, scheme="hermes-relay")
    rig.online()
    rig.new_notifications()
    return rig
