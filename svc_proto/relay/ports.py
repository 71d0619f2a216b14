"""Ports of the relay: small protocols that `Relay` implements.

A module names the ports that it uses, and combines them with its other needs into a port of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.engine.request_origin import TrustedProxies
    from svc_proto.machines.bridge_commands import BridgeCommands
    from svc_proto.machines.inbox import NotificationBuffer
    from svc_proto.machines.paired_session import PairedSession
    from svc_proto.machines.paired_session_registry import PairedSessionRegistry
    from svc_proto.machines.pairing_api_keys import PairingApiKeys
    from svc_proto.machines.phone_registry import PhoneRegistry
    from svc_proto.relay.audit import RelayAudit
    from svc_proto.relay.change_notifier import ChangeNotifier
    from svc_proto.relay.cluster.local_coordinator import LocalCoordinator
    from svc_proto.relay.local_access import LocalAuthorizer
    from svc_proto.relay_config import RelayConfig

__all__ = ["AccessPort", "PairedSessionsPort", "PhonesPort", "RelayPort"]


class RelayPort(Protocol):
    """Members of the relay that most modules use: engine, configuration and coordination."""

    engine: Engine
    config: RelayConfig

    @property
    def coordinator(self) -> LocalCoordinator:
        """Coordination with the other nodes."""


class PhonesPort(RelayPort, Protocol):
    """Members of the relay for connected phones, their commands and notifications."""

    phones: PhoneRegistry
    bridge: BridgeCommands
    notifications: NotificationBuffer
    changes: ChangeNotifier

    def drop_lapsed_phones(self) -> None:
        """Unregister phones whose own bridge grant has expired."""


class PairedSessionsPort(RelayPort, Protocol):
    """Members of the relay for paired sessions, and for the audit of their changes."""

    sessions: PairedSessionRegistry
    audit: RelayAudit

    def save(self, session: PairedSession, *, again: bool = False) -> Flow[Failure | None]:
        """Store a session, if there is a store; return a `Failure` if that did not succeed, else None.

        With `again`, a session that is missing in the store was revoked at another node, and ends here, too.
        """

    def revoke(self, session: PairedSession, reason: str) -> Flow[str | None]:
        """End a session and all that depends on it; return a warning if the store could not delete it, else None."""

    def grants_changed(self, session: PairedSession) -> None:
        """Close the MCP sessions and voice sockets, and unregister the phones, that lack a grant of the session now."""

    def name_changed(self, session: PairedSession) -> None:
        """Register the phones of a session under its new name."""


class AccessPort(RelayPort, Protocol):
    """Members of the relay that decide which client may call a route: sessions, keys and addresses."""

    sessions: PairedSessionRegistry
    keys: PairingApiKeys | None
    proxies: TrustedProxies
    local_authorizer: LocalAuthorizer
