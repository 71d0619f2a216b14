"""What voice output and realtime are set to, and where that was found (wire terminal-voice 3.2, 4.1, 5, 6.1)."""

from __future__ import annotations

from attrs import frozen

__all__ = ["OutputSettings", "Promotion", "RealtimeSettings", "Scope"]


@frozen(kw_only=True)
class Scope:
    """Where settings come from."""

    config_scope: str = "relay"  # or `global`, `profile`
    profile: str | None = None  # as it was asked for
    fallback_to_global: bool = False
    config_path: str | None = None  # the profile's file; None for the relay's own settings and global ones

    def fields(self) -> dict[str, object]:
        """The three members that every answer about settings carries."""
        return {
            "profile": self.profile,
            "config_scope": self.config_scope,
            "fallback_to_global": self.fallback_to_global,
        }


@frozen(kw_only=True)
class OutputSettings:
    """Of streaming speech output."""

    scope: Scope = Scope()
    enabled: bool = True
    provider: str = "xai_tts"
    model: str = "xai-tts"
    voice: str = "eve"
    sample_rate: int = 24_000  # Hz
    language: str = "en"
    codec: str = "pcm"
    optimize_streaming_latency: int = 1
    text_normalization: bool = False
    fallback_enabled: bool = True
    auto_speech_tags: bool = False


@frozen(kw_only=True)
class Promotion:
    """Of runs that go on in the background."""

    enabled: bool = True
    promote_after_ms: int = 6_000
    background_default_mode: str = "promote"
    spoken_handoff: bool = True
    progress_spoken_after_ms: int = 0
    progress_repeat_ms: int = 30_000
    result_delivery: str = "speak_verbatim"
    max_background_runs: int = 1


@frozen(kw_only=True)
class RealtimeSettings:
    """Of the realtime lab and the realtime agent."""

    scope: Scope = Scope()
    enabled: bool = True
    provider: str = "xai_realtime"
    model: str = "grok-voice-latest"
    voice: str = "eve"
    sample_rate: int = 24_000  # Hz
    promotion: Promotion = Promotion()
    run_retention_days: int = 14  # 0: event logs are kept
    debug_audio_tap: bool = False
