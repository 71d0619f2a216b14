"""Nodes that are killed, cut off and restarted during chats at all of them, with these invariants.

- At most one running node has the lease of a session.
- A message of a user is stored at most once; the text of a stream that was reported as complete is stored right behind
  it.
- After recovery each session can continue at each node.
- Running turns, and in a crowded storm waiting ones, stay within the limits of all nodes together. Turns of a node that
  was cut off do not count.
- In a crowded storm, wrong keys stay within the limit of all nodes together, while no node is killed, restarted or cut
  off.

With each of five seeded bugs, a storm breaks an invariant.
"""

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from svc_proto.agent.interface import TextDelta
from svc_proto.api.cluster import run_slots
from svc_proto.api.cluster.session_ownership import ACQUIRE_TIMEOUT, ClusterSessionOwnership
from svc_proto.cluster.semaphore import DistributedSemaphore
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address
from svc_proto.machines.auth_rate_limiter import MAX_FAILURES, WINDOW, AuthRateLimiter
from svc_proto.machines.replicated_auth_rate_limiter import ReplicatedAuthRateLimiter
from svc_proto.machines.run_scheduler import RunState
from tests.api.cluster_harness import ApiClusterHarness
from tests.api.harness import ApiCall
from tests.api.scripted_agent import ScriptedTurn, streamed_text
from tests.support.scenario_plan import some

STEPS = 60
CAP = 2  # simultaneous turns
LINE = 2  # waiting turns, if `crowded`
GUESSER = Address("203.0.113.9", 4711)


class Storm:
    """Random events by a seed; `crowded` adds more sessions than there are slots, and guesses of keys."""

    def __init__(self, seed: int, *, crowded: bool = False) -> None:
        self.rng = Random(seed)
        self.crowded = crowded
        self.book = ApiClusterHarness(3, max_concurrent_runs=CAP)
        for number, (node, _) in enumerate(self.book.members):
            node.engine.entropy = Random(f"{seed} {number}").randbytes
        self.sessions = [self.book.session() for _ in range(5 if crowded else CAP)]
        self.calls: list[tuple[str, str, ApiCall]] = []  # session, message, and stream
        self.dead: set[int] = set()
        self.strays: set[str] = set()  # turns whose node was cut off meanwhile
        self.guesses: list[float] = []  # times of accepted guesses since the nodes reach each other

    def run(self) -> None:
        troubles = [self.stop, self.kill, self.cut, self.flush, self.mend]
        handlers = [self.chat] * 4 + [self.answer] * 4 + [self.wait] * 3 + troubles
        for _ in range(STEPS):
            self.rng.choice([*handlers, *([self.guess] * 6 + [self.chat] * 4 if self.crowded else [])])()
            self.check_owners()
            self.check_sums()
        self.heal()
        self.check_rows()

    def _live(self) -> list[int]:
        return [n for n in range(3) if n not in self.dead]

    def _hands(self) -> list[ScriptedTurn]:
        hands = self.book.scripted.hands
        return [hand for hand in hands if not hand.cancelled and not hand.outcome and hand.node.alive]

    def chat(self) -> None:
        session, said = self.rng.choice(self.sessions), f"message {len(self.calls)}"
        call = self.book.at(self.rng.choice(self._live())).chat(session, {"message": said})
        self.calls.append((session, said, call))

    def answer(self) -> None:
        if hands := self._hands():
            hand = self.rng.choice(hands)
            hand.emit(TextDelta(f"answer to {hand.turn.prompt}"))
            if self.rng.random() < 0.8:
                hand.finish()

    def wait(self) -> None:
        self.book.after(self.rng.choice([0.1, 0.7, 2.0, 6.0]))

    def stop(self) -> None:
        if hands := self._hands():
            run = self.rng.choice(hands).turn.run_id
            self.book.at(self.rng.choice(self._live())).call("POST", f"/v1/runs/{run}/stop")

    def kill(self) -> None:
        self.guesses.clear()  # the node had counted some of them
        if self.dead:
            self.book.start_node(self.dead.pop())
        else:
            n = self.rng.randrange(3)
            self.dead.add(n)
            self.book.apart.discard(self.book.members[n][0])
            self.book.kill(n)

    def cut(self) -> None:
        self.book.cut(self.rng.choice(self._live()))

    def flush(self) -> None:
        if self.rng.random() < 0.3:
            self.book.cut()

    def mend(self) -> None:
        self.book.mend()

    def guess(self) -> None:
        call = self.book.at(self.rng.choice(self._live())).call("GET", "/api/sessions", key="wrong", peer=GUESSER)
        if call.result.status == 401:
            self.guesses.append(self.book.clock.now)

    def _are_whole(self) -> bool:
        nodes = [cast("ClusterSessionOwnership", self.book.members[n][1].ownership).node for n in self._live()]
        return len(nodes) == 3 and all(len(node.members) == 2 for node in nodes)

    def check_sums(self) -> None:
        now = self.book.clock.now
        if not self._are_whole():
            self.guesses.clear()
        lately = [when for when in self.guesses if when > now - WINDOW]
        assert len(lately) <= MAX_FAILURES, f"{len(lately)} wrong keys in a minute"
        running, waiting = [], []
        for n in self._live():
            node, api = self.book.members[n]
            turns = [run for run in api.runs.registry.live() if not run.ended]
            if node in self.book.apart:
                self.strays.update(run.id for run in turns)
            running += [run.id for run in turns if run.has_slot]
            waiting += [run.id for run in turns if run.state is RunState.QUEUED and not run.has_slot]
        assert len(set(running) - self.strays) <= CAP, f"{len(running)} turns run"
        if self.crowded:
            assert len(set(waiting) - self.strays) <= LINE, f"{len(waiting)} turns wait"

    def check_owners(self) -> None:
        for session in self.sessions:
            apis = [self.book.members[node][1] for node in self._live()]
            owners = [api for api in apis if cast("ClusterSessionOwnership", api.ownership).leases.has(session)]
            assert len(owners) <= 1, owners

    def heal(self) -> None:
        for n in list(self.dead):
            self.dead.discard(n)
            self.book.start_node(n)
        self.book.mend()
        self.book.after(2 * ACQUIRE_TIMEOUT)
        while hands := self._hands():
            for hand in hands:
                hand.respond(f"answer to {hand.turn.prompt}")
            self.book.after(ACQUIRE_TIMEOUT)
        for session in self.sessions:
            for n in range(3):
                said = f"at last {session} {n}"
                call = self.book.at(n).chat(session, {"message": said})
                self.calls.append((session, said, call))
                self.book.hand.emit(TextDelta("so it is"))
                self.book.hand.finish()
                assert told_completed(call)
        for _, api in self.book.members:
            assert len(cast("ClusterSessionOwnership", api.ownership).leases) == len(api.runs) == 0
        held = {key: value for (_, key), (value, until) in self.book.town.keys.items() if until > self.book.clock.now}
        assert not [key for key in held if b":lease:" in key or b":places:" in key]

    def check_rows(self) -> None:
        for session in self.sessions:
            rows = [(row["role"], row["content"]) for row in self.book.messages(session)]
            said = [content for role, content in rows if role == "user"]
            assert len(said) == len(set(said))
            for where, message, call in self.calls:
                if where == session and told_completed(call):
                    at = rows.index(("user", message))
                    assert rows[at + 1] == ("assistant", streamed_text(call))


