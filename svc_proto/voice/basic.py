"""Basic voice: speech synthesis and transcription by the providers that `tts:` and `stt:` of the configuration name.

    tts: {provider: xai, xai: {voice_id: leo}}
    stt: {enabled: true, provider: openai, openai: {model: whisper-1}}
    tts: {provider: mine, providers: {mine: {type: command, command: "espeak-ng -w {output_path}", format: wav}}}

Where no provider is named, the local provider is used if its programs are installed, else the first vendor with a key
(wire 3). A named provider that cannot be used is an error; no other one replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import FALSE_WORDS, invalid, single_line, text
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.profiles import ConfigProfile, find_profile
from svc_proto.voice.provider_interface import ProviderError, Recording, SpeechFile, SpeechRequest
from svc_proto.voice.provider_registry import LOCAL
from svc_proto.voice.providers.command_line import CommandLineProvider, CommandTemplate
from svc_proto.voice.settings import SettingsScope
from svc_proto.voice.speech_text import clean_for_speech
from svc_proto.wire.limits import MAX_TEXT

if TYPE_CHECKING:
    from svc_proto.schema.voice_types import VoiceConfigJson, VoiceRequirementsJson
    from svc_proto.voice.service import VoiceServices

__all__ = ["BasicVoice", "SpeechProviderConfig", "spoken_text"]

AUTO = {  # vendors in the order in which they are tried; the name gives the key's variable (wire 3.5)
    "tts": ("openai", "xai", "elevenlabs", "deepinfra"),
    "stt": ("groq", "openai", "mistral", "xai", "elevenlabs", "deepinfra"),
}
BUILT_IN = {LOCAL, "grok", *AUTO["tts"], *AUTO["stt"]}  # any other name may be a command of the operator (wire 3.5)
FAULTS = {  # the beginning of an error text, its subject, and text before `INSTALL_HINT`
    "tts": ("TTS configuration error", "text to speech", "no provider; "),
    "stt": ("No STT provider available", "speech to text", ""),
}
INSTALL_HINT = (
    "install espeak-ng and the voice extra, or set a key such as OPENAI_API_KEY, XAI_API_KEY or ELEVENLABS_API_KEY"
)
WITH_CONTROLS = ("xai",)  # a request may choose their voice and language, wire 3.4
CHOOSABLE = ("voice", "language")
MAX_NAME = 160  # characters of each


@frozen(kw_only=True)
class SpeechProviderConfig:
    """Settings of the section `tts` or `stt`, and the provider that is used."""

    provider: str  # empty: none is named, and none is available
    enabled: bool
    model: str = ""
    voice: str = ""
    language: str = ""
    command: CommandTemplate | None = None  # the operator's own


def spoken_text(value: object) -> str:
    """Return a request's text to speak, without markup; raise `Refused` 400 for an invalid or empty one."""
    given = text(value, "text").strip()
    if not 1 <= len(given) <= MAX_TEXT:
        raise invalid("text", f"text of 1 to {MAX_TEXT} characters")
    cleaned = clean_for_speech(given)
    if not cleaned:
        raise invalid("text", "something that can be spoken")
    return cleaned


