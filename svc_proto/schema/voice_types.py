"""Types of the voice routes, for their handlers and the OpenAPI document of the relay.

Clients in use decode answers strictly: numbers and booleans must be JSON numbers and booleans.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from svc_proto.schema.common_types import NonNegativeInt
from svc_proto.schema.json_schema import schema_keywords


class VoiceRefusalJson(TypedDict):
    """A refusal of basic voice."""

    ok: Literal[False]
    error: str
    code: str
    success: NotRequired[Literal[False]]


class TtsProviderJson(TypedDict):
    """Engine for text to speech."""

    provider: str | None
    voice_id: str | None
    voice: str | None
    model: str | None
    enabled: bool
    enhanced: Annotated[dict[str, object] | None, "options that a request may set"]


class SttProviderJson(TypedDict):
    """Engine for speech to text."""

    provider: str | None
    model: str | None
    enabled: bool


class VoiceEnvironmentJson(TypedDict):
    """Availability of voice engines."""

    available: bool
    warnings: list[str]


class VoiceRequirementsJson(TypedDict):
    """Voice engines that are installed and that are missing."""

    available: bool
    audio_available: bool
    stt_available: bool
    missing_packages: list[str]
    details: str
    environment: VoiceEnvironmentJson


class VoiceConfigJson(TypedDict):
    """Engines of basic voice."""

    success: Literal[True]
    profile: str | None
    config_scope: str
    config_path: str | None
    fallback_to_global: bool
    tts: TtsProviderJson
    stt: SttProviderJson
    requirements: VoiceRequirementsJson


class RecordingJson(TypedDict):
    """A form with a recording."""

    file: Annotated[str, schema_keywords(contentMediaType="application/octet-stream")]


class TranscriptJson(TypedDict):
    """Text of a recording."""

    success: Literal[True]
    text: str
    provider: str
    profile: str | None


class SpeechJson(TypedDict, total=False):
    """Text to speak."""

    text: Required[Annotated[str, schema_keywords(minLength=1, maxLength=5_000)]]
    profile: str | None
    voice: str | None
    language: str | None
    enhanced: dict[str, object] | None


class VoiceScopeJson(TypedDict):
    """Source of the settings."""

    profile: str | None
    config_scope: str
    fallback_to_global: bool


class VoiceProviderJson(TypedDict):
    """A provider and its options, with labels and groups where the options were requested."""

    id: str
    name: str
    status: str
    description: str
    models: list[str]
    voices: list[str]
    languages: list[str]
    sample_rates: list[int]
    supports_tts: bool
    supports_stt: bool
    supports_speech_to_speech: bool
    supports_tool_use: bool
    supports_realtime: bool
    supports_interruption: bool
    supports_expression: bool
    supports_realtime_agent_native: NotRequired[bool]
    model_labels: NotRequired[dict[str, str]]
    voice_labels: NotRequired[dict[str, str]]
    language_labels: NotRequired[dict[str, str]]
    voice_groups: NotRequired[list[dict[str, object]]]
    voice_metadata: NotRequired[dict[str, dict[str, object]]]
    model_voice_compatibility: NotRequired[dict[str, list[str]]]
    recommended_voices: NotRequired[list[str]]
    requires_manual_id: NotRequired[bool]


class VoiceDefaultsJson(VoiceScopeJson):
    """Default provider, model, voice and sample rate."""

    default_provider: str
    default_model: str
    default_voice: str
    sample_rate: Annotated[int, "Hz"]


class VoiceModeSettingsJson(VoiceDefaultsJson):
    """Settings of speech output or of realtime voice."""

    success: Literal[True]
    enabled: bool
    protocol: str
    config_path: str
    providers: list[VoiceProviderJson]
    auth: Annotated[dict[str, bool | str | list[str] | None], "names of environment variables, never their values"]
    updated: NotRequired[Annotated[list[str], "names of the changed settings, after a change"]]


class OutputSettingsJson(VoiceModeSettingsJson):
    """Settings of speech output."""

    language: str
    codec: str
    optimize_streaming_latency: int
    text_normalization: bool
    fallback_enabled: bool
    auto_speech_tags: bool
    fallback_provider: str


class PromotionJson(TypedDict):
    """Conditions under which a run continues in the background."""

    enabled: bool
    promote_after_ms: NonNegativeInt
    background_default_mode: str
    spoken_handoff: bool
    progress_spoken_after_ms: NonNegativeInt
    progress_repeat_ms: NonNegativeInt
    result_delivery: str
    max_background_runs: NonNegativeInt


class AgentSettingsJson(VoiceModeSettingsJson):
    """Settings of the realtime agent."""

    available: bool
    experimental: bool
    mode: str
    stable_engine: str
    tool_surface: list[str]
    limits: list[str]
    promotion: PromotionJson


class SettingsChangeJson(TypedDict, total=False):
    """Change of settings; absent members stay as they are."""

    profile: str | None
    enabled: bool | int | str
    provider: str
    model: str
    voice: str
    sample_rate: Annotated[int | str, "Hz, 8000 to 96000"]


class OutputSettingsChangeJson(SettingsChangeJson, total=False):
    """Settings of speech output that can be changed."""

    language: str
    codec: str
    optimize_streaming_latency: int | str
    text_normalization: bool | int | str
    fallback_enabled: bool | int | str
    auto_speech_tags: bool | int | str


class AgentSettingsChangeJson(SettingsChangeJson, total=False):
    """Settings of the realtime agent that can be changed."""

    promotion_enabled: bool | int | str
    promote_after_ms: int | str
    progress_spoken_after_ms: int | str
    progress_repeat_ms: int | str
    max_background_runs: int | str
    spoken_handoff: bool | int | str
    background_default_mode: str
    result_delivery: str


class ProviderOptionsJson(VoiceDefaultsJson):
    """Options of a provider."""

    success: Literal[True]
    mode: str
    protocol: str
    schema_version: Literal[1]
    provider_id: str
    provider: VoiceProviderJson
    dynamic: Annotated[dict[str, object], "whether the options come from the provider itself"]
    language: NotRequired[str]
    tool_surface: NotRequired[list[str]]


class ProviderChoiceJson(TypedDict, total=False):
    """A choice of model, voice, sample rate and language; absent members take the configured values."""

    profile: str | None
    model: str | None
    voice: str | None
    sample_rate: int | str | None
    language: str | None


class ChoiceCheckJson(TypedDict):
    """Result of the validation of one member of a choice."""

    id: str
    status: Literal["ok", "warning", "error"]
    message: str


class ChoiceCheckedJson(TypedDict):
    """Result of the validation of a choice."""

    success: Literal[True]
    mode: str
    protocol: str
    provider_id: str
    model: str
    voice: str
    sample_rate: int
    language: NotRequired[str]
    dynamic: dict[str, object]
    valid: bool
    summary: Literal["ok", "invalid"]
    checks: list[ChoiceCheckJson]


class NewVoiceSessionJson(ProviderChoiceJson, total=False):
    """Properties of a new voice session; absent members take the configured values."""

    provider: str | None


class NewAgentSessionJson(NewVoiceSessionJson, total=False):
    """Properties of a new session with the agent."""

    chat_session_id: str | None
    context_messages: list[object] | None
    final_answer_only: bool


class VoiceSessionJson(VoiceScopeJson):
    """A session and the address of its WebSocket."""

    success: Literal[True]
    session_id: str
    websocket_path: str
    provider: str
    model: str
    voice: str
    sample_rate: int
    event_log_path: str
    protocol: str
    config_path: str | None
    resume_token: NotRequired[str]
    resume_supported: NotRequired[bool]
    resume_ttl_ms: NotRequired[NonNegativeInt]


class AgentSessionJson(VoiceSessionJson):
    """A session with the agent and the address of its WebSocket."""

    chat_session_id: str | None
    context_message_count: NonNegativeInt
    experimental: bool
    tool_surface: list[str]
