"""Tests of some worlds of authority; `python -m fuzz.authority.run --worlds 10000` runs many."""

from collections import Counter

import pytest

from fuzz.authority.run import run_seed
from fuzz.authority.world import AuthorityViolation
from svc_proto.machines.paired_session import PairedSession

WORLDS = 10  # about two seconds


def test_no_principal_exceeds_its_authority() -> None:
    counts = sum(map(run_seed, range(WORLDS)), start=Counter[str]())
    assert {"pair", "revoke", "probe_relay", "start_run", "answer_approval"} <= set(counts)


def test_a_grant_that_is_too_wide_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PairedSession, "may", lambda session, right, now: True)
    with pytest.raises(AuthorityViolation):
        Counter(map(run_seed, range(WORLDS)))