class BasicVoice:
    """Handlers of the basic voice routes: configuration, transcription and synthesis."""

    def __init__(self, voice: VoiceServices) -> None:
        self._voice = voice

    def config(self, name: str | None) -> Flow[VoiceConfigJson]:
        """Return the response of `GET /voice/config`; a `provider` is null if none is named and none is available."""
        profile = yield from self._profile(name)
        speaks = yield from self._engine("tts", profile)
        listens = yield from self._engine("stt", profile)
        scope = profile.scope
        if scope.config_scope == "profile" and not (profile.data.get_object("tts") or profile.data.get_object("stt")):
            scope = SettingsScope(config_scope="global", fallback_to_global=True)  # wire 3.1: it gets the global values
        return {
            "success": True,
            "profile": name,
            "config_scope": scope.config_scope,
            "config_path": scope.config_path,
            "fallback_to_global": scope.fallback_to_global,
            "tts": {
                "provider": speaks.provider or None,
                "voice_id": speaks.voice or None,
                "voice": speaks.voice or None,
                "model": speaks.model or None,
                "enabled": speaks.enabled and bool(speaks.provider),
                "enhanced": _enhanced(speaks),
            },
            "stt": {
                "provider": listens.provider or None,
                "model": listens.model or None,
                "enabled": listens.enabled and bool(listens.provider),
            },
            "requirements": (yield from self._requirements(speaks, listens)),
        }

    def transcribe(self, name: str | None, recording: Recording) -> Flow[tuple[str, str]]:
        """Transcribe a recording; return text and provider (wire 3.3).

        Raise `Refused` 500 if transcription is disabled, no provider is usable, or the provider fails.
        """
        engine = yield from self._usable("stt", name)
        try:
            transcriber = self._own(engine) or self._voice.providers.transcriber(engine.provider)
            transcript = yield from transcriber.transcribe(recording, model=engine.model, language=engine.language)
            return transcript, engine.provider
        except ProviderError as error:
            missing = error.variable is not None
            text = f"No STT provider available ({engine.provider}): {error}" if missing else str(error)
            raise self._failed("stt", text, None if missing else engine.provider) from error

    def synthesize(self, name: str | None, text: str, body: Mapping[str, object]) -> Flow[SpeechFile]:
        """Synthesize a text as one audio file.

        Raise `Refused` 500 if synthesis is disabled, no provider is usable, or the provider fails. Raise 400 for an
        invalid voice or language in the body if the provider accepts these.
        """
        engine = yield from self._usable("tts", name)
        chosen = _overrides(body) if engine.provider in WITH_CONTROLS else {}
        request = SpeechRequest(
            text=text,
            model=engine.model,
            voice=chosen.get("voice") or engine.voice,
            language=chosen.get("language") or engine.language,
        )
        try:
            speaker = self._own(engine) or self._voice.providers.file_speaker(engine.provider)
            return (yield from speaker.speak(request))
        except ProviderError as error:
            kind = "TTS configuration error" if error.variable is not None else "TTS failed"
            raise self._failed("tts", f"{kind} ({engine.provider}): {error}", engine.provider) from error

    # --- helpers ---

    def _usable(self, kind: str, name: str | None) -> Flow[SpeechProviderConfig]:
        profile = yield from self._profile(name)
        engine = yield from self._engine(kind, profile)
        fault, what, missing = FAULTS[kind]
        if not engine.enabled:
            raise self._failed(kind, f"{fault}: {what} is disabled ({kind}.enabled)")
        if not engine.provider:
            raise self._failed(kind, f"{fault}: {missing}{INSTALL_HINT}")
        return engine

    def _failed(self, kind: str, message: str, provider: str | None = None) -> Refused:
        """Log a failure and return its `Refused` 500; transcription also names the provider (wire 3.3)."""
        self._voice.engine.log(Level.WARNING, "voice engine failed", provider=provider, problem=message)
        return Refused(500, "voice_unavailable", message, extra={"provider": provider} if kind == "stt" else {})

    def _profile(self, name: str | None) -> Flow[ConfigProfile]:
        voice = self._voice
        yield from voice.refresh_keys()
        return (yield from find_profile(voice.engine, voice.config.config_path, name))

    def _engine(self, kind: str, profile: ConfigProfile) -> Flow[SpeechProviderConfig]:
        """Read the settings of the profile's section `kind`, or of the root's if the profile has no such section.

        The root also provides a missing provider (wire 3.2). If neither names one, an available one is chosen.
        """
        voice = self._voice
        said = profile.data.get_object(kind)
        provider = said.first_text("provider").lower()
        if not provider and profile.path != voice.config.config_path:
            root = (yield from find_profile(voice.engine, voice.config.config_path, None)).data.get_object(kind)
            provider = root.first_text("provider").lower()
            said = said or root
        own = CommandTemplate.of(provider, said) if provider and provider not in BUILT_IN else None
        fields = JsonObject(own.values) if own is not None else said.get_object(provider) if provider else JsonObject()
        return SpeechProviderConfig(
            provider=provider or (yield from self._auto(kind)),
            enabled=str(said.get("enabled", True)).strip().lower() not in FALSE_WORDS,
            model=fields.first_text("model", "model_id"),
            voice=fields.first_text("voice_id", "voice"),
            language=fields.first_text("language"),
            command=own,
        )

    def _own(self, engine: SpeechProviderConfig) -> CommandLineProvider | None:
        return None if engine.command is None else CommandLineProvider(self._voice.engine, engine.command)

    def _auto(self, kind: str) -> Flow[str]:
        voice = self._voice
        engines = yield from voice.providers.host.engines()
        if engines.speak if kind == "tts" else engines.listen:
            return LOCAL
        return next((provider for provider in AUTO[kind] if voice.keys.get(f"{provider.upper()}_API_KEY")), "")

    def _requirements(self, speaks: SpeechProviderConfig, listens: SpeechProviderConfig) -> Flow[VoiceRequirementsJson]:
        missing = (yield from self._voice.providers.host.engines()).missing
        available = bool(speaks.provider or listens.provider)
        details = f"speaks: {speaks.provider or 'nothing'}; listens: {listens.provider or 'nothing'}"
        if missing:
            details += f"; not installed: {', '.join(missing)}"
        return {
            "audio_available": bool(speaks.provider),
            "stt_available": bool(listens.provider),
            "missing_packages": missing,
            "available": available,
            "details": details,
            "environment": {"available": available, "warnings": []},
        }


def _overrides(body: Mapping[str, object]) -> dict[str, str]:
    """Return `voice` and `language` of a request: from its top level, or else from `enhanced` (wire 3.4).

    Raise `Refused` 400 for an invalid value. Other members are ignored, so a request cannot set an address.
    """
    given = ((name, holder.get(name)) for holder in (JsonObject.of(body.get("enhanced")), body) for name in CHOOSABLE)
    return {name: single_line(value, name, MAX_NAME) for name, value in given if value is not None}


def _enhanced(engine: SpeechProviderConfig) -> dict[str, object] | None:
    """Return the member `enhanced` of the speech configuration (wire 3.1).

    Return None for a provider whose voice and language a request cannot choose.
    """
    if engine.provider not in WITH_CONTROLS:
        return None
    return {
        "provider": engine.provider,
        "supported": True,
        "voices": [],
        "models": [],
        "audio_tag_models": [],
        "audio_tags_enabled": False,
        "audio_tags_label": "",
        "supports_persona": False,
        "supports_language": True,
        "persona_prompt_file": None,
        "overrides": ["voice", "language"],
    }
