"""A recording's name on the disk. How it gets there: tests/relay/routes/test_voice_basic.py."""

from __future__ import annotations

import pytest

from svc_proto.relay.voice_upload import suffix_of


@pytest.mark.parametrize(
    ("content_type", "suffix"),
    [
        ("audio/wav", ".wav"),
        ("audio/wave", ".wav"),
        ("audio/x-wav", ".wav"),
        ("audio/webm", ".webm"),
        ("video/webm", ".webm"),
        ("audio/ogg", ".ogg"),
        ("audio/opus", ".opus"),
        ("audio/mp4", ".m4a"),
        ("audio/x-m4a", ".m4a"),
        ("audio/mpeg", ".mp3"),
        ("audio/mp3", ".mp3"),
        ("audio/flac", ".flac"),
        ("audio/x-flac", ".flac"),
        ("audio/aac", ".aac"),
        ("application/octet-stream", ".wav"),
        ("wav", ".wav"),
        ("", ".wav"),
    ],
)
def test_suffixes(content_type: str, suffix: str) -> None:
    assert suffix_of(content_type) == suffix
