"""What many tests of the relay begin with. A module that needs another relay has a `book` of its own."""

from __future__ import annotations

import pytest

from tests.relay.harness import Paired, RelayBook
from tests.relay.mcp_client import Agent
from tests.relay.oauth_client import Guest


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
