"""An empty store of each kind."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store.store_service import Store
from tests.runtimes.store.chat_stores import KINDS, new_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(new_store(request.param, tmp_path)) as opened:
        yield opened
