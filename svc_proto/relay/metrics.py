"""Metrics that the relay adds to those of every server."""

from typing import Protocol

from svc_proto.basics.metrics import MetricFamily, counter, gauge
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.pairing_codes import PairingCodes
from svc_proto.relay.ports import PhonesPort
from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["relay_metrics"]


class MetricsPort(PhonesPort, Protocol):
    """Members of the relay that its metrics count."""

    clients: dict[int, ClientConnection]
    sessions: PairedSessionRegistry
    codes: PairingCodes

    def voice_counts(self) -> dict[str, int]:
        """Return the number of voice sessions of each mode, by `voice:<mode>`; empty while voice is not loaded."""


def relay_metrics(relay: MetricsPort) -> list[MetricFamily]:
    """Remove lapsed phones; return metrics of phones, sockets, sessions, commands, refused codes and the cluster."""
    bridge, clients = relay.bridge, relay.clients.values()
    relay.drop_lapsed_phones()
    sockets = {
        "client": len(relay.clients),
        "terminal": sum(len(client.terminals.held) for client in clients if client.terminals is not None),
        "tui": sum(client.tui is not None for client in clients),
        **relay.voice_counts(),
    }
    here = sum(phone.socket in relay.clients for phone in relay.phones.connected())
    settled = {trigger.value: count for trigger, count in bridge.settled.items()}
    return [
        gauge("svc_phones", "Phones that can be driven now, by a socket here.", here),
        gauge("svc_sessions", "Paired devices.", relay.sessions.total),
        gauge("svc_sockets", "Signed-in sockets, and what is open on a channel of theirs.", sockets, "channel"),
        counter("svc_bridge_commands", "Commands to phones that are settled.", settled, "outcome"),
        bridge.took.family("svc_bridge_command_duration_seconds", "From a command to its phone's answer."),
        gauge("svc_bridge_commands_waiting", "Commands whose phone has not answered yet.", bridge.pending_count),
        counter("svc_pairing_codes_refused", "Wrong, used or old pairing codes that were shown.", relay.codes.refused),
        *relay.coordinator.metrics(),
    ]
