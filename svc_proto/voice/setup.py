"""Putting the voice side together: what the relay makes once, at its start.

parts = build_voice(engine, config)
answer = yield from parts.sessions["output"].create(body, principal)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.socket import SocketHandler
from svc_proto.voice.agent.service import RealtimeAgent
from svc_proto.voice.options import Options
from svc_proto.voice.principal import Principal
from svc_proto.voice.providers.table import Providers
from svc_proto.voice.service import Voice
from svc_proto.voice.speech import RealtimeLab, VoiceOutput
from svc_proto.voice_config import VoiceConfig

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["VoiceSessions", "VoiceParts", "build_voice"]


class VoiceSessions(Protocol):
    """One family of sessions: output, lab or agent; its length is how many there are."""

    def __len__(self) -> int: ...

    def create(self, body: dict[str, object], principal: Principal) -> Flow[dict[str, object]]:
        """A new session; the answer of the route. `Refused`."""
        ...

    def open(self, request: Request, principal: Principal, session_id: str) -> SocketHandler:
        """Somebody comes to a session. `Refused` 404, 410 or 403."""
        ...

    def end_bearer(self, bearer_hash: str, reason: str) -> None:
        """A token is accepted no more: close what it has opened."""
        ...

    def recheck(self, bearer_hash: str) -> None:
        """The grants behind a token were changed."""
        ...

    def stop(self) -> None:
        """The process ends."""
        ...


@frozen
class VoiceParts:
    """What the routes work with."""

    voice: Voice
    options: Options
    sessions: Mapping[str, VoiceSessions]  # output, lab, agent


def build_voice(engine: Engine, config: VoiceConfig) -> VoiceParts:
    """Make everything. Nothing is read or connected to yet."""
    voice = Voice(engine, config)
    voice.providers = Providers(engine, voice.keys)
    sessions: dict[str, VoiceSessions] = {
        "output": VoiceOutput(voice),
        "lab": RealtimeLab(voice),
        "agent": RealtimeAgent(voice),
    }
    return VoiceParts(voice, Options(voice), sessions)
