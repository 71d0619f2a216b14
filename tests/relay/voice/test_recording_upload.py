"""Suffixes of recordings' files by content type; uploads are tested in tests/relay/routes/test_voice_basic.py."""

import pytest

from svc_proto.relay.voice.recording_upload import suffix_of
from tests.voice.table_rows import rows

NAMES = """
audio/wav audio/wave audio/x-wav audio/vnd.wave application/octet-stream wav -> .wav
audio/webm video/webm -> .webm
audio/ogg -> .ogg
audio/opus -> .opus
audio/mp4 audio/m4a audio/x-m4a -> .m4a
audio/mpeg audio/mp3 -> .mp3
audio/flac audio/x-flac -> .flac
audio/aac -> .aac
"""


@pytest.mark.parametrize(("types", "suffix"), rows(NAMES))
def test_suffixes(types: str, suffix: str) -> None:
    assert {suffix_of(name) for name in types.split()} == {suffix}
    assert suffix_of("") == ".wav"
