"""The providers by their ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.contract import RealtimeOptions
from svc_proto.voice.providers.local import Local
from svc_proto.voice.providers.one_shot import OneShotRenderer
from svc_proto.voice.providers.realtime import OpenAiDialect, XaiDialect
from svc_proto.voice.providers.stub import StubRenderer
from svc_proto.voice.providers.table import Providers
from svc_proto.voice.providers.vendor import VendorEngine
from svc_proto.voice.registry import PROVIDERS
from tests.voice.providers.studio import Studio, problem

OPTIONS = RealtimeOptions(model="m", voice="v", sample_rate=24_000)


def of_providers(look: Callable[[Providers], object]) -> Any:
    def plan(providers: Providers, engine: Engine) -> Flow[object]:
        yield from ()
        return look(providers)

    return Studio().run(plan)


RENDERERS = {
    StubRenderer: ("stub",),
    Local: ("local", " Local"),
    VendorEngine: (
        "openai",
        "OpenAI-TTS",
        "grok",
        "grok-tts",
        " elevenlabs ",
        "xai_tts",
        "elevenlabs_tts",
        "openai_tts",
    ),
    OneShotRenderer: ("openai_realtime", "xai_realtime", "grok-realtime"),
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind, names in RENDERERS.items() for name in names])
def test_who_renders(name: str, kind: type[object]) -> None:
    assert isinstance(of_providers(lambda providers: providers.renderer(name)), kind)


def test_every_provider_of_the_registry_renders() -> None:
    assert set(PROVIDERS) <= {name for names in RENDERERS.values() for name in names}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai_realtime", OpenAiDialect), ("openai", OpenAiDialect), ("grok_realtime", XaiDialect), ("xai", XaiDialect)],
)
def test_dialects(name: str, kind: type[object]) -> None:
    assert isinstance(of_providers(lambda providers: providers.dialect(name, OPTIONS)), kind)


@pytest.mark.parametrize(("name", "shown"), [("gemini", "gemini"), ("", ""), ("a\n" + "x" * 79, "a " + "x" * 78)])
def test_providers_that_are_not_built(name: str, shown: str) -> None:
    studio = Studio()

    def dialect(name: str) -> object:
        return of_providers(lambda providers: providers.dialect(name, OPTIONS))

    speech = [(studio.render, "text to speech"), (studio.speak, "text to speech")]
    for call, what in [*speech, (studio.transcribe, "speech to text"), (dialect, "realtime")]:
        words = str(problem(lambda call=call: call(name)))  # type: ignore[misc]
        assert words == f"the {what} provider '{shown}' is not built in"
