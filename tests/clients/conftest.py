"""Imports of the server programs' fixtures, for tests of the clients."""

from tests.servers.conftest import certificate, failing

__all__ = ["certificate", "failing"]
