"""Worlds with the plain lanes and without: every fact and command of every program is the same."""

from __future__ import annotations

import pytest

from fuzz.game import Report, play_seed
from fuzz.law import Law, obey
from svc_proto.engine import server
from svc_proto.wire.http1_plain import PlainConnection


@pytest.mark.parametrize("seed", range(2))
def test_worlds_are_the_same_without_the_lanes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PlainConnection", PlainConnection)  # whatever `--law` says, and put back at the end
    first = play_seed(seed)
    obey()
    assert vars(server)["PlainConnection"] is Law
    second = play_seed(seed)
    assert isinstance(first, Report)
    assert first == second
