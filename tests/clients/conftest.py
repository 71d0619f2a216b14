"""The fixtures of the server programs, for the clients."""

from __future__ import annotations

from tests.servers.conftest import certificate, failing

__all__ = ["certificate", "failing"]
