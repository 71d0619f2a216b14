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
    assert found["issuer"] == PLACE
    for endpoint, path in (("authorization", "authorize"), ("token", "token"), ("registration", "register")):
        assert found[f"{endpoint}_endpoint"] == f"{PLACE}/oauth/{path}"
    assert (found["revocation_endpoint"], found["response_types_supported"]) == (f"{PLACE}/oauth/revoke", ["code"])
    assert found["token_endpoint_auth_methods_supported"] == ["none"]
    assert found["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True
