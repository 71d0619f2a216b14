"""A shop, and clients of it."""

from __future__ import annotations

import pytest

from tests.mcp.desk import Desk, Shop
from tests.mcp.web import Web


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def desk(shop: Shop) -> Desk:
    return Desk(shop.offer())


@pytest.fixture
def web() -> Web:
    return Web()
