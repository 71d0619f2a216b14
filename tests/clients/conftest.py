"""The fixtures of the server programs are those of the clients."""

from __future__ import annotations

from tests.servers.conftest import certificate, failing

__all__ = ["certificate", "failing"]
