from __future__ import annotations

from svc_proto.voice.settings import OutputSettings, Promotion, RealtimeSettings, Scope


def test_the_defaults_are_the_documents() -> None:
    output, realtime = OutputSettings(), RealtimeSettings()
    assert (output.provider, output.model, output.voice, output.sample_rate) == ("xai_tts", "xai-tts", "eve", 24_000)
    assert (output.language, output.codec, output.optimize_streaming_latency) == ("en", "pcm", 1)
    assert (output.enabled, output.fallback_enabled, output.text_normalization) == (True, True, False)
    assert (realtime.provider, realtime.model) == ("xai_realtime", "grok-voice-latest")
    assert realtime.promotion == Promotion()
    assert (realtime.run_retention_days, realtime.debug_audio_tap) == (14, False)


def test_where_it_comes_from() -> None:
    assert Scope().fields() == {"profile": None, "config_scope": "relay", "fallback_to_global": False}
    scope = Scope(config_scope="profile", profile="work", config_path="/p")
    assert scope.fields() == {"profile": "work", "config_scope": "profile", "fallback_to_global": False}
