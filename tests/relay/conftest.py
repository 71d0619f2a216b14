"""What many tests of the relay begin with. A module that needs another relay has a `book` of its own."""

from __future__ import annotations

import pytest

from tests.relay.guest import Guest
from tests.relay.mcp_agent import Agent
from tests.relay.world import Paired, RelayBook


@pytest.fixture
def book() -> RelayBook:
    return RelayBook()


@pytest.fixture
def paired(book: RelayBook) -> Paired:
    return book.pair()


@pytest.fixture
def guest(book: RelayBook) -> Guest:
    return Guest(book)


@pytest.fixture
def agent(book: RelayBook) -> Agent:
    return Agent(book)
