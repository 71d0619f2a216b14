"""Flows of the voice side, run to their end in a world of files, scripted servers and a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import yaml

from runtimes.compute import edit_yaml, load_yaml
from runtimes.failures import HostError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.service import Voice
from svc_proto.voice_config import VoiceConfig
from tests.client.world import Asked, World

__all__ = ["CONFIG", "run", "world_of"]

CONFIG = VoiceConfig(home="/r", service_home="/h", config_path="/h/config.yaml", api_key="from the environment")
T = TypeVar("T")


def world_of(
    plan: Callable[[Engine], Flow[T]],
    files: Mapping[str, object] | None = None,
    *,
    http: Callable[[Asked], Any] | None = None,
) -> World[T]:
    """A world with these files; what is no text is written as YAML."""
    texts = {path: value if isinstance(value, str) else yaml.safe_dump(value) for path, value in (files or {}).items()}
    compute: dict[str, Callable[..., object]] = {
        "yaml.load": _failing(load_yaml),
        "yaml.edit": _failing(edit_yaml),
        "voice.engines": dict,
    }
    world = World(plan, files={path: text.encode() for path, text in texts.items()}, compute=compute)
    if http is not None:
        world.http = http
    return world


def run(
    plan: Callable[[Voice], Flow[T]],
    files: Mapping[str, object] | None = None,
    *,
    config: VoiceConfig = CONFIG,
    http: Callable[[Asked], Any] | None = None,
) -> T:
    """What a flow of a voice side with the real providers returns."""
    return world_of(lambda engine: plan(Voice(engine, config)), files, http=http).run()


def _failing(function: Callable[..., object]) -> Callable[..., object]:
    """Host work whose errors are answers."""

    def work(*args: object) -> object:
        try:
            return function(*args)
        except HostError as error:
            return error.failure

    return work
