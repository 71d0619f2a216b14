"""The dashboard beside the relay in a request for an invite."""

from __future__ import annotations

from attrs import evolve

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay.invite_minting import MintRequest
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.advertised_address import WILDCARD_ADDRESSES, lan_address
from svc_proto.service_clients.dashboard_address import dashboard_at, with_dashboard_member

__all__ = ["with_dashboard"]


def with_dashboard(engine: Engine, config: RelayConfig, mint_request: MintRequest) -> Flow[MintRequest]:
    """Add the dashboard beside the relay to a request, unless it names one or withholds the chat."""
    dashboard, meta = config.dashboard, mint_request.meta
    if dashboard is None or mint_request.dashboard_url is not None or not meta.grants_chat:
        return mint_request
    host = dashboard[0]
    if host in WILDCARD_ADDRESSES:
        host = yield from lan_address(engine)
    url = dashboard_at(dashboard, host)
    if url is None:
        return mint_request  # this host has no network
    if meta.endpoints is not None:
        meta = evolve(meta, endpoints=[with_dashboard_member(each, dashboard) for each in meta.endpoints])
    return evolve(mint_request, dashboard_url=url, meta=meta)
