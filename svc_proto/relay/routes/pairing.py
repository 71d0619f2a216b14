"""Routes that create, register, approve and mint pairing codes, for programs on the relay's own host (wire core 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import evolve

from svc_proto.basics.entropy import new_code
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta, parse_registration
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.invite_minting import MintRequest, key_for, mint_invite, parse_mint
from svc_proto.relay.ports import AccessPort
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.advertised_address import lan_address
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES
from svc_proto.service_clients.dashboard_address import dashboard_at, with_dashboard_member
from svc_proto.service_clients.pairing_defaults import add_default_terms, read_pairing_defaults

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import CodeJson, InviteJson, NewCodeJson, RegisteredJson

__all__ = ["routes"]


class PairingPort(AccessPort, Protocol):
    """Members of the relay that the routes of pairing use."""

    limiter: AuthRateLimiter


def routes(relay: PairingPort) -> list[Route]:
    """Return the routes that create, register, approve and mint pairing codes."""
    view = _PairingRoutes(relay)
    return [
        Route(method="POST", pattern="/pairing", access=RelayAccess.LOOPBACK, handler=view.create_code),
        Route(method="POST", pattern="/pairing/register", access=RelayAccess.LOOPBACK, handler=view.register),
        Route(method="POST", pattern="/pairing/approve", access=RelayAccess.LOOPBACK, handler=view.approve),
        Route(method="POST", pattern="/pairing/mint", access=RelayAccess.LOOPBACK, handler=view.mint),
    ]


class _PairingRoutes:
    def __init__(self, relay: PairingPort) -> None:
        self._relay = relay

    def create_code(self, request: Request) -> Flow[JsonResponse[NewCodeJson]]:
        """Create a code for a program of this host, such as its agent. Raise `Refused` 503 in a cluster without Redis.

        Unlike `register`, do not unblock addresses in the authentication rate limiter.
        """
        relay = self._relay
        code = new_code(relay.engine.entropy)
        yield from relay.coordinator.register_code(code, PairingMeta())
        relay.engine.log(Level.INFO, "pairing code made")
        return json_response(200, {"ok": True, "code": code, "expires_at": self._expires_at()})

    def register(self, request: Request) -> Flow[JsonResponse[RegisteredJson]]:
        code, meta = parse_registration(request.json(), with_endpoints=True)
        relay = self._relay
        yield from relay.local_authorizer.add_public_endpoints(relay.engine, meta.endpoints)
        body: RegisteredJson = {"ok": True, "code": code}
        if meta.own_key and meta.grants_chat and relay.keys is not None:
            body["api_key"], key_hash = relay.keys.new_key(relay.engine.entropy)
            meta = evolve(meta, key_hash=key_hash, carries_key=False)
        yield from self._register(code, meta)
        if meta.endpoints is not None:
            body["endpoints"] = meta.endpoints
        return json_response(200, body)

    def approve(self, request: Request) -> Flow[JsonResponse[CodeJson]]:
        code, meta = parse_registration(request.json(), with_endpoints=False)
        yield from self._register(code, meta)
        return json_response(200, {"ok": True, "code": code})

    def mint(self, request: Request) -> Flow[JsonResponse[InviteJson]]:
        wanted = parse_mint(request.json_object() if request.body else {}, self._relay.config)
        defaults = yield from read_pairing_defaults(self._relay.engine, self._relay.config)
        wanted = evolve(wanted, meta=add_default_terms(wanted.meta, defaults))
        wanted = yield from _with_dashboard(self._relay.engine, self._relay.config, wanted)
        code = new_code(self._relay.engine.entropy)
        key, meta = yield from key_for(self._relay.engine, self._relay.config, wanted, self._relay.keys)
        invite = yield from mint_invite(self._relay.engine, self._relay.config, wanted, code, key, self._expires_at())
        yield from self._relay.local_authorizer.add_public_endpoints(self._relay.engine, wanted.meta.endpoints)
        yield from self._register(code, meta)
        return json_response(200, invite)

    def _register(self, code: str, meta: PairingMeta) -> Flow[None]:
        relay = self._relay
        yield from relay.coordinator.register_code(code, meta)
        relay.limiter.clear()  # specification: a successful registration clears all blocks
        relay.engine.log(Level.INFO, "pairing code registered")

    def _expires_at(self) -> int:
        return int(self._relay.engine.now.wall + CODE_LIFETIME)


def _with_dashboard(engine: Engine, config: RelayConfig, mint_request: MintRequest) -> Flow[MintRequest]:
    """Return the request with the URL of the dashboard beside the relay; `with_dashboard_member` adds it to endpoints.

    The request stays unchanged if no dashboard listens at a network address of this host, and if the request names a
    dashboard or excludes chat.
    """
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
