"""Imports of the server programs' fixtures, for tests of the clients."""

from __future__ import annotations

from tests.servers.conftest import certificate, failing

__all__ = ["certificate", "failing"]
