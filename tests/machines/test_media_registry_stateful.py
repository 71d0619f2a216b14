"""The media registry beside a list in the order of use: no token outlives its time or leads to another file."""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.moment import Moment
from svc_proto.machines.media_registry import MediaEntry, MediaRegistry, MediaState

TTL, CAP = 100.0, 3


class MediaAgainstAModel(RuleBasedStateMachine):
    """Media registry beside a model: the `live` entries, least recently used first, and those that are `gone`."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = MediaRegistry(ttl=TTL, cap=CAP)
        self.now = 0.0
        self.serial = count(1)
        self.live: list[MediaEntry] = []
        self.gone: list[MediaEntry] = []

    @property
    def moment(self) -> Moment:
        return Moment(self.now, 1_000.0 + self.now)

    @rule()
    def register(self) -> None:
        number = next(self.serial)
        entry, gone = self.registry.register(
            self.moment,
            lambda n: number.to_bytes(n, "big"),
            path=f"/files/{number}",
            content_type="image/png",
            file_name=None,
            size=number,
        )
        self._expired(gone, [each for each in self.live if each.deadline <= self.now], fresh=1)
        self.live.append(entry)
        assert entry.deadline == self.now + TTL

    @precondition(lambda self: self.live or self.gone)
    @rule(data=st.data())
    def fetch(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from([*self.live, *self.gone]))
        found = self.registry.lookup(wanted.token, self.moment)
        if wanted not in self.live or wanted.deadline <= self.now:
            assert found is None
            return
        assert found is wanted
        self.live.remove(wanted)
        self.live.append(wanted)

    @rule(seconds=st.sampled_from((0.0, 1.0, 49.0, 99.0, 100.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def expire(self) -> None:
        self._expired(self.registry.expire_due(self.moment), [each for each in self.live if each.deadline <= self.now])

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert len(self.registry) == len(self.live) <= CAP
        assert self.registry.next_expiry() == min((entry.deadline for entry in self.live), default=None)
        assert all(entry.state is MediaState.REGISTERED for entry in self.live)
        shown = {str(record["token"]) for record in self.registry.records(self.moment)}
        assert shown == {entry.token for entry in self.live if entry.deadline > self.now}

    def _expired(self, gone: list[MediaEntry], due: list[MediaEntry], *, fresh: int = 0) -> None:
        over = sorted(due, key=lambda entry: entry.deadline)
        assert sorted(gone[: len(over)], key=lambda entry: entry.deadline) == over
        left = [entry for entry in self.live if entry not in over]
        evicted = left[:1] if len(left) + fresh > CAP else []
        assert gone[len(over) :] == evicted
        assert all(entry.state is MediaState.EXPIRED for entry in over)
        assert all(entry.state is MediaState.EVICTED for entry in evicted)
        self.live = [entry for entry in left if entry not in evicted]
        self.gone += [*over, *evicted]


TestMediaAgainstAModel = MediaAgainstAModel.TestCase
TestMediaAgainstAModel.settings = settings(max_examples=30, stateful_step_count=25)
