"""Content types that are multipart; uploads are tested in tests/relay/routes/test_media.py and test_voice_basic.py."""

from types import SimpleNamespace
from typing import cast

import pytest

from svc_proto.engine.message import Request
from svc_proto.relay.media.upload_body import multipart_content_type
from svc_proto.wire.events import Headers


@pytest.mark.parametrize("value", [None, b"", b"multipart/mixed; boundary=x", b" Multipart/Form-Data ;boundary=x"])
def test_multipart_content_types_are_recognized(value: bytes | None) -> None:
    request = SimpleNamespace(headers=Headers([] if value is None else [(b"content-type", value)]))
    assert (multipart_content_type(cast("Request", request)) is not None) is (b"Form-Data" in (value or b""))
