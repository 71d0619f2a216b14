"""Discovery of a vendor's present voices and models, beyond those of the registry (wire terminal-voice 4.4).

Of a list in another form than documented, the valid part is used; entries without an id are left out.
"""

from collections.abc import Mapping
from urllib.parse import quote

from attrs import field, frozen

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import fetch
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, as_array, json_value
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers.errors import response_error
from svc_proto.voice.providers.http_apis import SPEECH_APIS

__all__ = ["DiscoveryResult", "ProviderVoice", "discover_elevenlabs", "discover_xai"]

CALL_TIMEOUT = 5.0  # s for one call, wire 4.4
MAX_PAGES = 20  # wire 4.4
MAX_OFFERED = 2_000  # voices and models each
MAX_NAME = 160  # characters, wire 4.1
TOLERATED = (403, 404)  # an account without voices of its own


@frozen
class ProviderVoice:
    """Voice of a vendor; `label` is for people, `custom`: of this account."""

    id: str
    label: str
    custom: bool = False


@frozen(kw_only=True)
class DiscoveryResult:
    """Voices, models and languages of a vendor; labels by id."""

    source: str
    voices: tuple[ProviderVoice, ...] = ()
    models: tuple[str, ...] = ()
    model_labels: Mapping[str, str] = field(factory=dict)
    languages: tuple[str, ...] = ()
    language_labels: Mapping[str, str] = field(factory=dict)


def discover_elevenlabs(engine: Engine, access: ProviderCredentials) -> Flow[DiscoveryResult]:
    """Return ElevenLabs' voices, speech models and languages; raise `ProviderError` if a request fails.

    They come from `GET /v1/voices` and `GET /v1/models`.
    """
    found = yield from _get(engine, access, "/v1/voices")
    offered = yield from _get(engine, access, "/v1/models")
    voices = {
        voice.id: voice
        for entry in _entries(found, "voices")
        if (voice := _voice(entry, custom=entry.get("category") in ("cloned", "generated", "professional")))
    }
    models = {
        name: _label(entry, name)
        for entry in _entries(offered, "models")
        if (name := _name(entry, "model_id")) and entry.get("can_do_text_to_speech") is not False
    }
    languages = {
        name: _label(language, name)
        for entry in _entries(offered, "models")
        for language in _entries(entry, "languages")
        if (name := _name(language, "language_id"))
    }
    return DiscoveryResult(
        source="elevenlabs_api",
        voices=tuple(voices.values())[:MAX_OFFERED],
        models=tuple(models)[:MAX_OFFERED],
        model_labels=models,
        languages=tuple(languages)[:MAX_OFFERED],
        language_labels=languages,
    )


def discover_xai(engine: Engine, access: ProviderCredentials) -> Flow[DiscoveryResult]:
    """Return xAI's voices, its own and those of the account; raise `ProviderError` if a request fails.

    They come from `GET /v1/tts/voices` and up to `MAX_PAGES` pages of `GET /v1/custom-voices`; a 403 or 404 for the
    latter means that the account has none.
    """
    found = yield from _get(engine, access, "/v1/tts/voices")
    voices = {voice.id: voice for entry in _entries(found, "voices") if (voice := _voice(entry, custom=False))}
    page = ""
    for _ in range(MAX_PAGES):
        path = "/v1/custom-voices?limit=100" + (f"&pagination_token={quote(page, safe='')}" if page else "")
        value = yield from _get(engine, access, path, tolerated=TOLERATED)
        for entry in _entries(value, "voices"):
            if voice := _voice(entry, custom=True):
                voices.setdefault(voice.id, voice)
        following = _name(JsonObject.of(value), "pagination_token")
        if not following or following == page or len(voices) >= MAX_OFFERED:
            break
        page = following
    return DiscoveryResult(source="xai_api", voices=tuple(voices.values())[:MAX_OFFERED])


def _get(engine: Engine, access: ProviderCredentials, path: str, *, tolerated: tuple[int, ...] = ()) -> Flow[object]:
    key = SPEECH_APIS[access.endpoint.lower()].header(access.key)
    answer = yield from fetch(engine, "GET", access.at(path), headers=key, within=CALL_TIMEOUT)
    if not isinstance(answer, Failure) and answer.status in tolerated:
        return None
    if isinstance(answer, Failure) or answer.status != 200:
        raise response_error(access, answer)
    value = json_value(answer.body, answer)
    if value is answer:
        raise ProviderError(f"{access.endpoint} answered with something that is no list")
    return value


def _entries(value: object, name: str) -> list[JsonObject]:
    """Return the objects of a list, or of an object's list of that name."""
    return JsonObject.of({name: value} if as_array(value) is not None else value).objects(name)


def _voice(entry: JsonObject, *, custom: bool) -> ProviderVoice | None:
    name = _name(entry, "voice_id") or _name(entry, "id")
    return ProviderVoice(name, _label(entry, name), custom) if name else None


def _label(entry: JsonObject, name: str) -> str:
    return _name(entry, "name") or name


def _name(entry: JsonObject, member: str) -> str:
    value = entry.text(member)
    return value.strip() if value.isprintable() and len(value.strip()) <= MAX_NAME else ""
