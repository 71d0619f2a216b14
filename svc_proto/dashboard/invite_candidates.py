"""Candidates of an invite, built by the dashboard if the page requests a mode (wire core 3.3 and 9)."""

from __future__ import annotations

from attrs import frozen

from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import Refused
from svc_proto.cli.errors import CliError
from svc_proto.cli.mesh_vpn import find_mesh
from svc_proto.cli.pairing_candidates import (
    ApiCandidate,
    CandidateMode,
    HostCandidate,
    candidate_member,
    lan_candidate,
    mesh_candidate,
    prefer_role,
    public_candidate,
)
from svc_proto.dashboard.validation import pop_text, unprocessable
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.advertised_address import advertised_host, lan_address, relay_address

__all__ = ["InviteRequest", "find_candidates", "pop_invite_request"]

MODES = {
    **{mode.value: mode for mode in CandidateMode},
    **{brand.mesh_role: CandidateMode.MESH for brand in BRANDS.values()},
}


@frozen(kw_only=True)
class InviteRequest:
    """Requested candidates of an invite. `host`, `port` and `tls` are those of the API server; None: as configured."""

    mode: CandidateMode
    public_url: str | None
    prefer: str | None
    host: str | None
    port: int | None
    tls: bool | None


def pop_invite_request(body: JsonObject) -> InviteRequest | None:
    """Remove `mode`, `public_url` and `prefer` from a body; None if it names no mode. Raises `Refused` 400 or 422."""
    word, public_url, first = pop_text(body, "mode"), pop_text(body, "public_url"), pop_text(body, "prefer")
    if word is None:
        return None
    mode = MODES.get(word.lower())
    if mode is None:
        raise Refused(400, "bad_mode", "mode must be auto, lan, mesh or public")
    if mode is CandidateMode.PUBLIC and public_url is None:
        raise Refused(400, "no_public_url", "mode public needs public_url, such as https://relay.example")
    host, port, tls = body.string("host"), body.integer("port", 1, 65_535), body.boolean("tls")
    if host != body.get("host"):
        raise unprocessable("string_type", "must be text", "body", "host")
    if port != body.get("port"):
        raise unprocessable("int_type", "must be a port", "body", "port")
    if tls != body.get("tls"):
        raise unprocessable("bool_type", "must be true or false", "body", "tls")
    return InviteRequest(mode=mode, public_url=public_url, prefer=first, host=host, port=port, tls=tls)


def find_candidates(engine: Engine, config: RelayConfig, wish: InviteRequest) -> Flow[list[dict[str, object]]]:
    """Return the candidates, best first. Raises `Refused` 400."""
    public = None
    if wish.public_url is not None:
        try:
            public = public_candidate(wish.public_url, config.port, config.root_path)
        except CliError:
            raise Refused(400, "bad_public_url", "public_url must be an http:// or https:// URL") from None
    mesh = None
    if wish.mode in (CandidateMode.AUTO, CandidateMode.MESH):
        mesh = yield from find_mesh(engine)
    if wish.mode is CandidateMode.MESH and mesh is None:
        raise Refused(400, "no_mesh", "no mesh VPN was found on this host")
    own = _own_route(config, wish, (yield from lan_address(engine)))
    routes: list[HostCandidate] = [own] if wish.mode in (CandidateMode.AUTO, CandidateMode.LAN) else []
    if mesh is not None:
        role = config.brand.mesh_role
        routes.append(mesh_candidate(mesh, role, own.api, relay_port=config.port, relay_tls=config.tls))
    if public is not None and wish.mode in (CandidateMode.AUTO, CandidateMode.PUBLIC):
        routes.append(public)
    ordered, _ = prefer_role(routes, wish.prefer)
    return [candidate_member(route, place) for place, route in enumerate(ordered)]


def _own_route(config: RelayConfig, wish: InviteRequest, address: str) -> HostCandidate:
    """Return the candidate in the local network."""
    configured = config.webapi
    api = ApiCandidate(
        advertised_host(configured.host if wish.host is None else wish.host, address),
        configured.port if wish.port is None else wish.port,
        configured.tls if wish.tls is None else wish.tls,
    )
    return lan_candidate(api, relay_address(config, address))
