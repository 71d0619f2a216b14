"""Every test that takes `runtime` runs on each loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.certificates import make_certificate
from tests.runtimes.support import RUNTIMES


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip({"asyncio": "anyio"}.get(name, name))
    return name


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and 127.0.0.1, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
