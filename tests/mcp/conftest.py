"""A shop, and a client of it."""

from __future__ import annotations

import pytest

from tests.mcp.desk import Desk, Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def desk(shop: Shop) -> Desk:
    return Desk(shop.offer())
