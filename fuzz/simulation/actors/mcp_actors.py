"""MCP actors of the simulation, except the pingers (`mcp_pingers.py`)."""

from __future__ import annotations

from fuzz.simulation.actors.actor_context import ActorContext, StepHandler
from fuzz.simulation.actors.chat_clients import ChatClients
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.actors.mcp_chat_clients import McpChatClients
from fuzz.simulation.actors.mcp_drivers import McpDrivers
from fuzz.simulation.actors.mcp_tool_users import McpToolUsers
from fuzz.simulation.actors.oauth_clients import OAuthClients
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.steps import Step


class McpActors:
    """OAuth clients, drivers, chat clients and tool users, with their steps."""

    def __init__(
        self,
        crowd: ActorContext,
        control: DeviceControlActors,
        owners: SessionOwners,
        chats: ChatClients,
        post_note: StepHandler,
    ) -> None:
        self._apps = OAuthClients(crowd, owners)
        self._drivers = McpDrivers(crowd, control, owners, self._apps, post_note)
        self._chat_clients = McpChatClients(chats)
        self._tool_users = McpToolUsers(chats)
        self.handlers: dict[type[Step], StepHandler] = {
            **self._apps.handlers,
            **self._drivers.handlers,
            **self._chat_clients.handlers,
            **self._tool_users.handlers,
        }

    @property
    def talked(self) -> bool:
        """Report whether any MCP client was ever active, so that abandoned sessions may exist."""
        return bool(self._apps.apps or self._drivers.talks or self._chat_clients.client.talks)

    def close(self) -> None:
        """Remove the configured MCP servers."""
        self._tool_users.shed.close()
