"""Fixtures: an emulated phone at its home screen, and one with the mail app open."""

import pytest

from clients.phone.emulator.sample_apps import MAIL
from tests.clients.emulator.driver import EmulatorDriver, opened


@pytest.fixture
def driver() -> EmulatorDriver:
    return EmulatorDriver()


@pytest.fixture
def mail() -> EmulatorDriver:
    return opened(MAIL)
