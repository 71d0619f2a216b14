"""Fixtures for the tests of wire protocols."""

import pytest

from svc_proto.wire.http1 import Http1Connection
from tests.wire.http1_server import server
from tests.wire.http2_pair import BareClient


@pytest.fixture
def bare() -> BareClient:
    return BareClient()


@pytest.fixture
def connection() -> Http1Connection:
    """Return the connection of an HTTP/1.1 server."""
    return server()
