"""Content types that are multipart; uploads are tested in tests/relay/routes/test_media.py and test_voice_basic.py."""

from __future__ import annotations

from typing import cast

import pytest

from svc_proto.engine.message import Request
from svc_proto.relay.media.upload_body import multipart_content_type
from svc_proto.wire.events import Headers


class Asked:
    """Stub of a request that has only header fields."""

    def __init__(self, *fields: tuple[bytes, bytes]) -> None:
        self.headers = Headers(fields)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"multipart/form-data; boundary=x", True),
        (b" Multipart/Form-Data ;boundary=x", True),
        (b"multipart/form-data", True),
        (b"multipart/mixed; boundary=x", False),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_multipart_content_types_are_recognized(value: bytes, form: bool) -> None:
    found = multipart_content_type(cast("Request", Asked((b"content-type", value))))
    assert (found is not None) is form


def test_missing_content_type_is_no_form() -> None:
    assert multipart_content_type(cast("Request", Asked())) is None
