import pytest
from attrs.exceptions import FrozenInstanceError

from svc_proto.voice.provider_interface import AudioDelta, ProviderInfo, SpeechFile, SpeechRequest


def test_values_cannot_be_changed_and_sound_does_not_show() -> None:
    request = SpeechRequest(text="Hello.")
    assert (request.sample_rate, request.expression, request.options) == (24_000, {}, {})
    with pytest.raises(FrozenInstanceError):
        request.text = "x"  # type: ignore[misc]  # the case under test
    assert "sound" not in repr(SpeechFile(b"sound", "audio/mpeg")) + repr(AudioDelta("r1", b"sound"))
    assert ProviderInfo(id="x", name="X", description="").status == "available"
