"""A shop, and clients of it."""

from __future__ import annotations

import pytest

from tests.mcp.http_harness import Web
from tests.mcp.stdio_harness import Desk, Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def desk(shop: Shop) -> Desk:
    return Desk(shop.offer())


@pytest.fixture
def web() -> Web:
    return Web()
