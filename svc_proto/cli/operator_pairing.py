"""Pairing by the operator: a code at the relay, the routes to this host, the signed QR payload (spec "Pairing flow").

If the relay cannot be reached, the QR leads to the API server alone, and a note reports that. If that server cannot be
reached either, there is no QR.
"""

from attrs import evolve, field, frozen

from svc_proto.basics.entropy import new_code
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.one_shot_service import announce_progress
from svc_proto.cli.operator_requests import PROBE_TIMEOUT, local_relay, register
from svc_proto.cli.pairing_candidates import ApiCandidate, CandidateMode, HostCandidate, candidate_member
from svc_proto.cli.pairing_routes import NO_ADDRESS, LeftOut, RouteRequest, find_routes
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import fetch
from svc_proto.facts import Failure
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from svc_proto.machines.pairing_payload import build_payload, relay_block
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.service_clients.advertised_address import sign_invite
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.service_clients.dashboard_address import name_dashboard
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.local_api import LocalApi, find_local_api
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["NewInvite", "PairingRequest", "create_invite"]

KEY_ELSEWHERE = (
    "the API server on this host asks for a key that stands in no file of its home: "
    "set API_SERVER_KEY for this command, as it was set for the server"
)
LOCAL_SECRET_NEEDED = (
    "the relay now has a public route, so programs on this host must send its local secret, as svc, the agent and the "
    "dashboard do; svc relay public-route off ends that"
)
NOTHING_PRESET = PairingMeta()


@frozen(kw_only=True)
class PairingRequest:
    """Validated input of `create_invite`: configuration, operator's options, and whether the API needs a key."""

    config: RelayConfig
    meta: PairingMeta = NOTHING_PRESET
    mode: CandidateMode = CandidateMode.AUTO
    public_url: str | None = None
    prefer: str | None = None
    host: str | None = None
    port: int | None = None
    dashboard_url: str | None = None
    with_relay: bool = True
    keyed: bool = False  # the API that runs on this host is known to require a key


@frozen(kw_only=True)
class NewInvite:
    """A new invite. `code` and `relay_url` are None when it is for the API server alone."""

    api: ApiCandidate
    key: str = field(repr=False)
    own_key: bool  # of this pairing, else the API's main key
    code: str | None = field(repr=False)
    expires_at: int | None  # epoch seconds, of the code
    relay_url: str | None
    meta: PairingMeta
    max_ttl: float | None  # s: the operator's maximum
    routes: tuple[HostCandidate, ...]
    qr_payload: str = field(repr=False)
    pairing_url: str = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()  # addresses of this host that are in no route
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # problems for standard error


def create_invite(engine: Engine, order: PairingRequest) -> Flow[NewInvite]:
    """Make an invite, after registering its code at the relay if that can be reached.

    Without the relay, and if the request is without it, the invite is for the API server alone. Raises `CliError`, also
    if a requested relay and the API server cannot be reached, and `ServiceCallError` if the relay's health check
    answers with an error.
    """
    config, notes, warnings = order.config, list[str](), list[str]()
    if order.mode is CandidateMode.PUBLIC and not (order.public_url or config.public_url):
        raise CliError("--mode public needs --public-url https://… or SVC_PUBLIC_URL", code=USAGE_ERROR)
    relay = local_relay(config)
    server = yield from find_local_api(engine, config)
    key = server.key if order.meta.grants_chat else ""
    api = ApiCandidate(server.host, order.port or server.port, server.tls)
    announce_progress(engine, "looking for ways to this host")
    found = yield from find_routes(
        engine,
        config,
        RouteRequest(mode=order.mode, api=api, public_url=order.public_url, prefer=order.prefer, host=order.host),
    )
    if found.mesh_is_missing:
        raise CliError("--mode mesh finds no mesh VPN: start tailscale on this host, or use --mode lan")
    routes = found.routes
    announce_progress(engine, f"asking the relay at {relay.url}")
    code = own = None
    if order.with_relay:
        try:
            yield from relay.health(engine, within=PROBE_TIMEOUT)
        except ServiceCallError as error:
            if error.failure is None:
                raise
            if not (yield from _reaches_api(engine, config, server)):
                raise CliError(f"nothing runs on {config.home}: neither relay nor API server answers: svc up") from None
            why = f"cannot be reached ({failure_reason(error.failure)})"
            notes.append(f"the relay at {relay.url} {why}, so the QR is for the API server only; {relay.remedy}")
        else:
            code = new_code(engine.entropy)
            # A relay with a public route requires the local secret of programs on this host from then on.
            outside = next((route for route in routes if route.role == "public"), None)
            meta = evolve(order.meta, carries_key=bool(key), own_key=order.meta.grants_chat)
            meta = meta if outside is None else evolve(meta, endpoints=[candidate_member(outside, 0)])
            own = yield from register(engine, relay, code, meta)
            key = own or key
            if outside is not None and _requires_secret_from_now(config):
                notes.append(LOCAL_SECRET_NEEDED)
    if order.keyed and order.meta.grants_chat and not key:
        raise CliError(KEY_ELSEWHERE)
    expires_at = None if code is None else int(engine.now.wall + CODE_LIFETIME)
    notes += found.notes if code is not None else [note for note in found.notes if note == NO_ADDRESS]
    if found.warning is not None:
        warnings.append(found.warning)
    # clients without candidates use the local network; without a relay there are no candidates
    first = routes[0] if code is None else next((route for route in routes if route.role == "lan"), routes[0])
    top, relay_url = first.api, first.relay_url
    payload = build_payload(
        host=top.host,
        port=top.port,
        key=key,
        tls=top.tls,
        relay=None if code is None else relay_block(relay_url, code, order.meta),
        endpoints=None if code is None else [candidate_member(route, place) for place, route in enumerate(routes)],
        dashboard_url=order.dashboard_url,
    )
    payload = name_dashboard(payload, config.dashboard if order.meta.grants_chat else None)
    text, url, unsigned = yield from sign_invite(engine, config, payload)
    if unsigned is not None:
        warnings.append(f"the QR is not signed: the signing key cannot be used ({failure_reason(unsigned)})")
    return NewInvite(
        api=top,
        key=key,
        own_key=own is not None,
        code=code,
        expires_at=expires_at,
        relay_url=None if code is None else relay_url,
        meta=order.meta,
        max_ttl=config.max_session_ttl,
        routes=routes,
        left_out=found.left_out,
        qr_payload=text,
        pairing_url=url,
        notes=tuple(notes),
        warnings=tuple(warnings),
    )


def _reaches_api(engine: Engine, config: RelayConfig, server: LocalApi) -> Flow[bool]:
    """Report whether the API server of this host answers, with any status."""
    where = bracket_ipv6(WILDCARD_ADDRESSES.get(server.host, server.host))
    url = config.webapi_inside or f"{'https' if server.tls else 'http'}://{where}:{server.port}"
    return not isinstance((yield from fetch(engine, "GET", f"{url}/health", within=PROBE_TIMEOUT)), Failure)


def _requires_secret_from_now(config: RelayConfig) -> bool:
    """Report whether a first public route changes what the relay requires of programs on this host."""
    policies = [config.local_trust_policy(public_route=public) for public in (False, True)]
    return policies == [LocalTrustPolicy.USER, LocalTrustPolicy.SECRET]
