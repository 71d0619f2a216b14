"""Access to the voice routes: a paired session with the grant, or the API server's bearer over a safe connection.

The order of the checks, and the answers (text/plain), are those of wire terminal-voice 7:

| step | condition                                          | answer                                     |
|------|----------------------------------------------------|--------------------------------------------|
| 1    | no header, or another scheme than `Bearer `        | 401                                        |
| 2    | an empty token, or one that is too long            | 401                                        |
| 3    | the token of a device's live session               | its principal; 403 without the live grant  |
| 4    | any other token over an unsafe connection          | 403; the API server is not queried         |
| 5    | no 2xx answer of the API server, present or cached | 401                                        |
| 6    | server without a key, caller without local access  | 401                                        |

A pairing key of the API server in this process is accepted without steps 5 and 6.

A connection is safe if its caller is on this host, or if it uses HTTPS, as far as the relay or a trusted proxy. The
setting of `/relay/security` makes any connection count as safe.
"""

from functools import partial
from math import inf
from typing import Protocol

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import bearer_header as bearer_fields
from svc_proto.engine.http_client import fetch
from svc_proto.engine.message import Request
from svc_proto.facts import Failure
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingCodes
from svc_proto.relay.access import GRANTS, RelayAccess, withheld_from
from svc_proto.relay.ports import AccessPort
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.voice.principal import Principal
from svc_proto.voice.service import VoiceServices
from svc_proto.voice.settings_store import OUTPUT_SECTION, REALTIME_SECTION
from svc_proto.wire.events import Headers

__all__ = ["CACHE_SECONDS", "MAX_CACHED", "MAX_PROBES", "SOCKETS", "ApiBearerVerifier", "VoiceAuthorizer"]

SCHEME = b"Bearer "  # case-sensitive
MAX_TOKEN = 4_096  # characters of a bearer; a longer one is refused with 401
PROBE_TIMEOUT = 5.0  # s, connection included
CACHE_SECONDS = 60.0  # s
MAX_CACHED = 1_000  # bearers; the oldest is dropped
MAX_PROBES = 64  # concurrent probes; a further one is refused with 503
UNKNOWN_DEVICE = "unknown"  # device id of sessions whose device sent none

SOCKETS = (RelayAccess.VOICE_OUTPUT_SOCKET, RelayAccess.VOICE_REALTIME_SOCKET)


class VoiceAccessPort(AccessPort, Protocol):
    """Members of the relay that decide on the access to voice."""

    codes: PairingCodes
    allow_insecure_api_bearer: bool


class VoiceAuthorizer:
    """Authorizer of the routes with a policy of `GRANTS`; the result is a `Principal`."""

    def __init__(self, relay: VoiceAccessPort, voice: VoiceServices) -> None:
        self._relay = relay
        self._voice = voice
        self._probe = ApiBearerVerifier(relay.engine, relay.config.api_url)

    def authorize(self, access: RelayAccess, request: Request) -> Principal | Flow[Principal]:
        """Return the principal of a request, or a flow that finds it.

        Both raise `Refused`: 401 or 403 by the table of this module, 404 for a socket of a feature that is turned off,
        503 at the limits, and 503 if the session store does not answer a node that has not loaded all sessions.
        """
        if access in SOCKETS:
            return self._admit_socket(access, request)
        return self._admit(GRANTS[access], request)

    def _admit_socket(self, access: RelayAccess, request: Request) -> Flow[Principal]:
        # Wire 4.7: a feature that is off is reported before authentication.
        voice = self._voice
        output = access is RelayAccess.VOICE_OUTPUT_SOCKET
        settings = yield from (voice.settings(OUTPUT_SECTION) if output else voice.settings(REALTIME_SECTION))
        if not settings.enabled:
            raise Refused(404, "disabled", "this voice feature is turned off")
        found = self._admit(GRANTS[access], request)
        return found if isinstance(found, Principal) else (yield from found)

    def _admit(self, grant: str, request: Request) -> Principal | Flow[Principal]:
        token, relay = _bearer(request.headers), self._relay
        seeking = None if relay.sessions.lookup(token, relay.engine.now) else relay.coordinator.lookup_session(token)
        return (
            self._authorize_known(grant, token, request)
            if seeking is None
            else self._authorize_after_lookup(seeking, grant, token, request)
        )

    def _authorize_after_lookup(
        self, seeking: Flow[object], grant: str, token: str, request: Request
    ) -> Flow[Principal]:
        """Look the token's session up in the store first, then authorize: the API server must not get its token."""
        yield from seeking
        found = self._authorize_known(grant, token, request)
        return found if isinstance(found, Principal) else (yield from found)

    def _authorize_known(self, grant: str, token: str, request: Request) -> Principal | Flow[Principal]:
        relay = self._relay
        now = relay.engine.now
        session = relay.sessions.lookup(token, now)
        if session is None:
            if not (relay.allow_insecure_api_bearer or relay.proxies.is_confidential(request)):
                raise Refused(
                    403,
                    "https_required",
                    "an API bearer needs HTTPS here; for a trusted network, RELAY_ALLOW_INSECURE_API_BEARER=1 or "
                    "`svc relay insecure-api-key on` allows plain HTTP",
                )
            return self._verify_bearer(token, request)
        if not session.holds(grant, now.wall):
            raise Refused(403, "grant_required", f"this session holds no live {grant} grant")
        device = None if session.device_id == UNKNOWN_DEVICE else session.device_id
        until = partial(session.grants_until, grant)
        request.credential_id = session.token_hash
        return Principal(
            kind="session",
            device_id=device,
            bearer_hash=session.token_hash,
            until=until,
            brand=session.brand,
            name=session.principal_name,
            withheld=lambda: withheld_from(session, relay.engine.now),
        )

    def _verify_bearer(self, token: str, request: Request) -> Flow[Principal]:
        probe, relay = self._probe, self._relay
        holder = None if relay.keys is None else relay.keys.accepts(token, relay.engine.now)
        if holder is not None:
            request.credential_id = holder
            session = relay.sessions.find_by_api_key(holder)
            return Principal(
                kind="api",
                bearer_hash=holder,
                bearer=token,
                until=partial(self._key_until, holder),
                brand=None if session is None else session.brand,
            )
        config, until = relay.config, None
        if relay.keys is not None:
            until = partial(self._main_until, relay.keys, relay.keys.replaced)
        named = config.key_in_environment
        key = yield from local_api_key(relay.engine, config.config_path, config.home, config.api_key, named=named)
        # A key other than this home's may have been replaced, so the API server is queried anew.
        if not (yield from probe.is_valid(token, afresh=key not in ("", token))):
            raise _unauthorized("the bearer is neither a live session token nor one that the API server takes")
        if not relay.local_authorizer.is_allowed(request) and not (yield from probe.requires_key()):
            raise _unauthorized("the API server has no key, so its bearer proves nothing here: set API_SERVER_KEY")
        return Principal(kind="api", bearer_hash=sha256_hex(token), bearer=token, until=until)

    def _main_until(self, keys: PairingApiKeys, replaced: int) -> float:
        """Return infinity if the API's main key was not replaced since `keys.replaced` was `replaced`, else 0."""
        return inf if keys.replaced == replaced else 0.0

    def _key_until(self, holder: str) -> float | None:
        """Return the expiry (wall time) of a pairing key: that of its session's chat grant.

        Without a session: None while the pairing code is valid, else 0.
        """
        relay = self._relay
        session = relay.sessions.find_by_api_key(holder)
        if session is not None:
            return session.grants_until("chat")
        return None if relay.codes.issues_key(holder, relay.engine.now) else 0.0


