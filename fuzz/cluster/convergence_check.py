"""Convergence check of a cluster after a run: all nodes must agree."""

from random import Random
from typing import Any, cast

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.deployment import ClusterDeployment
from fuzz.cluster.invariants import SOON, ClusterViolation
from svc_proto.machines.auth_rate_limiter import MAX_FAILURES
from svc_proto.relay.cluster.coordinator import ClusterCoordinator
from svc_proto.relay.routes.sessions import MAX_LISTED

AFTER_STORED = "0001"  # cursor behind the sessions of `ClusterDeployment.add_sessions`


def check_convergence(world: ClusterDeployment, rng: Random) -> None:
    """Check nodes, guesses, sessions, phones, shared records and tables. Raise `ClusterViolation` if a check fails."""
    for n in _nodes(world):
        if world.count_known_nodes(n) != len(world.nodes) - 1:
            raise ClusterViolation(f"node {n} knows {world.count_known_nodes(n)} of {len(world.nodes) - 1} others")
    _check_guesses(world)
    _check_sessions(world)
    _check_phones(world, rng)
    _check_news(world, rng)
    _check_tables(world)
    world.check_invariants()


def asker(world: ClusterDeployment, among: list[ClusterPhone]) -> ClusterPhone | None:
    """Return the first phone of `among` that is connected and whose session the store surely has, or None."""
    return next(
        (phone for phone in among if phone.is_authenticated and not world.invariants.held[phone.token].shaky), None
    )


def _nodes(world: ClusterDeployment) -> range:
    return range(len(world.nodes))


def _check_sessions(world: ClusterDeployment) -> None:
    for token, held in world.invariants.held.items():
        for n in _nodes(world):
            status = world.request_and_wait(n, "GET", "/clipboard", token=token).status
            if (held.revoked_at is not None or held.cut) and status != 401:
                raise ClusterViolation(f"node {n} answers {status} to {token[:8]}, which was revoked")
            drives = world.request_and_wait(n, "GET", "/ping", token=token).status not in (401, 403)
            if drives and held.withheld_at is not None:
                raise ClusterViolation(f"node {n} lets {token[:8]} drive phones, which may not any more")
            if status == 401 and not (held.asked or held.shaky):
                raise ClusterViolation(f"node {n} does not know {token[:8]}, which was told")


def _check_guesses(world: ClusterDeployment) -> None:
    """Check that wrong codes block an address at all nodes, until an operator registers a pairing code."""
    unknown_host = world.sim.host("stranger", "10.0.7.99")
    count = len(world.nodes)
    for n in range(MAX_FAILURES + 2 * count + 1):
        if n == MAX_FAILURES + 2 * count:
            assert world.request_and_wait(n % count, "POST", "/pairing/register", body={"code": "STORM2"}).status == 200
            world.sim.run_for(SOON)
        guess = world.try_wrong_code((n + 1) % count, unknown_host)
        world.run(lambda guess=guess: guess.over)  # type: ignore[misc]
        world.sim.run_for(SOON)
        if guess.refused != (n < MAX_FAILURES or n == MAX_FAILURES + 2 * count):
            what = "is heard" if guess.refused else "is shut out"
            raise ClusterViolation(f"who has guessed {n} times {what} at node {(n + 1) % count}")
        if n >= MAX_FAILURES + 2 * count - 1:
            world.invariants.guesses.clear()


def _views(world: ClusterDeployment, path: str) -> list[Any]:
    return [world.request_and_wait(n, "GET", path).answer.json for n in _nodes(world)]


def _check_phones(world: ClusterDeployment, rng: Random) -> None:
    live = {phone.name: phone for phone in world.phones if phone.is_authenticated and world.has_bridge_grant(phone)}
    asks = asker(world, list(live.values()))
    views = [{device["device_id"] for device in view["devices"]} for view in _views(world, "/bridge/devices")]
    if any(view != views[0] for view in views):
        raise ClusterViolation(f"the nodes see different phones: {views}")
    for chosen in (None, rng.choice([*live.values(), None])):
        if chosen is not None:
            world.request_and_wait(0, "POST", "/bridge/select-active", body={"device": chosen.device})
            world.sim.run_for(SOON)
        actives = [view["active_device_id"] for view in _views(world, "/bridge/devices")]
        if len(set(actives)) > 1:
            raise ClusterViolation(f"the nodes would drive different phones: {actives}")
    if missing := {f"device-{name}" for name in live} - views[0]:
        raise ClusterViolation(f"no node sees {missing}")
    for name in live if asks is not None else ():
        for n in _nodes(world):
            caller = world.send_command(n, asks.token, device=f"device-{name}")  # type: ignore[union-attr]  # see above
            world.run(lambda caller=caller: caller.is_closed)  # type: ignore[misc]
            if caller.status != 200:
                raise ClusterViolation(f"node {n} answers {caller.status} {caller.answer.body!r} for {name}")


def _check_news(world: ClusterDeployment, rng: Random) -> None:
    """Check that all nodes list the same activity, and online every session that must be and none that cannot be.

    If a phone is connected, it posts a notification, which each node must list first.
    """
    records = [[record["request_id"] for record in view["activity"]] for view in _views(world, "/bridge/activity")]
    if any(each != records[0] for each in records):
        raise ClusterViolation(f"the nodes tell different commands: {records}")
    # Some phones have reconnected, with their old socket still open.
    may_be = {phone.token[:8] for phone in world.phones if phone.token and not phone.closed}
    must_be = {
        phone.token[:8]
        for phone in world.phones
        if phone.is_authenticated and not world.invariants.held[phone.token].shaky
    }
    is_listed_whole = len(world.store.sessions) <= MAX_LISTED
    for n, view in enumerate(_views(world, "/sessions" if is_listed_whole else f"/sessions?cursor={AFTER_STORED}")):
        online = {session["token_prefix"] for session in view["sessions"] if session["online"]}
        if not must_be <= online <= may_be:
            raise ClusterViolation(f"node {n} says that {online} are online, of {may_be} with {must_be}")
    inside = [phone for phone in world.phones if phone.is_authenticated and phone.talker is not None]
    if inside:
        talker = rng.choice(inside).talker
        assert talker is not None
        talker.send_envelope(
            "notifications", "notification.posted", {"package_name": "x", "title": "storm", "text": "is over"}
        )
        world.sim.run_for(SOON)
        for n, view in enumerate(_views(world, "/notifications/recent")):
            if "storm" not in str(view["notifications"][:1]):
                raise ClusterViolation(f"node {n} has not heard what a phone has passed on")


def _check_tables(world: ClusterDeployment) -> None:
    for n, relay in enumerate(world.relays):
        coordinator = cast("ClusterCoordinator", relay.coordinator)
        numbers = {phone.socket for phone in relay.phones.connected()}
        elsewhere = {number for number in numbers if number < 0}
        known = {number for row in coordinator._numbers.values() for number in row.values()}
        tables = {*coordinator._elsewhere}, known, {*coordinator._since._since}
        if tables != (elsewhere, elsewhere, numbers) or coordinator.node._pending_requests:
            raise ClusterViolation(f"node {n} has left {tables} of {numbers}")
