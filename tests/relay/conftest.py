"""Fixtures of the relay tests: a relay alone or in a cluster, and a phone, an OAuth client or an MCP client."""

import pytest

from tests.relay.coordinator_harness import CoordinatorHarness
from tests.relay.harness import PairedPhone, RelayHarness
from tests.relay.mcp_client import RelayMcpClient
from tests.relay.oauth_client import OAuthTestClient


@pytest.fixture
def book() -> RelayHarness:
    return RelayHarness()


@pytest.fixture
def paired(book: RelayHarness) -> PairedPhone:
    return book.pair()


@pytest.fixture
def app(book: RelayHarness) -> OAuthTestClient:
    return OAuthTestClient(book)


@pytest.fixture
def agent(book: RelayHarness) -> RelayMcpClient:
    return RelayMcpClient(book)


@pytest.fixture
def harness() -> CoordinatorHarness:
    return CoordinatorHarness()
