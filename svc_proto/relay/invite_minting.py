"""QR payload of `POST /pairing/mint`: API and relay addresses, key, code, and usually a signature (wire core 2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve, field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import boolean, integer, integer_text, invalid, text
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta, parse_meta
from svc_proto.machines.pairing_payload import build_payload, relay_block
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.advertised_address import advertised_host, lan_address, relay_address, sign_invite
from svc_proto.service_clients.local_api import local_api_key

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import InviteJson

__all__ = ["MintRequest", "key_for", "mint_invite", "parse_mint"]


@fast_frozen(kw_only=True)
class MintRequest:
    """A parsed mint request with defaults.

    `key` is None if the request has no `api_key`, and "" if it has a null or empty one.
    """

    host: str
    port: int
    tls: bool
    key: str | None = field(repr=False)
    dashboard_url: str | None
    meta: PairingMeta


def parse_mint(body: Mapping[str, object], config: RelayConfig) -> MintRequest:
    """Parse a mint request. Raise `Refused` 400 that names the field."""
    given = {name: value for name, value in body.items() if value is not None}
    api = config.webapi
    host = text(given.get("host", api.host), "host").strip()
    if host in ("", "0.0.0.0"):
        raise invalid("host", "an address that a phone can reach")
    dashboard = text(given.get("dashboard_url", given.get("dashboardUrl", "")), "dashboard_url")
    key = text(given.get("api_key", ""), "api_key")  # null and "" both mean open access
    return MintRequest(
        host=host,
        port=_port(given.get("port", api.port)),
        tls=boolean(given.get("tls", api.tls), "tls"),
        key=key if "api_key" in body else None,
        dashboard_url=dashboard.strip().rstrip("/") or None,
        meta=parse_meta(body, with_endpoints=True),
    )


def key_for(
    engine: Engine, config: RelayConfig, mint_request: MintRequest, own: PairingApiKeys | None
) -> Flow[tuple[str, PairingMeta]]:
    """Return the API key for the payload, and the metadata of the pairing code that goes with it.

    The key is that of the request, else a new pairing key of `own`, else the host's API key. It is empty if the grants
    exclude chat, if the request has an empty one, or if the host has none.
    """
    meta, key = mint_request.meta, mint_request.key
    if not meta.grants_chat:
        return "", meta
    if key is None and own is not None:
        key, key_hash = own.new_key(engine.entropy)
        return key, evolve(meta, key_hash=key_hash)
    if key is None:
        key = yield from local_api_key(
            engine, config.config_path, config.home, config.api_key, named=config.key_in_environment
        )
    return key, evolve(meta, carries_key=bool(key))


def mint_invite(
    engine: Engine, config: RelayConfig, mint_request: MintRequest, code: str, key: str, expires_at: int
) -> Flow[InviteJson]:
    """Build, sign and encode the payload; return the response of the route.

    A payload that cannot be signed is returned unsigned, with a warning in the log.
    """
    lan = yield from lan_address(engine, config.host)
    host, port, tls, relay_url = _first_route(mint_request) or (
        advertised_host(mint_request.host, lan),
        mint_request.port,
        mint_request.tls,
        relay_address(config, lan),
    )
    payload = build_payload(
        host=host,
        port=port,
        key=key,
        tls=tls,
        relay=relay_block(relay_url, code, mint_request.meta),
        endpoints=mint_request.meta.endpoints,
        dashboard_url=mint_request.dashboard_url,
    )
    qr_text, url, unsigned = yield from sign_invite(engine, config, payload)
    if unsigned is not None:
        engine.log(Level.WARNING, "QR payload not signed", problem=unsigned.kind.value)
    answer: InviteJson = {
        "ok": True,
        "code": code,
        "qr_payload": qr_text,
        "pairing_url": url,
        "host": host,
        "port": port,
        "tls": tls,
        "relay_url": relay_url,
        "expires_at": expires_at,
    }
    if mint_request.dashboard_url is not None:
        answer["dashboard_url"] = mint_request.dashboard_url
    if mint_request.meta.endpoints is not None:
        answer["endpoints"] = mint_request.meta.endpoints
    return answer


def _first_route(mint_request: MintRequest) -> tuple[str, int, bool, str] | None:
    """Return API host, port and TLS, and relay URL, of the preferred route: that of role `lan`, else the first one.

    Return None if the request has no routes, or if that route is incomplete.
    """
    routes = [JsonObject.of(each) for each in mint_request.meta.endpoints or ()]
    best = next((route for route in routes if route.text("role").lower() == "lan"), routes[0] if routes else None)
    if best is None:
        return None
    api = best.get_object("api")
    host, port, url = api.text("host"), api.integer("port", 1, 65_535), best.get_object("relay").text("url")
    return (host, port, api.get("tls") is True, url) if host and port is not None and url else None


def _port(value: object) -> int:
    return integer(integer_text(value), "port", 1, 65_535)
