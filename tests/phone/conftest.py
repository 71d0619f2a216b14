"""A phone that is online."""

from __future__ import annotations

import pytest

from tests.phone.harness import TOKEN, Rig


@pytest.fixture
def rig() -> Rig:
    rig = Rig(token=TOKEN, scheme="hermes-relay")
    rig.online()
    rig.told()
    return rig
