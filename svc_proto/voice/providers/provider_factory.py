"""Factory of the speech providers by their ids.

    renderer = providers.renderer("openai_tts")
    done = yield from renderer.render(request, sink)

Both spellings of the wire are accepted: `openai` and `openai_tts`, `grok` and `xai`. Each call looks the key up again.
"""

from functools import partial

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import ProviderError, RealtimeOptions, Renderer
from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice.provider_registry import LOCAL, canonical_id
from svc_proto.voice.providers.discovery import DiscoveryResult, discover_elevenlabs, discover_xai
from svc_proto.voice.providers.http_apis import SPEECH_APIS
from svc_proto.voice.providers.http_provider import HttpSpeechProvider
from svc_proto.voice.providers.local import LocalProvider
from svc_proto.voice.providers.one_shot_renderer import OneShotRenderer
from svc_proto.voice.providers.realtime_dialects import OpenAiDialect, RealtimeDialect, XaiDialect
from svc_proto.voice.providers.stub import StubRenderer
from svc_proto.voice_config import ELEVENLABS_ENDPOINT, OPENAI_REALTIME_ENDPOINT, XAI_ENDPOINT, XAI_REALTIME_ENDPOINT

__all__ = ["ProviderFactory"]

DIALECTS = {
    "openai_realtime": (OPENAI_REALTIME_ENDPOINT, OpenAiDialect),
    "xai_realtime": (XAI_REALTIME_ENDPOINT, XaiDialect),
}
DISCOVERED = {"elevenlabs": (ELEVENLABS_ENDPOINT, discover_elevenlabs), "xai": (XAI_ENDPOINT, discover_xai)}


class ProviderFactory:
    """Factory of providers; `keys` are the operator's variables."""

    def __init__(self, engine: Engine, keys: ProviderKeys) -> None:
        self._engine = engine
        self._keys = keys
        self.host = LocalProvider(engine)

    def renderer(self, provider_id: str) -> Renderer:
        """Return a provider that converts text to PCM piece by piece: each id of the registry, or a vendor.

        The vendors are those of `file_speaker`. Raise `ProviderError` for another id, or without the vendor's key; for
        a realtime id `render` raises it.
        """
        plain = _plain(provider_id)
        if plain == "stub":
            return StubRenderer()
        if plain in DIALECTS:
            return OneShotRenderer(self._engine, provider_id, partial(self.dialect, provider_id))
        return self.file_speaker(provider_id)

    def file_speaker(self, provider_id: str) -> LocalProvider | HttpSpeechProvider:
        """Return a provider that converts text to a file: `local`, `openai`, `xai`, `elevenlabs`, `deepinfra`.

        Raise `ProviderError` for another id, or without the vendor's key.
        """
        return self._engine_of(provider_id, "text to speech")

    def transcriber(self, provider_id: str) -> LocalProvider | HttpSpeechProvider:
        """Return a transcriber: `local`, `openai`, `xai`, `elevenlabs`, `groq`, `mistral`, `deepinfra`.

        Raise `ProviderError` for another id, or without the vendor's key.
        """
        return self._engine_of(provider_id, "speech to text")

    def dialect(self, provider_id: str, options: RealtimeOptions) -> RealtimeDialect:
        """Return a new dialect for one realtime socket: `openai_realtime`, `xai_realtime`.

        Raise `ProviderError` for another id, or without the vendor's key.
        """
        found = DIALECTS.get(canonical_id(_plain(provider_id), "realtime"))
        if found is None:
            raise ProviderError(f"the realtime provider {_safe_id(provider_id)} is not built in")
        endpoint, dialect = found
        return dialect(self._keys.credentials_for(endpoint), options)

    def discover(self, provider_id: str) -> Flow[DiscoveryResult | None]:
        """Return a vendor's present offer beyond the registry; None for a vendor without discovery.

        Raise `ProviderError`, also for a missing key.
        """
        found = DISCOVERED.get(_plain(provider_id).partition("_")[0])
        if found is None:
            return None
        endpoint, discover = found
        return (yield from discover(self._engine, self._keys.credentials_for(endpoint)))

    def _engine_of(self, provider_id: str, what: str) -> LocalProvider | HttpSpeechProvider:
        plain = _plain(provider_id)
        if plain == LOCAL:
            return self.host
        api = SPEECH_APIS.get(plain.removesuffix("_tts"))
        if api is None or (what == "text to speech" and not api.model):
            raise ProviderError(f"the {what} provider {_safe_id(provider_id)} is not built in")
        return HttpSpeechProvider(self._engine, api, self._keys.credentials_for(api.endpoint))


def _plain(provider_id: str) -> str:
    plain = provider_id.strip().lower().replace("-", "_")
    return f"xai{plain.removeprefix('grok')}" if plain in ("grok", "grok_tts", "grok_realtime") else plain


def _safe_id(provider_id: str) -> str:
    """Return a client's provider id in a form that is fit for a message."""
    return repr("".join(letter if letter.isprintable() else " " for letter in provider_id[:80]))
