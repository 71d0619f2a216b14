"""`/openapi.json` and `/docs` of a server: made at the first request, and not sent again to a client with a copy."""

import subprocess
import sys

from svc_proto.relay_config import RelayConfig
from tests.relay.harness import REMOTE, RelayHarness
from tests.support.http_codec import Response

LATE = "svc_proto.openapi.document", "svc_proto.openapi.viewer_page", "svc_proto.schema.json_schema"


def test_document_and_page_are_cached_with_an_etag() -> None:
    book = RelayHarness()
    for path, kind in (("/openapi.json", b"application/json"), ("/docs", b"text/html; charset=utf-8")):
        first, second = book.request("GET", path), book.request("GET", path)
        assert (first.status, first.headers.get(b"content-type")) == (200, kind)
        assert first.body == second.body
        tag = first.headers.get(b"etag")
        assert tag is not None
        again = book.request("GET", path, headers=((b"if-none-match", tag),))
        assert (again.status, again.body) == (304, b"")


def test_root_path_is_in_the_document() -> None:
    book = RelayHarness(RelayConfig(root_path="/relay"))
    answer = book.request("GET", "/relay/openapi.json")
    assert answer.json["servers"] == [{"url": "/relay"}]
    assert b'fetch("openapi.json")' in book.request("GET", "/relay/docs").body


def test_document_and_page_require_access() -> None:
    book = RelayHarness()
    token = book.pair().token

    def ask(**options: object) -> list[Response]:
        return [book.request("GET", path, **options) for path in ("/openapi.json", "/docs")]

    assert [answer.status for answer in ask(peer=REMOTE)] == [401, 401]
    assert [answer.status for answer in ask(headers=((b"origin", b"https://evil.example"),))] == [401, 401]
    assert [answer.status for answer in ask(peer=REMOTE, token=token)] == [200, 200]


def test_start_loads_no_openapi_module() -> None:
    servers = "svc_proto.relay.service", "svc_proto.api.service", "svc_proto.dashboard.service"
    late = f"any('.says' in name or '.shapes' in name or name in {LATE} for name in sys.modules)"
    code = f"import sys, {', '.join(servers)}; sys.exit({late})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
