"""Candidates of an invite, built by the dashboard if the page requests a mode (wire core 3.3 and 9)."""

from attrs import frozen

from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import Refused
from svc_proto.cli.errors import CliError
from svc_proto.cli.pairing_candidates import ApiCandidate, CandidateMode, candidate_member
from svc_proto.cli.pairing_routes import RouteRequest, find_routes
from svc_proto.dashboard.validation import pop_text, unprocessable
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject

__all__ = ["InviteRequest", "find_candidates", "pop_invite_request"]

MODES = {
    **{mode.value: mode for mode in CandidateMode},
    **{brand.mesh_role: CandidateMode.MESH for brand in BRANDS.values()},
}


@frozen(kw_only=True)
class InviteRequest:
    """Requested candidates of an invite; None: not given.
    `host` is the address of both servers in the local network, `port` and `tls` are those of the API server.
    """

    mode: CandidateMode
    public_url: str | None
    prefer: str | None
    host: str | None
    port: int | None
    tls: bool | None


def pop_invite_request(body: JsonObject) -> InviteRequest | None:
    """Return the request for candidates in a body; None without a `mode`. Raises `Refused` 400 or 422.

    It removes `mode`, `public_url` and `prefer` from the body.
    """
    word, public_url, first = pop_text(body, "mode"), pop_text(body, "public_url"), pop_text(body, "prefer")
    if word is None:
        return None
    mode = MODES.get(word.lower())
    if mode is None:
        raise Refused(400, "bad_mode", "mode must be auto, lan, mesh or public")
    host, port, tls = body.string("host"), body.integer("port", 1, 65_535), body.boolean("tls")
    if host != body.get("host"):
        raise unprocessable("string_type", "must be text", "body", "host")
    if port != body.get("port"):
        raise unprocessable("int_type", "must be a port", "body", "port")
    if tls != body.get("tls"):
        raise unprocessable("bool_type", "must be true or false", "body", "tls")
    return InviteRequest(mode=mode, public_url=public_url, prefer=first, host=host, port=port, tls=tls)


def find_candidates(engine: Engine, config: RelayConfig, wish: InviteRequest) -> Flow[list[dict[str, object]]]:
    """Return those candidates of the mode that exist: local network, mesh, public, the preferred role first.
    Raises `Refused` 400 for a public URL that cannot be used or is missing, or if a requested mesh is missing.
    """
    if wish.mode is CandidateMode.PUBLIC and wish.public_url is None and config.public_url is None:
        raise Refused(400, "no_public_url", "mode public needs public_url, such as https://relay.example")
    configured = config.webapi
    api = ApiCandidate(
        configured.host,
        configured.port if wish.port is None else wish.port,
        configured.tls if wish.tls is None else wish.tls,
    )
    request = RouteRequest(mode=wish.mode, api=api, public_url=wish.public_url, prefer=wish.prefer, host=wish.host)
    try:
        found = yield from find_routes(engine, config, request)
    except CliError:
        raise Refused(400, "bad_public_url", "public_url must be an http:// or https:// URL") from None
    if found.mesh_is_missing:
        raise Refused(400, "no_mesh", "no mesh VPN was found on this host")
    return [candidate_member(route, place) for place, route in enumerate(found.routes)]
