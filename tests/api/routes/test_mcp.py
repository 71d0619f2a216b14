from tests.api.harness import ApiHarness
from tests.mcp.http_harness import McpHttpSession


def test_ended_session_is_not_found() -> None:
    book = ApiHarness()
    session = McpHttpSession(book)
    assert session.end() == 204
    assert session.listen().result.status == 404
