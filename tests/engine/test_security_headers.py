"""Security header fields of pages; the dashboard's fields and the OpenAPI viewer have each of them."""

from svc_proto.dashboard.access import FIELDS
from svc_proto.engine.security_headers import page_security_headers
from svc_proto.openapi.viewer_page import PAGES


def test_a_page_forbids_frames_and_referrers() -> None:
    fields = dict(page_security_headers(b"default-src 'none'"))
    assert fields[b"content-security-policy"] == b"default-src 'none'"
    assert (fields[b"x-frame-options"], fields[b"referrer-policy"]) == (b"DENY", b"no-referrer")


def test_every_page_has_the_security_headers() -> None:
    names = {name for name, _ in page_security_headers(b"")}
    assert names <= {name for name, _ in FIELDS}
    assert names <= {name for name, _ in PAGES["en"].policy}
