"""Content types that are multipart; uploads are tested in tests/relay/routes/test_media.py and test_voice_basic.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from svc_proto.engine.message import Request
from svc_proto.relay.media.upload_body import multipart_content_type
from svc_proto.wire.events import Headers


@pytest.mark.parametrize("value", [b"multipart/form-data; boundary=x", b" Multipart/Form-Data ;boundary=x"])
def test_multipart_content_types_are_recognized(value: bytes) -> None:
    request = SimpleNamespace(headers=Headers([(b"content-type", value)]))
    assert multipart_content_type(cast("Request", request)) is not None


@pytest.mark.parametrize("fields", [[], [(b"content-type", b"multipart/mixed; boundary=x")], [(b"content-type", b"")]])
def test_other_content_types_are_no_form(fields: list[tuple[bytes, bytes]]) -> None:
    assert multipart_content_type(cast("Request", SimpleNamespace(headers=Headers(fields)))) is None
