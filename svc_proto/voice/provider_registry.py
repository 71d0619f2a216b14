"""Registry of the speech providers, with a static description of each (wire terminal-voice 4.2)."""

from collections.abc import Mapping
from functools import partial

from svc_proto.voice.provider_interface import ProviderInfo

__all__ = ["LOCAL", "PROVIDERS", "canonical_id", "is_renderer"]

LOCAL = "local"  # programs of this host
OPENAI_VOICES = ("alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar")
XAI_VOICES = ("eve", "ara", "rex", "sal", "leo")
OLD_OPENAI_VOICES = ("alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer")
WIDE_RATES = (16_000, 22_050, 24_000, 44_100, 48_000)
_OPENAI = partial(ProviderInfo, sample_rates=(24_000,), source="openai_docs", recommended=("marin", "cedar", "coral"))
_XAI = partial(
    ProviderInfo, voices=XAI_VOICES, sample_rates=(24_000,), source="xai_docs", recommended=("eve", "ara", "sal")
)

_ROWS = (  # in the order of their ids
    ProviderInfo(
        id="elevenlabs_tts",
        name="ElevenLabs TTS",
        description="Streaming text to speech by ElevenLabs.",
        models=("eleven_flash_v2_5", "eleven_multilingual_v2", "eleven_turbo_v2_5"),
        voices=("21m00Tcm4TlvDq8ikWAM",),
        languages=("en",),
        sample_rates=WIDE_RATES,
        supports=frozenset({"tts", "expression"}),
    ),
    ProviderInfo(
        id="local",
        name="This host",
        description="Speech engines of the relay's own host: no key, no network.",
        models=("espeak-ng",),
        voices=("en", "en-us", "en-gb"),
        languages=("en",),
        sample_rates=WIDE_RATES,
        supports=frozenset({"tts", "stt"}),
        rendered=True,
    ),
    _OPENAI(
        id="openai_realtime",
        name="OpenAI Realtime",
        description="Speech to speech by OpenAI.",
        models=("gpt-realtime-2.1", "gpt-realtime-2.1-mini", "gpt-realtime-2"),
        voices=OPENAI_VOICES,
        supports=frozenset({"tts", "realtime", "expression"}),
        native=True,
    ),
    _OPENAI(
        id="openai_tts",
        name="OpenAI TTS",
        description="Text to speech by OpenAI.",
        models=("gpt-4o-mini-tts", "tts-1", "tts-1-hd"),
        voices=(*OPENAI_VOICES, "fable", "onyx", "nova"),
        languages=("en",),
        supports=frozenset({"tts", "expression"}),
        voices_of={"tts-1": OLD_OPENAI_VOICES, "tts-1-hd": OLD_OPENAI_VOICES},
    ),
    ProviderInfo(
        id="stub",
        name="Test tone",
        description="A tone in place of speech, for tests: no key, no network.",
        models=("stub-tone",),
        voices=("sine",),
        languages=("en",),
        sample_rates=(16_000, 24_000, 48_000),
        supports=frozenset({"tts", "stt", "speech_to_speech", "expression"}),
        rendered=True,
    ),
    _XAI(
        id="xai_realtime",
        name="xAI Realtime",
        description="Speech to speech by xAI.",
        models=("grok-voice-latest", "grok-voice-think-fast-1.0"),
        supports=frozenset({"tts", "tool_use", "realtime", "interruption", "expression"}),
        native=True,
    ),
    _XAI(
        id="xai_tts",
        name="xAI TTS",
        description="Text to speech by xAI.",
        models=("xai-tts",),
        languages=("en",),
        supports=frozenset({"tts", "expression"}),
    ),
)

PROVIDERS: Mapping[str, ProviderInfo] = {info.id: info for info in _ROWS}


def canonical_id(name: str, kind: str) -> str:
    """Return the provider's id for a name: `xai-realtime` gives `xai_realtime` (wire 3.2).

    `kind` is `tts` or `realtime`, the meaning of a vendor's bare name: with `tts`, `grok` gives `xai_tts`.
    """
    plain = name.strip().lower().replace("-", "_")
    endpoint = {"grok": "xai"}.get(plain, plain)
    if endpoint == "elevenlabs":
        return "elevenlabs_tts"
    return f"{endpoint}_{kind}" if endpoint in ("xai", "openai") else plain


def is_renderer(info: ProviderInfo) -> bool:
    """Report whether a provider converts text to speech and has no realtime socket (wire 4.2)."""
    return "tts" in info.supports and "realtime" not in info.supports
