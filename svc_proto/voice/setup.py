"""Putting the voice side together: what the relay makes once, at its start.

parts = build_voice(engine, config)
answer = yield from parts.sessions["output"].create(body, principal)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.voice.agent.service import RealtimeAgent
from svc_proto.voice.family import Family
from svc_proto.voice.options import Options
from svc_proto.voice.providers.table import Providers
from svc_proto.voice.service import Voice
from svc_proto.voice.speech import RealtimeLab, VoiceOutput
from svc_proto.voice_config import VoiceConfig

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["VoiceParts", "build_voice"]


@frozen
class VoiceParts:
    """What the routes work with."""

    voice: Voice
    options: Options
    sessions: Mapping[str, Family]  # output, lab, agent


def build_voice(engine: Engine, config: VoiceConfig) -> VoiceParts:
    """Make everything. Nothing is read or connected to yet."""
    voice = Voice(engine, config)
    voice.providers = Providers(engine, voice.keys)
    sessions: dict[str, Family] = {
        "output": VoiceOutput(voice),
        "lab": RealtimeLab(voice),
        "agent": RealtimeAgent(voice),
    }
    return VoiceParts(voice, Options(voice), sessions)