def told_completed(call: ApiCall) -> bool:
    """Report whether a stream has reported its turn as complete."""
    done: list[dict[str, Any]] = [data for name, data in call.named_events() if name == "run.completed"]
    return bool(done) and done[0]["completed"]


@pytest.mark.parametrize("seed", some(range(20), 5))
def test_storms_keep_the_invariants(seed: int) -> None:
    Storm(seed).run()


@pytest.mark.parametrize("seed", some(range(30), 6))
def test_crowded_storms_keep_the_invariants(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_slots, "MAX_QUEUED", LINE)
    Storm(seed, crowded=True).run()


def a_place_is_taken_unasked(patch: pytest.MonkeyPatch) -> None:
    take = DistributedSemaphore.acquire

    def taken(self: DistributedSemaphore) -> Flow[object]:
        yield from take(self)
        if self._most == CAP:
            self._places.append("mine")
        return True

    patch.setattr(DistributedSemaphore, "acquire", taken)


def places_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DistributedSemaphore, "renew", lambda self: None)


def places_are_not_given_back(patch: pytest.MonkeyPatch) -> None:
    def forget(self: DistributedSemaphore, count: int) -> None:
        del self._places[count:]

    patch.setattr(DistributedSemaphore, "release_down_to", forget)


def the_line_is_of_each_node(patch: pytest.MonkeyPatch) -> None:
    init = DistributedSemaphore.__init__

    def made(self: DistributedSemaphore, node: Any, kind: str, most: int) -> None:
        init(self, node, f"{kind} {node.id}" if kind == "line" else kind, most)

    patch.setattr(DistributedSemaphore, "__init__", made)


def wrong_keys_are_counted_by_each_node_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicatedAuthRateLimiter, "failure", AuthRateLimiter.failure)


SEEDED_BUGS: list[tuple[Callable[[pytest.MonkeyPatch], None], int, str | None]] = [  # bug, seed, failure
    (a_place_is_taken_unasked, 0, "turns run"),
    (places_are_not_kept, 0, "turns run"),
    (places_are_not_given_back, 0, None),
    (the_line_is_of_each_node, 0, "turns wait"),
    (wrong_keys_are_counted_by_each_node_alone, 0, "wrong keys"),
]


@pytest.mark.parametrize(
    ("seed_bug", "seed", "said"), SEEDED_BUGS, ids=[seed_bug.__name__ for seed_bug, _, _ in SEEDED_BUGS]
)
def test_storm_finds_the_seeded_bug(
    seed_bug: Callable[[pytest.MonkeyPatch], None], seed: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_slots, "MAX_QUEUED", LINE)
    seed_bug(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        Storm(seed, crowded=True).run()