class ApiBearerVerifier:
    """Verifies bearers at one API server with `GET /v1/models`.

    A success is cached for a minute (wire terminal-voice 7), unless it is queried `afresh`. A redirect proves nothing
    about a bearer, so only 2xx counts. A server without a key accepts any bearer: `requires_key` detects that by a
    request without one.
    """

    def __init__(self, engine: Engine, api_url: str) -> None:
        self._engine = engine
        self._url = f"{api_url}/v1/models"
        self._known: ExpiringMap[str, bool] = ExpiringMap(MAX_CACHED)  # by the hash of the bearer
        self._keyed_until = 0.0  # monotonic s
        self._under_way = 0

    def is_valid(self, bearer: str, *, afresh: bool = False) -> Flow[bool]:
        """Report whether the API server answers a request with this bearer with 2xx; False without an answer.

        A cached success is returned without a request. `afresh`: bypass the cache, and do not store the result. Raise
        `Refused` 503 at the limit of concurrent requests.
        """
        digest, now = sha256_hex(bearer), self._engine.now.mono
        if not afresh and self._known.get(digest, now):
            return True
        fields = bearer_fields(bearer)
        if not fields or not (yield from self._request(fields)):
            return False
        if not afresh:
            now = self._engine.now.mono
            self._known.purge(now)
            self._known.put(digest, True, now + CACHE_SECONDS)
        return True

    def requires_key(self) -> Flow[bool]:
        """Report whether the API server gives no 2xx response to a request without a bearer, or no response at all.

        True is cached for `CACHE_SECONDS`. Raise `Refused` 503 at the limit of concurrent requests.
        """
        if self._engine.now.mono < self._keyed_until:
            return True
        if (yield from self._request(())):
            return False
        self._keyed_until = self._engine.now.mono + CACHE_SECONDS
        return True

    def _request(self, headers: tuple[tuple[bytes, bytes], ...]) -> Flow[bool]:
        if self._under_way >= MAX_PROBES:
            raise Refused(503, "busy", "too many bearers are being checked: try again in a few seconds")
        self._under_way += 1
        try:
            answer = yield from fetch(self._engine, "GET", self._url, headers=headers, within=PROBE_TIMEOUT)
        finally:
            self._under_way -= 1
        return not isinstance(answer, Failure) and 200 <= answer.status < 300


def _bearer(headers: Headers) -> str:
    header = headers.get(b"authorization") or b""
    if not header.startswith(SCHEME):
        raise _unauthorized("voice routes need Authorization: Bearer <session token or API key>")
    token = header.removeprefix(SCHEME).strip().decode("latin-1")
    if not token or len(token) > MAX_TOKEN:
        raise _unauthorized("the bearer token is empty or too long")
    return token


def _unauthorized(message: str) -> Refused:
    return Refused(401, "unauthorized", message)
