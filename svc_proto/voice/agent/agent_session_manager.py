"""Session manager of realtime agents (wire terminal-voice 6.2, 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from svc_proto.basics.validate import array, optional, single_line
from svc_proto.engine.flow import Flow
from svc_proto.voice.agent.agent_mode import AgentSetup, RenderedMode
from svc_proto.voice.agent.api_run import fetch_history
from svc_proto.voice.agent.api_runs import api_target, may_enter_chats
from svc_proto.voice.agent.instructions import ContextMessage, context_of
from svc_proto.voice.agent.native_mode import NativeMode
from svc_proto.voice.provider_registry import PROVIDERS
from svc_proto.voice.realtime.function_calls import tool_surface
from svc_proto.voice.session_manager import VoiceSessionManager
from svc_proto.voice.settings_store import REALTIME_SECTION

if TYPE_CHECKING:
    from svc_proto.schema.voice_types import AgentSessionJson
    from svc_proto.voice.principal import Principal

__all__ = ["AgentSessionManager"]

MAX_ID = 256  # characters of a chat session's id, wire api 2.1


class AgentSessionManager(VoiceSessionManager):
    """Session manager behind the routes of `/voice/realtime-agent`."""

    what, place, files, folder = "the realtime agent", "realtime-agent", "realtime-agent", "agent_runs"
    section = REALTIME_SECTION
    providers = tuple(name for name, info in PROVIDERS.items() if info.native or info.rendered)
    unsupported_text = "the realtime agent cannot use the voice provider {}"

    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[AgentSessionJson]:
        """Create a session and return the response of `POST /voice/realtime-agent/session`.

        Raise `Refused` for an invalid body, or if there may be no session now.
        For a principal that may not enter chats, the body's chat session is ignored.
        """
        chosen = yield from self.chosen(body)
        chat_session_id = (
            optional(body, "chat_session_id", lambda value, name: single_line(value, name, MAX_ID)) or None
        )
        if not may_enter_chats(principal):
            chat_session_id = None
        context = yield from self._context(body, chat_session_id, principal)
        final = body.get("final_answer_only") is True
        setup = AgentSetup(chat_session_id=chat_session_id, context=context, final_answer_only=final)
        mode = NativeMode if PROVIDERS[chosen.provider].native else RenderedMode
        about = {"chat_session_id": chat_session_id, "context_message_count": len(context)}
        answer = self.admit(principal, chosen, partial(mode, setup=setup), about)
        return {
            **answer,
            "chat_session_id": chat_session_id,
            "context_message_count": len(context),
            "experimental": True,
            "tool_surface": tool_surface((principal.brand or self.voice.config.brand).name),
        }

    def _context(
        self, body: Mapping[str, object], chat_session_id: str | None, principal: Principal
    ) -> Flow[tuple[ContextMessage, ...]]:
        given = optional(body, "context_messages", array)
        if given or chat_session_id is None:
            return context_of(given or [])
        target = yield from api_target(self.voice, principal)
        return context_of((yield from fetch_history(self.voice.engine, target, chat_session_id)))
