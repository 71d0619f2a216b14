"""Session ownership in a service of several nodes, see `local_session_ownership` and `svc_proto.cluster`.

- **Sessions and messages** are in the store that all nodes share, and are read there on request.
- **Turns** of one session are at one node, which holds a lease of the session while a turn runs or waits. A node that
  does not get the lease forwards the request to the lease holder. Writes carry the fencing token of the lease.
- **Runs** are where they were started. A node queries all nodes for an unknown run, and forwards the request (follow,
  stop, answer, status) to the node that has the run.
- **Responses** and conversations are in the store, see `response_store`.
- **Idempotency keys** name the node that has the run of the first request: a repeated request is forwarded there.
- **Slots** of running and of waiting turns are shared by all nodes, see `run_slots`.
- **Wrong keys** are counted by all nodes together, see `ReplicatedAuthRateLimiter`.

Messages between nodes are `failed`, `succeeded` and `cleared` to all nodes, see `ReplicatedAuthRateLimiter`, and the
request `has` to one node, which answers with its URL if it has the run.
"""

import re
from collections.abc import Mapping
from functools import partial

from svc_proto.api.access import BRANDED, EXPOSED_HEADERS
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership, OwnershipPort
from svc_proto.api.cluster.response_store import ClusterResponseStore
from svc_proto.api.cluster.run_slots import ClusterRunSlots
from svc_proto.api.runs.idempotency import KEY_TTL
from svc_proto.api.runs.response_store import ResponseStore
from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import MetricFamily, gauge
from svc_proto.cluster.forwarding import ForwardRule, forward, is_forwarded
from svc_proto.cluster.leases import LEASE, TAKEOVER_DELAY, LeaseManager
from svc_proto.cluster.metrics import cluster_metrics
from svc_proto.cluster.node import RETRY, Node, cluster_unavailable_error
from svc_proto.commands import Level, Query
from svc_proto.engine.flow import Flow, run_operation, sleep, wait
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.sync import gather
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.machines.replicated_auth_rate_limiter import ReplicatedAuthRateLimiter
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress

__all__ = ["ClusterSessionOwnership"]

KIND = "api"
START_TIMEOUT = 3.0  # s for the connection to the other nodes; then the server starts without them
# s for a session whose node is lost, or that was released while a request was forwarded
ACQUIRE_TIMEOUT = LEASE + 2.0
WAIT_TIMEOUT = 600.0  # s for a session whose node runs a turn, where there is no request to forward
POLL_INTERVAL = 0.5  # s between two attempts
MAX_WAITING = 1_000  # requests that wait for other nodes at a time; more are refused with 503
MAX_TURN_DURATION = 86_400.0  # s for an answer at the end of a turn; a lost node ends the wait earlier
RUN_ID = re.compile("run_[0-9a-f]{32}")
FORWARD_RULE = ForwardRule(
    asked=(b"authorization", b"content-type", b"accept", b"idempotency-key", *BRANDED),
    answers=lambda status: status not in (401, 403),  # this node has accepted the key, and all nodes have the same keys
    kept_back=EXPOSED_HEADERS,
    within=MAX_TURN_DURATION,
)


