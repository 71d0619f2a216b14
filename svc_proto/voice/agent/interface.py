"""What a voice session is, as its client and the model are told (wire terminal-voice 6.5 `interface`).

The time is the host's in UTC: the core knows no other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from svc_proto.voice.settings import RealtimeSettings

if TYPE_CHECKING:
    from svc_proto.basics.moment import Moment

__all__ = ["interface_of"]


def interface_of(chosen: RealtimeSettings, word: str, chat_session_id: str | None, now: Moment) -> dict[str, object]:
    """The object; strings all, the chat session perhaps null."""
    local = datetime.fromtimestamp(int(now.wall), UTC)
    return {
        "client_surface": "voice",
        "engine": "realtime_agent",
        "engine_label": "Realtime agent",
        "stable_engine": f"{word}_voice_output",
        "stable_engine_label": "Voice output",
        "provider": chosen.provider,
        "model": chosen.model,
        "voice": chosen.voice,
        "profile": chosen.scope.profile or "default",
        "chat_session_id": chat_session_id,
        "config_scope": chosen.scope.config_scope,
        "path_summary": f"voice client > relay > {chosen.provider} and the agent on the host",
        "current_date": f"{local:%Y-%m-%d}",
        "current_time": f"{local:%H:%M}",
        "current_timezone": "UTC",
        "current_datetime": local.isoformat(),
    }
