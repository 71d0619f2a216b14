"""The providers by their ids."""

from __future__ import annotations

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.contract import RealtimeOptions
from svc_proto.voice.providers.local import Local
from svc_proto.voice.providers.realtime import OpenAiDialect, XaiDialect
from svc_proto.voice.providers.stub import StubRenderer
from svc_proto.voice.providers.table import Providers
from svc_proto.voice.providers.vendor import VendorEngine
from svc_proto.voice.registry import PROVIDERS
from tests.voice.providers.studio import Studio, problem

OPTIONS = RealtimeOptions(model="m", voice="v", sample_rate=24_000)


def with_providers(look: object) -> object:
    def plan(providers: Providers, engine: Engine) -> Flow[object]:
        yield from ()
        return look(providers)  # type: ignore[operator]  # a look at them

    return Studio().run(plan)


def test_every_provider_of_the_registry_renders() -> None:
    for info in PROVIDERS.values():
        assert hasattr(with_providers(lambda providers, info=info: providers.renderer(info.id)), "render")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stub", StubRenderer),
        ("local", Local),
        ("openai", VendorEngine),
        ("OpenAI-TTS", VendorEngine),
        ("grok", VendorEngine),
        ("grok-tts", VendorEngine),
        (" elevenlabs ", VendorEngine),
    ],
)
def test_both_spellings(name: str, kind: type[object]) -> None:
    assert isinstance(with_providers(lambda providers: providers.renderer(name)), kind)


def test_speakers_and_transcribers() -> None:
    for name in ("openai", "xai", "elevenlabs"):
        assert isinstance(with_providers(lambda providers, name=name: providers.speaker(name)), VendorEngine)
        assert isinstance(with_providers(lambda providers, name=name: providers.transcriber(name)), VendorEngine)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai_realtime", OpenAiDialect), ("openai", OpenAiDialect), ("grok_realtime", XaiDialect), ("xai", XaiDialect)],
)
def test_dialects(name: str, kind: type[object]) -> None:
    assert isinstance(with_providers(lambda providers: providers.dialect(name, OPTIONS)), kind)


@pytest.mark.parametrize(("name", "shown"), [("stub", "stub"), ("a\n" + "x" * 79, "a " + "x" * 78)])
def test_a_dialect_that_nobody_speaks(name: str, shown: str) -> None:
    words = str(problem(lambda: with_providers(lambda providers: providers.dialect(name, OPTIONS))))
    assert words == f"the realtime provider '{shown}' is not built in"
