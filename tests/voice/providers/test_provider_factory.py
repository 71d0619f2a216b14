from collections.abc import Callable

import pytest

from svc_proto.engine.core import Engine
from svc_proto.voice.provider_interface import RealtimeOptions
from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice.provider_registry import PROVIDERS
from svc_proto.voice.providers.provider_factory import ProviderFactory
from tests.engine.toy_service import ToyService
from tests.voice.providers.provider_harness import VARIABLES, problem
from tests.voice.table_rows import rows

TABLE = ProviderFactory(Engine(ToyService(), entropy=bytes), ProviderKeys(VARIABLES))
RENDERERS = """
stub -> StubRenderer
local -> LocalProvider
openai OpenAI-TTS openai_tts grok grok-tts xai_tts elevenlabs elevenlabs_tts -> HttpSpeechProvider
openai_realtime grok-realtime xai_realtime -> OneShotRenderer
"""
DIALECTS = """
openai_realtime openai -> OpenAiDialect
grok_realtime xai xai_realtime -> XaiDialect
"""


def dialect(name: str) -> object:
    return TABLE.dialect(name, RealtimeOptions(model="m", voice="v", sample_rate=24_000))


@pytest.mark.parametrize(
    ("find", "names", "kind"),
    [*((TABLE.renderer, *row) for row in rows(RENDERERS)), *((dialect, *row) for row in rows(DIALECTS))],
)
def test_provider_classes(find: Callable[[str], object], names: str, kind: str) -> None:
    assert {type(find(f" {name} ")).__name__ for name in names.split()} == {kind}


def test_every_provider_of_the_registry_renders() -> None:
    assert set(PROVIDERS) <= {name for names, _ in rows(RENDERERS) for name in names.split()}


@pytest.mark.parametrize(("name", "shown"), [("gemini", "gemini"), ("", ""), ("a\n" + "x" * 79, "a " + "x" * 78)])
def test_unavailable_providers(name: str, shown: str) -> None:
    speaks = [(TABLE.renderer, "text to speech"), (TABLE.file_speaker, "text to speech")]
    for find, what in [*speaks, (TABLE.transcriber, "speech to text"), (dialect, "realtime")]:
        words = str(problem(lambda find=find: find(name)))  # type: ignore[misc]
        assert words == f"the {what} provider '{shown}' is not built in"
