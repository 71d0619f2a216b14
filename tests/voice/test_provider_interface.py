import pytest
from attrs.exceptions import FrozenInstanceError

from svc_proto.voice.provider_interface import AudioDelta, ProviderError, ProviderInfo, SpeechFile, SpeechRequest


def test_an_error_may_name_a_variable() -> None:
    assert ProviderError("no sound").variable is None
    missing = ProviderError("XAI_API_KEY not set", variable="XAI_API_KEY")
    assert (str(missing), missing.variable) == ("XAI_API_KEY not set", "XAI_API_KEY")


def test_values_cannot_be_changed_and_sound_does_not_show() -> None:
    request = SpeechRequest(text="Hello.")
    assert (request.sample_rate, request.expression, request.options) == (24_000, {}, {})
    with pytest.raises(FrozenInstanceError):
        request.text = "x"  # type: ignore[misc]  # the case under test
    assert "sound" not in repr(SpeechFile(b"sound", "audio/mpeg")) + repr(AudioDelta("r1", b"sound"))
    assert ProviderInfo(id="x", name="X", description="").status == "available"
