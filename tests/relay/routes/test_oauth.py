"""Metadata documents for OAuth clients."""

import pytest

from tests.relay.oauth_client import PLACE, OAuthTestClient


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_protected_resource_metadata(app: OAuthTestClient, path: str) -> None:
    found = app.call("GET", f"/.well-known/oauth-protected-resource{path}").json
    assert (found["resource"], found["authorization_servers"]) == (f"{PLACE}/mcp", [PLACE])
    assert found["scopes_supported"] == ["bridge", "bridge:read"]
    assert (found["bearer_methods_supported"], found["resource_name"]) == (["header"], "Phone")


@pytest.mark.parametrize("name", ["oauth-authorization-server", "openid-configuration"])
def test_authorization_server_metadata(app: OAuthTestClient, name: str) -> None:
    found = app.call("GET", f"/.well-known/{name}").json
    assert (found["issuer"], found["token_endpoint"]) == (PLACE, f"{PLACE}/oauth/token")
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True
