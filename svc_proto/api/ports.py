"""Ports of the API server: small protocols that `Api` implements.

A module names the ports that it uses, and combines them with its other needs into a port of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from svc_proto.commands import StoreRequest
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow

if TYPE_CHECKING:
    from svc_proto.agent.agent_factory import AgentParts
    from svc_proto.agent.memory import MemoryChangeResult
    from svc_proto.api.agent_settings import AgentSettings
    from svc_proto.api.config import ApiConfig
    from svc_proto.api.model_config_file import ModelConfigFile
    from svc_proto.api.model_list import ModelList
    from svc_proto.basics.brand import Brand
    from svc_proto.engine.message import Request
    from svc_proto.service_clients.authority import Authority

__all__ = ["ClientPort", "ManagementPort", "SettingsPort", "StorePort"]

T = TypeVar("T")


class StorePort(Protocol):
    """Members of the API server for its store: engine, configuration and store requests."""

    engine: Engine
    config: ApiConfig

    def run_store_request(self, request: StoreRequest[T]) -> Flow[T]:
        """Run a store request. Raises `Refused` 503 if it fails or times out."""


class SettingsPort(Protocol):
    """Members of the API server for the agent's settings: engine, settings, models and parts of the agent."""

    engine: Engine
    parts: AgentParts
    model_list: ModelList

    def settings(self) -> Flow[AgentSettings]:
        """Return the current settings of the agent."""


class ClientPort(Protocol):
    """Members of the API server that describe the client that sent a request."""

    def authority(self, request: Request) -> Authority:
        """Return the authority of the client."""

    def brand_of(self, request: Request) -> Brand:
        """Return the brand of the client."""

    def record_audit(self, event: str, request: Request, /, **about: object) -> None:
        """Record an audit event of the client."""


class ManagementPort(SettingsPort, ClientPort, Protocol):
    """Members of the API server that change settings and notes of the agent, and record the changes."""

    config: ApiConfig
    config_file: ModelConfigFile

    def change_settings(self, request: Request, change: dict[str, str]) -> Flow[None]:
        """Change the configuration file for a client, and record it."""

    def memory_changed(self, request: Request, change: MemoryChangeResult) -> None:
        """Record a client's change of the notes, if there was one."""
