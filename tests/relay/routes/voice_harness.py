"""Relay with scripted speech providers, and the requests of the voice route tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import yaml

from svc_proto.basics.brand import SVC, Brand
from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay_config import RelayConfig
from svc_proto.voice.provider_interface import ProviderError, Recording, SpeechFile, SpeechRequest
from svc_proto.voice.providers.discovery import DiscoveryResult
from svc_proto.voice.providers.local import LocalSpeechPrograms
from svc_proto.voice.providers.provider_factory import ProviderFactory
from svc_proto.voice_config import VoiceConfig
from tests.relay.harness import RelayHarness
from tests.support.http_codec import Response

__all__ = ["AGENT_FILE", "BASES", "FIRST_15", "OUTPUT", "RELAY_FILE", "SECTIONS", "WORK", "VoiceRoutesHarness"]
__all__ += ["get", "strict", "text_of"]

AGENT_FILE = "/home/svc/config.yaml"
RELAY_FILE = "/home/svc-relay/config.yaml"
OUTPUT = "/voice/output"
SECTIONS = {OUTPUT: "voice_output", "/voice/realtime": "realtime_voice", "/voice/realtime-agent": "realtime_voice"}
BASES = tuple(SECTIONS)
WORK = "/home/svc/profiles/work/config.yaml"
_NAMES = """
id name status description models voices languages sample_rates supports_tts supports_stt supports_speech_to_speech
supports_tool_use supports_realtime supports_interruption supports_expression
"""
FIRST_15 = _NAMES.split()  # members of every provider's object
KEYS = {"openai": "OPENAI_API_KEY", "xai": "XAI_API_KEY", "elevenlabs": "ELEVENLABS_API_KEY"}


class ScriptedProviders:
    """Replacement for `ProviderFactory`; `asked` records the requests that succeed."""

    def __init__(self, book: RelayHarness) -> None:
        self.book = book
        self.host = self
        self.local = False
        self.problem: ProviderError | None = None
        self.spoken = SpeechFile(b"ID3 sound", "audio/mpeg")
        self.takes = 0.0  # seconds for each request
        self.found: DiscoveryResult | None = None
        self.asked: list[object] = []

    def file_speaker(self, provider_id: str) -> ScriptedProviders:
        """Return this object as the provider; raise `ProviderError` if the provider's key is missing."""
        key = KEYS.get(provider_id.partition("_")[0])
        if key is not None and not self.book.relay.voice_side.voice.keys.get(key):
            raise ProviderError(f"{key} not set", variable=key)
        return self

    transcriber = file_speaker

    def speak(self, request: SpeechRequest) -> Flow[SpeechFile]:
        yield from self._work()
        self.asked.append(request)
        return self.spoken

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[str]:
        yield from self._work()
        data = bytes(self.book.disk.get(recording.path))
        self.asked.append((recording.content_type, recording.suffix, recording.size, len(data), model, language))
        return "turn on the lamp"

    def discover(self, provider_id: str) -> Flow[DiscoveryResult | None]:
        yield from self._work()
        self.file_speaker(provider_id)
        self.asked.append(provider_id)
        return self.found

    def engines(self) -> Flow[LocalSpeechPrograms]:
        yield from ()
        there = ("engine",) if self.local else ()
        return LocalSpeechPrograms(speak=there, listen=there, mp3=True, decode=True)

    def _work(self) -> Flow[None]:
        if self.takes:
            yield from sleep(self.book.engine, self.takes)
        if self.problem is not None:
            raise self.problem


class VoiceRoutesHarness(RelayHarness):
    """Relay with `ScriptedProviders`; its agent configuration is `AGENT_FILE`, its voice settings are in `RELAY_FILE`.

    `files` are values by path, written as YAML after the start of the relay.
    """

    def __init__(
        self,
        files: Mapping[str, object] | None = None,
        *,
        variables: Mapping[str, str] | None = None,
        keys: PairingApiKeys | None = None,
        brand: Brand = SVC,
        options_cache: float = 600.0,
    ) -> None:
        self.variables = dict(variables or {})  # environment variables
        voice = VoiceConfig(
            home="/home/svc-relay",
            service_home="/home/svc",
            config_path=AGENT_FILE,
            options_cache=options_cache,
            variables=self.variables,
        )
        super().__init__(RelayConfig(home="/home/svc", config_path=AGENT_FILE, voice=voice, brand=brand), keys=keys)
        for path, value in (files or {}).items():
            self.disk.put(path, yaml.safe_dump(value).encode())
        self.scripted_providers = ScriptedProviders(self)
        self.relay.voice_side.voice.providers = cast("ProviderFactory", self.scripted_providers)


def text_of(answer: Response, status: int) -> str:
    """Require a refusal in plain text with this status, and return its text."""
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == b"text/plain; charset=utf-8"
    return answer.body.decode()


def get(book: RelayHarness, path: str) -> dict[str, Any]:
    answer = book.request("GET", path, token=book.pair().token)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def strict(value: object) -> None:
    """Require that no member at any depth is null, except `profile` and `xai_oauth_source`; clients decode strictly."""
    if isinstance(value, dict):
        for name, member in value.items():
            assert member is not None or name in ("profile", "xai_oauth_source"), name
            strict(member)
    elif isinstance(value, list):
        for member in value:
            strict(member)
