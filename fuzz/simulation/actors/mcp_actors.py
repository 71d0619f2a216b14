"""Everybody of a world who speaks MCP, but for those who have done so from the beginning (`agents.py`)."""

from __future__ import annotations

from fuzz.simulation.actors.actor_context import Crowd, Deeds
from fuzz.simulation.actors.chat_clients import Chats
from fuzz.simulation.actors.device_control import Control
from fuzz.simulation.actors.mcp_chat_clients import Inquirers
from fuzz.simulation.actors.mcp_drivers import Drivers
from fuzz.simulation.actors.mcp_tool_users import Toolers
from fuzz.simulation.actors.oauth_clients import Guests
from fuzz.simulation.actors.session_owners import Owners
from fuzz.steps import Step


class Mcp:
    """All of them."""

    def __init__(self, crowd: Crowd, control: Control, owners: Owners, chats: Chats, post_note: Deeds) -> None:
        self._guests = Guests(crowd, owners)
        self._drivers = Drivers(crowd, control, owners, self._guests, post_note)
        self._inquirers = Inquirers(chats)
        self._toolers = Toolers(chats)
        self.deeds: dict[type[Step], Deeds] = {
            **self._guests.deeds,
            **self._drivers.deeds,
            **self._inquirers.deeds,
            **self._toolers.deeds,
        }

    @property
    def talked(self) -> bool:
        """Whether something of it may be left, for a while."""
        return bool(self._guests.guests or self._drivers.talks or self._inquirers.client.talks)

    def close(self) -> None:
        """No servers are configured any more."""
        self._toolers.shed.close()
