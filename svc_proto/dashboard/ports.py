"""Ports of the dashboard: small protocols that `Dashboard` implements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow

if TYPE_CHECKING:
    from svc_proto.dashboard.access import DashboardAuthorizer
    from svc_proto.dashboard.config import DashboardConfig
    from svc_proto.dashboard.upstream import Upstream
    from svc_proto.engine.message import Request

__all__ = ["ApiServerPort", "DashboardPort", "SignInPort"]


class DashboardPort(Protocol):
    """Members of the dashboard that most modules use: engine and configuration."""

    engine: Engine
    config: DashboardConfig


class ApiServerPort(DashboardPort, Protocol):
    """Members of the dashboard for calls of the API server."""

    api_server: Upstream | None

    def require_api(self) -> Upstream:
        """Return the API server. Raises `Refused` 404 if none is configured."""


class SignInPort(DashboardPort, Protocol):
    """Members of the dashboard for signing in: the authorizer, and the cookie of a session."""

    gate: DashboardAuthorizer

    def sign_in(self, request: Request, password: str) -> Flow[tuple[bytes, bytes]]:
        """Check a password; return the cookie of a new session. Raises `Refused` 401 or 429."""

    def cookie(self, request: Request, token: str, age: float) -> tuple[bytes, bytes]:
        """Return the header field that sets the cookie of a session for `age` seconds; 0: that clears it."""
