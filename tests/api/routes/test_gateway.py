from svc_proto.api.config import ApiConfig
from tests.api.gateway_client import open_gateway
from tests.api.harness import ApiHarness


def test_the_gateway_needs_the_key_and_an_upgrade() -> None:
    book = ApiHarness()
    assert book.request("GET", "/api/ws", key="").status == 401
    assert book.request("GET", "/api/ws").status == 400
    assert open_gateway(book).call("session.list") == {"sessions": []}


def test_a_server_without_a_key_has_a_gateway_for_this_host() -> None:
    assert open_gateway(ApiHarness(ApiConfig())).call("session.list") == {"sessions": []}
