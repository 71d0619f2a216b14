from __future__ import annotations

from attrs import evolve

from svc_proto.cli.phone_finders import find_no_control, find_phone_offline
from tests.cli.test_health_checks import PHONE, WELL, found, phone


def test_odd_statuses_of_phones() -> None:
    odd = evolve(WELL, devices=(evolve(PHONE, status={"bridge": 5}), evolve(PHONE, status={"device": {}})))
    assert found(odd) == set()


def test_phones_are_named() -> None:
    assert find_no_control(phone(master_enabled=False)) == f"Device Control is off: {PHONE.name}"
    away = evolve(PHONE, name="Tablet", is_online=False, status={})
    assert find_phone_offline(evolve(WELL, devices=(PHONE, away))) is None
    assert find_phone_offline(evolve(WELL, devices=(away,))) == "not online now: Tablet"
