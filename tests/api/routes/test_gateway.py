from svc_proto.api.config import ApiConfig
from tests.api.gateway_client import open_gateway
from tests.api.harness import ApiHarness


def test_the_gateway_needs_the_key_and_an_upgrade() -> None:
    book = ApiHarness()
    assert book.request("GET", "/api/ws", key="").status == 401
    assert book.request("GET", "/api/ws").status == 400
    assert open_gateway(book).call("session.list") == {"sessions": []}
    assert open_gateway(ApiHarness(ApiConfig())).call("session.list") == {"sessions": []}
