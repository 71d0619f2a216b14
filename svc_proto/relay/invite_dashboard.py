"""Address of the dashboard in an invite: only on routes by which a phone reaches it.

A phone judges a route that names a dashboard by that dashboard alone, so a wrong address would make the route useless.
"""

from __future__ import annotations

from attrs import evolve

from svc_proto.basics.brand import BRANDS
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay.invite_minting import MintRequest
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.advertised_address import LOCAL_HOSTS, WILDCARD_ADDRESSES, bracket_ipv6, lan_address

__all__ = ["with_dashboard"]

ROLES = ("lan", *(brand.mesh_role for brand in BRANDS.values()))  # routes to an address of this host


def with_dashboard(engine: Engine, config: RelayConfig, mint_request: MintRequest) -> Flow[MintRequest]:
    """Add the dashboard beside the relay to a request, unless it names one or withholds the chat."""
    if config.dashboard is None or mint_request.dashboard_url is not None or not mint_request.meta.grants_chat:
        return mint_request
    host, port = config.dashboard
    everywhere = host in WILDCARD_ADDRESSES
    if everywhere:
        host = yield from lan_address(engine)
        if host in LOCAL_HOSTS:
            return mint_request  # this host has no network
    meta, endpoints = mint_request.meta, mint_request.meta.endpoints
    if endpoints is not None:
        meta = evolve(meta, endpoints=[_with_member(each, None if everywhere else host, port) for each in endpoints])
    return evolve(mint_request, dashboard_url=f"http://{bracket_ipv6(host)}:{port}", meta=meta)


def _with_member(endpoint: object, only: str | None, port: int) -> object:
    """Return a route with its dashboard; `only`: the one address at which the dashboard listens."""
    route = JsonObject.of(endpoint)
    host = route.get_object("api").text("host")
    if route.text("role").lower() not in ROLES or not host or only not in (None, host) or "dashboard" in route:
        return endpoint
    return {**route, "dashboard": {"url": f"http://{bracket_ipv6(host)}:{port}"}}
