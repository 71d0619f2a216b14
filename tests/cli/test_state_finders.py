from attrs import evolve

from svc_proto.cli.health_checks import run_health_checks
from tests.cli.test_health_checks import BEHIND, DAY, MIB, NOW, PHONE, WELL, found, phone


def test_a_full_disk_is_one_problem() -> None:
    assert found(evolve(WELL, disk_free=50 * MIB - 1)) == {"disk_full"}
    assert found(evolve(WELL, disk_free=50 * MIB)) == {"disk_low"}
    assert found(evolve(WELL, disk_free=500 * MIB)) == set()


def test_an_api_of_this_host_alone_needs_no_key() -> None:
    assert "key_missing" not in found(evolve(WELL, servers=BEHIND, key=""))


def test_odd_statuses_of_phones() -> None:
    odd = evolve(WELL, devices=(evolve(PHONE, status={"bridge": 5}), evolve(PHONE, status={"device": {}})))
    assert found(odd) == set()


def test_phones_are_named() -> None:
    (result,) = [each for each in run_health_checks(phone(master_enabled=False)) if each.text is not None]
    assert result.text == f"Device Control is off: {PHONE.name}"
    away = evolve(PHONE, name="Tablet", is_online=False, seen_at=NOW - 7 * DAY, status={})
    assert found(evolve(WELL, devices=(PHONE, away))) == set()
    assert found(evolve(WELL, devices=(away,))) == {"phone_offline"}
