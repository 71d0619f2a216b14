"""The providers by their ids: whoever has a request for one asks here.

    renderer = providers.renderer("openai_tts")
    done = yield from renderer.render(request, sink)

Both spellings of the wire are taken: `openai` and `openai_tts`, `grok` and `xai`. An id that is not built, and a key
that is missing, raise `ProviderError` at once; a key is looked up anew at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.engine.flow import Flow
from svc_proto.voice.contract import ProviderError, RealtimeOptions, Renderer, Speaker, Transcriber
from svc_proto.voice.providers.access import admit
from svc_proto.voice.providers.discovery import Discovered, discover_elevenlabs, discover_xai
from svc_proto.voice.providers.local import Local
from svc_proto.voice.providers.one_shot import OneShotRenderer
from svc_proto.voice.providers.realtime import Dialect, OpenAiDialect, XaiDialect
from svc_proto.voice.providers.stub import StubRenderer
from svc_proto.voice.providers.vendor import VendorEngine
from svc_proto.voice.providers.vendors import APIS, VendorApi
from svc_proto.voice_config import ELEVENLABS, OPENAI_REALTIME, XAI, XAI_REALTIME

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.voice.keys import Keys

__all__ = ["Providers"]


class Providers:
    """`keys` are the operator's variables."""

    def __init__(self, engine: Engine, keys: Keys) -> None:
        self._engine = engine
        self._keys = keys
        self.host = Local(engine)

    def renderer(self, provider_id: str) -> Renderer:
        """Text to PCM, as it comes: every id of the registry, and `deepinfra`."""
        plain = _plain(provider_id)
        if plain == "stub":
            return StubRenderer()
        if plain == "local":
            return self.host
        if plain in ("openai_realtime", "xai_realtime"):
            return OneShotRenderer(self._engine, provider_id, self._dialect_maker(provider_id))
        return VendorEngine(self._engine, self._speaking(provider_id))

    def speaker(self, provider_id: str) -> Speaker:
        """Text to one audio file: `local`, `openai`, `xai`, `elevenlabs`, `deepinfra`."""
        if _plain(provider_id) == "local":
            return self.host
        return VendorEngine(self._engine, self._speaking(provider_id))

    def transcriber(self, provider_id: str) -> Transcriber:
        """An audio file to text: `local`, `openai`, `xai`, `elevenlabs`, `groq`, `mistral`, `deepinfra`."""
        if _plain(provider_id) == "local":
            return self.host
        vendor = self._vendor(provider_id)
        if vendor is None:
            raise ProviderError(f"the speech to text provider {_shown(provider_id)} is not built in")
        return VendorEngine(self._engine, vendor)

    def dialect(self, provider_id: str, options: RealtimeOptions) -> Dialect:
        """Speech both ways: `openai_realtime`, `xai_realtime`. One for each socket."""
        return self._dialect_maker(provider_id)(options)

    def discover(self, provider_id: str) -> Flow[Discovered | None]:
        """What a vendor offers now, beyond what the registry knows; None: there is nothing to ask.

        Raises `ProviderError`, for a missing key too.
        """
        match _plain(provider_id):
            case "elevenlabs" | "elevenlabs_tts":
                return (yield from discover_elevenlabs(self._engine, admit(ELEVENLABS, self._keys)))
            case "xai" | "xai_tts" | "xai_realtime":
                return (yield from discover_xai(self._engine, admit(XAI, self._keys)))
        return None

    def _speaking(self, provider_id: str) -> VendorApi:
        api = APIS.get(_vendor_name(provider_id))
        vendor = self._vendor(provider_id) if api is None or api.model else None
        if vendor is None:
            raise ProviderError(f"the text to speech provider {_shown(provider_id)} is not built in")
        return vendor

    def _vendor(self, provider_id: str) -> VendorApi | None:
        api = APIS.get(_vendor_name(provider_id))
        return None if api is None else VendorApi(api, admit(api.vendor, self._keys))

    def _dialect_maker(self, provider_id: str) -> Callable[[RealtimeOptions], Dialect]:
        match _plain(provider_id):
            case "openai_realtime" | "openai":
                access = admit(OPENAI_REALTIME, self._keys)
                return lambda options: OpenAiDialect(access, options)
            case "xai_realtime" | "xai":
                access = admit(XAI_REALTIME, self._keys)
                return lambda options: XaiDialect(access, options)
        raise ProviderError(f"the realtime provider {_shown(provider_id)} is not built in")


def _vendor_name(provider_id: str) -> str:
    return _plain(provider_id).removesuffix("_tts")


def _plain(provider_id: str) -> str:
    plain = provider_id.strip().lower().replace("-", "_")
    return f"xai{plain.removeprefix('grok')}" if plain in ("grok", "grok_tts", "grok_realtime") else plain


def _shown(provider_id: str) -> str:
    """A name that somebody made up, fit for a message."""
    return repr("".join(letter if letter.isprintable() else " " for letter in provider_id[:80]))