class ClusterSessionOwnership(LocalSessionOwnership):
    """Session ownership by leases in Redis. Implements `NodeHandler` for the node of this process."""

    node: Node  # these three exist from `start` on
    leases: LeaseManager
    places: ClusterRunSlots

    def __init__(self, api: OwnershipPort, where: RedisAddress) -> None:
        super().__init__(api)
        self.limiter: ReplicatedAuthRateLimiter = ReplicatedAuthRateLimiter(self._broadcast)
        self._where = where
        self._waiting = 0
        self._passing: dict[OperationId, str] = {}  # requests that wait for an answer, with the node that answers

    def start(self) -> Flow[None]:
        """Start this node, and wait until it has been connected for `TAKEOVER_DELAY`, at most `START_TIMEOUT`."""
        engine = self.api.engine
        api = self.api
        self.node = Node(engine, self._where, self, KIND, url=api.config.node_url, load=lambda: len(api.runs))
        self._me = f"{self.node.id} {self.api.config.node_url}"
        self.leases = LeaseManager(engine, self.node, self._me, self._overtaken, self._lapsed)
        self.places = ClusterRunSlots(self.api, self.node)
        yield from self.node.start()
        until = engine.now.mono + START_TIMEOUT
        while engine.now.mono < min(until, self.node.up_since + TAKEOVER_DELAY):
            yield from sleep(engine, POLL_INTERVAL)

    def stop(self) -> None:
        """Disconnect. Leases are not released but expire, so that pending writes of this node are still accepted."""
        self.leases.stop()
        self.places.stop()
        self.node.stop()

    # --- sessions ---

    def acquire(
        self, session_id: str, request: Request | None = None, key: str = ""
    ) -> Flow[Response | StreamedResponse | None]:
        """Acquire the lease of a session and return None, or return the answer of another node to the request.

        See `LocalSessionOwnership.acquire`.
        """
        self._enter()
        try:
            response = None
            if request is not None and key:
                response = yield from self._find_by_key(request, key)
            if response is None:
                response = yield from self._leased(session_id, request)
            return response
        finally:
            self._waiting -= 1

    def release(self, session_id: str) -> None:
        """Release one use of the lease of a session; the last one gives the lease back."""
        self.leases.release(session_id)

    def check_capacity(self) -> Flow[None]:
        """Check that a turn that may not wait gets a slot of the cluster. Raises `Refused` 429 or 503."""
        yield from self._wait_settled()
        yield from self.places.check_capacity()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """Reserve a slot of the cluster for the turn that enters next. Raises `Refused` 429 or 503."""
        return self.places.reserve_slot(session_id, may_wait=may_wait)

    def on_slot_freed(self) -> None:
        """Release unused slots for turns that wait at other nodes, unless this node is disconnected."""
        self.places.on_slot_freed()

    def on_ready_started(self) -> None:
        """Release unused slots while connected; poll for more if a turn of this node waits for nothing but a slot."""
        self.places.on_ready_started()

    def fence(self, session_id: str) -> int | None:
        """Return the fencing token of this node's lease of the session; None without a lease.

        The token is 0 until the lease has been acquired.
        """
        return self.leases.fencing_token(session_id)

    def _leased(self, session_id: str, request: Request | None) -> Flow[Response | StreamedResponse | None]:
        engine, node = self.api.engine, self.node
        until = engine.now.mono + (WAIT_TIMEOUT if request is None else ACQUIRE_TIMEOUT)
        while True:
            if not self.leases.has(session_id):
                yield from self._wait_settled()
            owner = yield from self.leases.acquire(session_id)
            if isinstance(owner, Failure):
                raise cluster_unavailable_error("which node has the session", RETRY)
            if not owner:
                return None
            where, _, _ = owner.partition(" ")
            url = node.url_of(where)  # signed, unlike the URL in the lease: requests carry API keys
            if request is not None and url and not is_forwarded(request):
                return (yield from self._forward(request, where, url))
            if engine.now.mono >= until:
                raise cluster_unavailable_error("which node has the session", RETRY)
            yield from sleep(engine, POLL_INTERVAL)

    def _find_by_key(self, request: Request, key: str) -> Flow[Response | StreamedResponse | None]:
        """Forward a repeated request to the node of the first one, and return its answer.

        Else record this node under the key and return None. Raises `Refused` 503 if the node cannot be determined.
        """
        redis, name = self.node.redis, self.node.key("again", key)
        yield from self._wait_settled()
        mine = ("SET", name, self._me, "EX", int(KEY_TTL))
        if not is_forwarded(request):
            if (yield from self._parse_reply(redis.execute(*mine, "NX"))) is not None:
                return None
            owner = yield from self._parse_reply(redis.execute("GET", name))
            where = owner.decode("utf-8", "replace").partition(" ")[0] if isinstance(owner, bytes) else ""
            if where in self.node.members:
                url = self.node.url_of(where)
                if not url:
                    raise cluster_unavailable_error("whether this was asked before", RETRY)
                return (yield from self._forward(request, where, url))
        yield from self._parse_reply(redis.execute(*mine))
        return None

    def _parse_reply(self, asking: Flow[object]) -> Flow[object]:
        answer = yield from asking
        if isinstance(answer, Failure):
            raise cluster_unavailable_error("whether this was asked before", RETRY)
        return answer

    def _wait_settled(self) -> Flow[None]:
        if not self.node.is_up:
            raise cluster_unavailable_error("which node has what", RETRY)
        left = self.node.up_since + TAKEOVER_DELAY - self.api.engine.now.mono
        if left > 0:
            yield from sleep(self.api.engine, left)

    def _overtaken(self, session_id: str) -> None:
        """Log that another node has the session, and stop its runs here: their writes are refused."""
        self.api.engine.log(Level.WARNING, "session taken over", session=session_id)
        self.api.runs.stop_session_runs(session_id)

    def _lapsed(self, session_id: str) -> None:
        """Check with the store whether another node has had the session since the lease expired."""
        self.api.engine.spawn(self._check(session_id))

    def _check(self, session_id: str) -> Flow[None]:
        engine = self.api.engine
        nothing = AddMessages(session_id=session_id, messages=(), fence=self.fence(session_id))
        answer = yield from run_operation(engine, Query(engine.new_op(), nothing))
        if isinstance(answer, Failure) and answer.kind is FailureKind.DENIED:
            self._overtaken(session_id)

    def _broadcast(self, word: str, body: Mapping[str, object]) -> None:
        self.node.broadcast(word, body)

    # --- runs, responses, metrics ---

    def lookup_run(self, request: Request, run_id: str) -> Flow[Response | StreamedResponse | None] | None:
        """Return a lookup of the run at the other nodes; None for an id of another form and for a forwarded request."""
        if is_forwarded(request) or RUN_ID.fullmatch(run_id) is None:
            return None
        return self._find_run_elsewhere(request, run_id)

    def _find_run_elsewhere(self, request: Request, run_id: str) -> Flow[Response | StreamedResponse | None]:
        """Forward a request to the node that has the run, and return its answer; None if no other node has the run.

        Raise `Refused` if too many requests wait for other nodes, this node is disconnected, or no node reports the run
        and one did not answer in time.
        """
        self._enter()
        try:
            yield from self._wait_settled()
            nodes = list(self.node.members)
            asked = [self.node.request(node, "has", {"run": run_id}) for node in nodes]
            answers = yield from gather(self.api.engine, asked)
            for node, answer in zip(nodes, answers, strict=True):
                if not isinstance(answer, Failure) and (url := answer.text("url")):
                    return (yield from self._forward(request, node, url))
        finally:
            self._waiting -= 1
        if any(isinstance(answer, Failure) and answer.kind is FailureKind.TIMED_OUT for answer in answers):
            raise cluster_unavailable_error("which node has the run", RETRY)
        return None

    def responses(self) -> ResponseStore:
        """Return a new `ClusterResponseStore`, whose responses are in the store that all nodes share."""
        return ClusterResponseStore(self.api)

    # --- forwarding ---

    def _enter(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise Refused(503, "busy", "too many requests wait for other nodes", headers=RETRY)
        self._waiting += 1

    def _forward(self, request: Request, node: str, url: str) -> Flow[Response | StreamedResponse]:
        """Forward a request to a node and return the node's answer.

        Raises `Refused` 503 if the node is lost before the answer begins, or gives none within `MAX_TURN_DURATION`.
        """
        engine, path, query = self.api.engine, self.api.router.inner(request.path), request.raw_query
        ticket = engine.new_op()
        self._passing[ticket] = node
        asking = forward(engine, request, f"{url}{path}{query and '?' + query}", FORWARD_RULE)
        task = engine.spawn(asking, on_done=partial(engine.resume, ticket))
        try:
            answer = yield from wait(ticket, engine.now.mono + MAX_TURN_DURATION)
        finally:
            task.cancel()
            del self._passing[ticket]
        if not isinstance(answer, Response | StreamedResponse):
            raise cluster_unavailable_error("what the node that has this says", RETRY)
        return answer

    def metrics(self) -> list[MetricFamily]:
        """Return metrics of the cluster connection, the leases and the forwarded requests."""
        return [
            *cluster_metrics(self.node, "runs"),
            gauge("svc_cluster_leases", "Sessions whose turns are at this node.", len(self.leases)),
            gauge("svc_cluster_passing", "Requests that wait for another node.", self._waiting),
        ]

    # --- `NodeHandler`: messages of other nodes ---

    def export_state(self) -> dict[str, object]:
        """Return an empty state: other nodes need none."""
        return {}

    def apply_state(self, node: str, state: JsonObject) -> None:
        """Ignore the state of another node."""

    def on_message(self, node: str, word: str, body: JsonObject) -> None:
        """Apply an authentication failure or success, or the clearing of all counts, that another node reports."""
        self.limiter.apply_remote(word, body.text("address"), self.api.engine.now)

    def on_request(self, node: str, word: str, body: JsonObject) -> dict[str, object]:
        """Answer the request `has` with the URL of this node if the run is here; else return {}."""
        api = self.api
        return {"url": api.config.node_url} if word == "has" and api.runs.get(body.text("run")) is not None else {}

    def on_messages_missed(self) -> None:
        """Renew leases and slots: this node may have been disconnected."""
        self.leases.renew()
        self.places.renew()

    def on_node_lost(self, node: str) -> None:
        """End the waits for answers of a lost node, unless this node itself is disconnected."""
        for ticket, where in list(self._passing.items()):
            if where == node and self.node.is_up:
                self.api.engine.resume(ticket, None)
