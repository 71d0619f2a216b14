"""A certificate for whoever needs one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.certificates import make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and 127.0.0.1, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
