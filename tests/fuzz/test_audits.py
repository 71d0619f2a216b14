"""The audits: each room can be gone through, and finds what is not as it should be; what is told is compared whole."""

from __future__ import annotations

import pytest

from fuzz import game
from fuzz.audit import Audit
from fuzz.audits.house import ROOMS
from fuzz.draw import draw
from fuzz.game import Failure, Report, play
from fuzz.invariants import Invariant
from fuzz.script import Script
from svc_proto.machines.inbox import Notifications

SHORT = 6  # steps: two devices are paired
KINDS = [*dict.fromkeys(ROOMS)]


def gone_through(monkeypatch: pytest.MonkeyPatch, name: str, seed: int) -> Report | Failure:
    rooms = tuple(kind for kind in KINDS if kind.__name__ == name)
    monkeypatch.setattr(game, "ROOMS", rooms)
    return play(Script(seed, draw(seed).steps[:SHORT]))


@pytest.mark.repetition  # the worlds of each suite go through all of them
@pytest.mark.parametrize("name", [kind.__name__ for kind in KINDS])
def test_a_room_is_as_it_should_be(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    outcome = gone_through(monkeypatch, name, 1)
    assert isinstance(outcome, Report), str(outcome)
    assert outcome.counts[f"audits: {name}"] == 1


def test_each_room_has_a_name_of_its_own() -> None:
    assert len({kind.__name__ for kind in KINDS}) == len(KINDS)
    assert all(kind.__doc__ for kind in KINDS)


def test_what_is_wrong_is_told_with_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Notifications, "recent", lambda self, limit: list(self._ring)[:limit])
    outcome = gone_through(monkeypatch, "notifications", 3)
    assert isinstance(outcome, Failure)
    assert outcome.invariant is Invariant.AS_TOLD
    assert "told is" in outcome.detail
    assert "and it is" in outcome.detail
    assert "audits/bridge.py" in outcome.place or "audit.py" in outcome.place


def test_the_worlds_of_a_suite_go_through_each_room() -> None:
    seen = {kind.__name__ for seed in range(40) for kind in game.rooms_of(seed)}
    assert seen == {kind.__name__ for kind in KINDS}


def test_only_what_differs_is_told() -> None:
    told = Audit.difference({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]})
    assert told == {"b": [(1, 2)]}
    assert Audit.difference([1], [1, 2]) == [1]
