"""Authorization of programs on the relay's own host, by their user or address, and optionally by the local secret.

The secret is required by setting; without a setting, if requests may come from outside through a proxy, which may make
a foreign request look like one of this host: see `RelayConfig.local_trust_policy`.
"""

from collections.abc import Sequence

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation, sleep
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import OTHER_USER_TEXT, is_local, is_of_other_user
from svc_proto.facts import Failure, FailureKind
from svc_proto.relay_config import PUBLIC_ROUTE, LocalTrustPolicy, RelayConfig
from svc_proto.service_clients.local_secret import SIZE, create_secret, has_secret, read_secret

__all__ = ["RETRY_INTERVAL", "LocalAuthorizer"]

RETRY_INTERVAL = 10.0  # s between attempts to use the state folder
LOCAL_ONLY_TEXT = "this route is for programs on the relay's own host"
WITH_SECRET = (
    f"{LOCAL_ONLY_TEXT} that show its local secret (RELAY_LOCAL_TRUST); a dashboard does once it has a password"
)


class LocalAuthorizer:
    """Authorizer of programs on this host.

    If the state folder cannot be read, the secret is required unless the setting names another policy. After a failure
    to read the folder, to store or read the secret, or to store a public route, that is tried again at intervals.
    """

    def __init__(self, config: RelayConfig) -> None:
        self._config = config
        self._secret = b""  # empty: not required
        self._is_shared = True  # programs can read the secret, or none is required
        self._is_route_known = True  # whether an invite had a public route was read from the state folder, or changed
        self._is_route_stored = True  # unless an invite had a public route and the state folder could not be written
        self._is_retrying = False
        self.has_public_route = False  # an invite had one, so a proxy may stand before the relay

    def prepare(self, engine: Engine) -> Flow[None]:
        """Load from the state folder whether an invite had a public route; then apply the policy.

        If it requires the secret, the first process of the host creates a new one, and the others read it.
        """
        self._is_route_known = False
        yield from self._read_public_route(engine)
        if self.policy is LocalTrustPolicy.SECRET:
            yield from self._lock(engine)
        self._retry_later(engine)

    def add_public_endpoints(self, engine: Engine, endpoints: Sequence[object] | None) -> Flow[None]:
        """Require the secret from now on if a route is public and the policy then needs the secret.

        Store that for later starts; a failure to store it is logged. Nothing changes if the secret is required
        already, unless it is unknown whether an earlier invite had a public route.
        """
        public = [route for route in endpoints or () if isinstance(route, dict) and route.get("role") == "public"]
        policy = self._config.local_trust_policy(public_route=True)
        is_required = bool(self._secret) and self._is_route_known
        if not public or is_required or policy is not LocalTrustPolicy.SECRET:
            return
        self.has_public_route = self._is_route_known = True
        if not self._secret:
            yield from self._lock(engine)
        kept = yield from self._write_public_route(engine)
        if isinstance(kept, Failure):
            engine.log(Level.ERROR, "public route not stored", problem=kept.kind.value)
        self._retry_later(engine)

    def remove_public_route(self, engine: Engine) -> Flow[None]:
        """Apply the policy of a relay without a public route, now and after restarts. Raise `Refused` 500."""
        kept = yield from run_operation(engine, WriteConfig(engine.new_op(), PUBLIC_ROUTE, ""))
        if isinstance(kept, Failure):
            raise Refused(500, "store_failed", "the public route could not be removed")
        self.has_public_route, self._is_route_known, self._is_route_stored = False, True, True
        self._unlock_if_allowed()
        engine.log(Level.INFO, "public route removed", local_trust=self.policy.value)

    @property
    def policy(self) -> LocalTrustPolicy:
        """The policy in force: programs of this host are recognized by address, user or secret."""
        return self._config.local_trust_policy(public_route=self.has_public_route)

    def is_allowed(self, request: Request) -> bool:
        """Report whether a program of this host makes the request and shows the secret if required."""
        return is_local(request) and (not self._secret or has_secret(request.headers, self._secret))

    def check(self, request: Request) -> None:
        """Raise `Refused` 403 unless `is_allowed` holds for the request."""
        if not self.is_allowed(request):
            raise Refused(403, "loopback_only", self.refusal_text(request) or LOCAL_ONLY_TEXT)

    def refusal_text(self, request: Request) -> str | None:
        """Return the text for a refused request of another user, or one that `is_local`; None for any other request."""
        if is_of_other_user(request):
            return OTHER_USER_TEXT
        return WITH_SECRET if is_local(request) else None

    def _read_public_route(self, engine: Engine) -> Flow[None]:
        stored = yield from read_state(engine, PUBLIC_ROUTE)  # an unreadable file counts as present
        if not self._is_route_known:  # not changed meanwhile
            self.has_public_route = stored not in (None, "")
            self._is_route_known = not isinstance(stored, Failure)

    def _write_public_route(self, engine: Engine) -> Flow[Failure | None]:
        kept = yield from run_operation(engine, WriteConfig(engine.new_op(), PUBLIC_ROUTE, "a public route\n"))
        self._is_route_stored = not isinstance(kept, Failure)
        return kept

    def _lock(self, engine: Engine) -> Flow[None]:
        problem = yield from self._share_secret(engine)
        if not self._config.begins:
            if problem is not None:
                engine.log(Level.ERROR, "local secret not read")
        elif problem is None:
            engine.log(Level.INFO, "programs on this host are asked for the local secret")
        else:
            engine.log(Level.ERROR, "local secret not stored", problem=problem.kind.value)

    def _share_secret(self, engine: Engine) -> Flow[Failure | None]:
        """Store a new secret, or read the stored one; after a `Failure`, every program is refused."""
        if self._config.begins:
            self._secret, problem = yield from create_secret(engine)
        else:
            known = yield from read_secret(engine)
            self._secret = (known or engine.entropy(SIZE).hex()).encode()
            problem = None if known else Failure(FailureKind.NOT_FOUND)
        self._is_shared = problem is None
        return problem

    def _unlock_if_allowed(self) -> None:
        if self.policy is not LocalTrustPolicy.SECRET:
            self._secret, self._is_shared = b"", True

    @property
    def _is_settled(self) -> bool:
        return self._is_shared and self._is_route_known and self._is_route_stored

    def _retry_later(self, engine: Engine) -> None:
        if not self._is_settled and not self._is_retrying:
            self._is_retrying = True
            engine.spawn(self._retry(engine))  # ends with the process

    def _retry(self, engine: Engine) -> Flow[None]:
        while not self._is_settled:
            yield from sleep(engine, RETRY_INTERVAL)
            if engine.stopping:
                return
            if not self._is_route_known:
                yield from self._read_public_route(engine)
            if not self._is_route_stored:
                yield from self._write_public_route(engine)
            self._unlock_if_allowed()
            if not self._is_shared:
                yield from self._share_secret(engine)
            self._unlock_if_allowed()  # the public route may have been removed meanwhile
        self._is_retrying = False
        engine.log(Level.INFO, "state of local access restored", local_trust=self.policy.value)
