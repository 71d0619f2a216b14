import pytest

from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST, MAX_BLOCKED, Blocklist


@pytest.mark.parametrize("package", ["com.Venmo", "com.venmo.x", "com.ven", "venmo", " com.venmo", "", "unknown"])
def test_only_the_whole_name_matches(package: str) -> None:
    assert package not in Blocklist()


def test_user_changes_up_to_a_size() -> None:
    blocklist = Blocklist(["com.one"])
    assert blocklist.add(" com.Two ")
    assert blocklist.add("com.Two")
    assert not blocklist.add("  ")
    assert list(blocklist.packages) == ["com.one", "com.Two"]  # names of apps are case-sensitive
    assert blocklist.remove("com.one")
    assert not blocklist.remove("com.one")
    assert list(blocklist.packages) == ["com.Two"]
    blocklist.reset()
    assert blocklist.packages == DEFAULT_BLOCKLIST
    blocklist = Blocklist(f"com.app{number}" for number in range(MAX_BLOCKED + 1))
    assert len(blocklist) == MAX_BLOCKED
    assert not blocklist.add("com.another")
    assert blocklist.add("com.app0")
