"""Routes of OAuth clients and their browsers. See `svc_proto.relay.oauth.authorization_server`."""

from functools import partial

from svc_proto.engine.router import Route
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.oauth.authorization_server import AuthorizationServer
from svc_proto.relay.oauth.issuer import MCP_PATH, METADATA

__all__ = ["metadata_routes", "routes"]

SMALL = 16 * 1024  # bytes of a body; a registration of eight redirect URIs has three thousand


def metadata_routes(oauth: AuthorizationServer) -> list[Route]:
    """Return the routes under `/.well-known/`."""
    row = partial(Route, method="GET", access=RelayAccess.PUBLIC, body_limit=0)
    return [
        row(pattern=METADATA, handler=oauth.protected_resource_metadata),
        row(pattern=f"{METADATA}{MCP_PATH}", handler=oauth.protected_resource_metadata),
        row(pattern="/.well-known/oauth-authorization-server", handler=oauth.server_metadata),
        # Clients use this path for an issuer with a path (RFC 8414 section 5); a proxy forwards it.
        row(pattern="/.well-known/openid-configuration", handler=oauth.server_metadata),
    ]


def routes(oauth: AuthorizationServer) -> list[Route]:
    """Return the routes under `/oauth/`."""
    row = partial(Route, access=RelayAccess.PUBLIC)
    return [
        row(method="POST", pattern="/oauth/register", handler=oauth.register, body_limit=SMALL),
        row(method="GET", pattern="/oauth/authorize", handler=oauth.authorize, body_limit=0),
        row(method="GET", pattern="/oauth/wait/{ticket}", handler=oauth.poll_consent_page, body_limit=0),
        row(method="POST", pattern="/oauth/token", handler=oauth.token, body_limit=SMALL),
        row(method="POST", pattern="/oauth/revoke", handler=oauth.revoke, body_limit=SMALL),
    ]
