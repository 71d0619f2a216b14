"""Safety invariants of a simulated cluster: pairings, commands, revocations, guesses and Redis keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from attrs import define

from fuzz.cluster.actors import ClusterPhone, PendingCommand
from runtimes.sim.process import SimProcess
from svc_proto.commands import Level
from svc_proto.machines.auth_rate_limiter import MAX_FAILURES, WINDOW
from tests.support.sim_http import RequestClient

if TYPE_CHECKING:
    from fuzz.cluster.deployment import ClusterDeployment

SOON = 1.0  # s after which a revocation holds everywhere, in a network without faults
BACK = 3.0  # s after which each node reaches the others again, when the network has no faults
LOST = 4.5  # s after which a node that does not reach Redis is absent for the others: a lease with a margin
UNDER_WAY = 2.5  # s for which a command may be between nodes: the timeout of a Redis answer, with a margin
STORE_PROBLEMS = (
    "session not stored",
    "audit event not stored",
    "session not erased",
    "the store does not answer",
)  # of the log, at level error
APART = "cluster_unavailable"


class ClusterViolation(AssertionError):  # noqa: N818 - the name describes the event
    """Violated invariant of the cluster."""


@define(eq=False)
class TokenModel:
    """Expected state of a token: when and how its session and its bridge grant were revoked."""

    revoked_at: float | None = None  # when the DELETE was answered
    withheld_at: float | None = None  # when the PATCH that took its bridge was answered
    bereft: bool = False  # whether a client has requested that
    asked: bool = False  # whether a client has requested its revocation
    cut: bool = False  # whether a node reported its end, though the store has not recorded it
    cut_at: float | None = None  # when a connected node reported that
    cut_by: SimProcess | None = None
    shaky: bool = False  # whether the store may lack it


class ClusterInvariants:
    """Checker of the invariants, with what clients have observed so far."""

    def __init__(self, world: ClusterDeployment) -> None:
        self.world = world
        self.held: dict[str, TokenModel] = {}  # by token
        self.guesses: dict[str, list[float]] = {}  # failed guesses, by address
        self.commands: list[PendingCommand] = []  # by the number in each command
        self._pairings: dict[str, list[ClusterPhone]] = {}  # by code
        self._outcomes: dict[str, int] = {}  # answers by request id
        self._done: dict[str, int] = {}  # performances by request id

    def note_command_sent(self, node: int, token: str, device: str) -> PendingCommand:
        """Record a command that is about to be sent to a node."""
        command = PendingCommand(
            len(self.commands), node, token, device, self.world.sim.now, self._isolation_count(node)
        )
        self.commands.append(command)
        return command

    def _isolation_count(self, node: int) -> int:
        """Return the number of past connections to Redis while the node is isolated; 0 for a connected node."""
        coordinator = getattr(self.world.relays[node].coordinator, "node", None)
        return 0 if coordinator is None or coordinator.is_up else coordinator.redis.connections

    # --- observations of clients ---

    def note_pairing(self, phone: ClusterPhone) -> None:
        """Record an accepted phone, and check that its code has paired no other.

        Without faults, its session must not have been revoked over `SOON` s before.
        """
        held = self.held.setdefault(phone.token, TokenModel())
        if phone.code:
            held.shaky = self.world.sim.now <= self.world.lost_store[phone.node]
            paired = self._pairings.setdefault(phone.code, [])
            paired.append(phone)
            if len(paired) > 1:
                raise ClusterViolation(f"the code {phone.code} has paired {len(paired)} phones")
        self._check_token(phone.token, self.world.sim.now, "signed in")

    def note_guess(self, address: str) -> None:
        """Record a wrong guess that a node checked. Raise `ClusterViolation` if the address has guessed too often.

        Guesses count only in a cluster without faults.
        """
        world, now = self.world, self.world.sim.now
        before = self.guesses.setdefault(address, [])
        calm = max(world.troubled, world.shuffled) + SOON
        counted = [when for when in before if calm < when < now - SOON and now - when < WINDOW]
        if world.is_fault_free and len(counted) >= MAX_FAILURES:
            raise ClusterViolation(f"{address} has guessed {len(counted) + 1} times within a minute")
        before.append(now)

    def note_performed(self, phone: ClusterPhone, command: Mapping[str, Any]) -> None:
        """Check that a command is executed at most once, in time, and by the selected phone.

        Without faults, the phone's session and bridge grant must not have been revoked over `SOON` s before.
        """
        request_id, now = command["request_id"], self.world.sim.now
        self._done[request_id] = self._done.get(request_id, 0) + 1
        if self._done[request_id] > 1:
            raise ClusterViolation(f"the command {request_id} was performed {self._done[request_id]} times")
        if command["body"]:
            self._check_performed(self.commands[command["body"]["x"]], phone)
        self._check_token(phone.token, now, "was given a command")
        self._check_revoked_grant(phone.token, now, f"{phone.name} was given a command")
        if any(other.is_authenticated and other.token == phone.token for other in self.world.phones):
            self._check_timing(phone.left_at, f"{phone.name} was given a command", now, "has come elsewhere")

    def _check_performed(self, command: PendingCommand, phone: ClusterPhone) -> None:
        command.done += 1
        if command.done > 1:
            raise ClusterViolation(f"the errand {command.number} was performed {command.done} times")
        if command.device not in ("", phone.device):
            raise ClusterViolation(f"what {command.device} was to do {phone.device} did")
        now = self.world.sim.now
        late = 0.0 if command.over_at is None else now - command.over_at
        if late > UNDER_WAY:
            raise ClusterViolation(f"what was told as {command.told} is performed {late:.1f} s later")
        waits_until = max(self.world.slow_until, self.world.moved_until)
        if now - command.began > UNDER_WAY and command.began > waits_until:
            raise ClusterViolation(f"a command is performed {now - command.began:.1f} s after it was asked for")

    def note_outcome(self, caller: RequestClient, command: PendingCommand) -> None:
        """Record the outcome of a command, and compare it with the expected state."""
        status, code, token = caller.status, caller.answer.json.get("code", ""), command.token
        command.over_at, command.told = self.world.sim.now, f"{status} {code}"
        if status == 200:
            request_id = caller.answer.json["id"]
            self._outcomes[request_id] = self._outcomes.get(request_id, 0) + 1
            if self._outcomes[request_id] > 1 or self._done.get(request_id) != 1 or command.done != 1:
                raise ClusterViolation(f"the command {request_id} has {self._outcomes[request_id]} outcomes")
        # Each phone answers within 3 s, and the caller is informed sooner if its phone has disconnected.
        if status == 504:
            raise ClusterViolation("a command waited until its time was over")
        if command.apart and self._isolation_count(command.node) == command.apart:
            self._check_isolated(command, status, code)
        held, since = self.held[token], command.began - self.world.troubled
        if code == APART and self.world.is_fault_free and since > BACK:
            raise ClusterViolation(f"a node does not reach the others {since:.1f} s after all is whole")
        if status == 401 and self.world.is_fault_free and since > SOON and not (held.asked or held.shaky):
            raise ClusterViolation(f"{token[:8]} was told, and is not known to the node that was asked")
        if status not in (0, 401):
            self._check_token(token, command.began, f"asked and was told {status}")
        if status == 200:
            self._check_revoked_grant(token, command.began, f"{token[:8]} drove a phone")

    def _check_isolated(self, command: PendingCommand, status: int, code: str) -> None:
        own = {phone.device for phone in self.world.phones if phone.node == command.node}
        if (status in (404, 503) and code != APART) or (status == 502 and command.device not in ("", *own)):
            raise ClusterViolation(f"a node that reaches no other says {code} of {command.device or 'any phone'}")

    def note_view(self, node: int, listed: Collection[str], began: float) -> None:
        """Compare the phones that a node lists with the connected phones.

        Under faults, only phones of isolated nodes are checked.
        """
        world = self.world
        lost = [n for n, since in world.apart_since.items() if began - since > LOST]
        elsewhere = {phone.device for phone in world.phones if phone.node not in lost and not phone.closed}
        ghosts = {phone.device for phone in world.phones if phone.node in lost}.intersection(listed) - elsewhere
        if ghosts and node not in world.apart_since:
            raise ClusterViolation(f"node {node} lists {ghosts} of {lost}, which reach no other node")
        if not world.is_fault_free or began < max(
            world.troubled + BACK, world.slow_until + SOON, world.shuffled + SOON
        ):
            return
        drives = [phone for phone in world.phones if phone.token and world.has_bridge_grant(phone)]
        there = {phone.device for phone in drives if phone.is_authenticated}
        settled = {phone.device for phone in drives if phone.is_authenticated and began - phone.in_at > SOON}
        settled -= {phone.device for phone in drives if phone.in_at > began - SOON or phone.left_at is not None}
        gone = {phone.device for phone in world.phones if began - phone.closed_at > SOON} - there
        open_ = {phone.device for phone in world.phones if not began - phone.closed_at > SOON}
        if missing := settled - set(listed):
            raise ClusterViolation(f"node {node} does not list {missing}")
        if ghosts := gone.intersection(listed) - open_:
            raise ClusterViolation(f"node {node} lists {ghosts}, which have gone")

    def note_probe(self, token: str, status: int, began: float) -> None:
        """Check the response to a request that needs the bridge grant.

        Without faults, it must be refused from `SOON` s after the end of the session or of the grant.
        """
        held = self.held[token]
        if status not in (0, 401):
            self._check_token(token, began, "was let in")
            if held.cut_by is not None and held.cut_by.alive:
                self._check_timing(held.cut_at, f"{token[:8]} was let in", began, "was revoked, and that is not stored")
        if status not in (0, 401, 403):
            self._check_revoked_grant(token, began, f"{token[:8]} was let in")

    def _check_token(self, token: str, when: float, what: str) -> None:
        held = self.held.get(token)
        if held is not None:
            self._check_timing(held.revoked_at, f"{token[:8]} {what}", when, "was revoked")

    def _check_revoked_grant(self, token: str, when: float, what: str) -> None:
        if when > self.world.slow_until:
            self._check_timing(self.held[token].withheld_at, what, when, "may not any more")

    def _check_timing(self, taken_at: float | None, what: str, when: float, how: str) -> None:
        if taken_at is None or not self.world.is_fault_free:
            return
        since = when - max(taken_at, self.world.troubled)
        if since > SOON:
            raise ClusterViolation(f"{what} {since:.1f} s after it {how}")

    # --- logs and Redis ---

    def check_logs_and_redis(self) -> None:
        """Check the logs, and that each Redis key expires.

        Logs must have no password of Redis, no bugs, and no errors except the store's.
        """
        world = self.world
        for host in (*world.hosts, *world.redis_services):
            for process in host.processes:
                for line in process.logs:
                    if line.event == "bug" or (line.level >= Level.ERROR and line.event not in STORE_PROBLEMS):
                        raise ClusterViolation(f"{process.name}: {line.event} {line.fields}")
                    if world.where.password in f"{line.event} {line.fields}":
                        raise ClusterViolation(f"{process.name} tells the password of Redis: {line.event}")
        for service in world.redis_services.values():
            for (_, key), (_, until) in service.keys.items():
                if until == inf:
                    raise ClusterViolation(f"Redis keeps {key!r} for ever")
