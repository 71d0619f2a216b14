import pytest

from svc_proto.basics.moment import Moment
from svc_proto.machines.media_registry import MediaEntry, MediaRegistry, MediaState, base_name
from tests.support.playbook import counting_entropy

NOW = Moment(100.0, 1_800_000_000.0)
TTL = 86_400.0


def filled(count: int, cap: int = 500) -> tuple[MediaRegistry, list[MediaEntry]]:
    registry, entropy = MediaRegistry(ttl=TTL, cap=cap), counting_entropy()
    entries = [
        registry.register(
            NOW, entropy, path=f"/tmp/{number}.png", content_type="image/png", file_name=None, size=number
        )[0]
        for number in range(count)
    ]
    return registry, entries


def test_entries_expire_exactly_after_their_ttl() -> None:
    registry, (entry,) = filled(1)
    assert registry.lookup(entry.token, NOW.at(NOW.mono + TTL - 0.001)) is entry
    assert registry.next_expiry() == NOW.mono + TTL
    late = NOW.at(NOW.mono + TTL)
    assert registry.lookup(entry.token, late) is None
    assert registry.records(late) == []
    assert registry.records(late, include_expired=True)[0]["is_expired"] is True
    assert registry.expire_due(late) == [entry]
    assert entry.state is MediaState.EXPIRED
    assert len(registry) == 0
    registry, (entry,) = filled(1)
    later = NOW.at(NOW.mono + TTL + 1)
    _, gone = registry.register(
        later, lambda n: b"\xff" * n, path="/tmp/x", content_type="a/b", file_name=None, size=1, owned=True
    )
    assert gone == [entry]


def test_the_least_recently_used_entry_is_evicted_at_the_cap() -> None:
    registry, entries = filled(500)
    entropy = counting_entropy()
    for _ in range(600):
        entropy(16)
    _, gone = registry.register(NOW, entropy, path="/tmp/new", content_type="a/b", file_name="n", size=1)
    assert gone == [entries[0]]
    assert entries[0].state is MediaState.EVICTED
    assert registry.lookup(entries[0].token, NOW) is None
    assert len(registry) == 500
    registry, entries = filled(3, cap=3)
    assert registry.lookup(entries[0].token, NOW.at(101.0)) is entries[0]
    assert entries[0].last_accessed == NOW.wall + 1.0
    _, gone = registry.register(NOW, lambda n: b"\xff" * n, path="/tmp/new", content_type="a/b", file_name=None, size=1)
    assert gone == [entries[1]]


def test_the_inspector_sees_a_base_name_and_no_path() -> None:
    registry, _ = filled(1)
    registry.register(NOW.at(101.0), bytes, path="/b", content_type="a/b", file_name=None, size=1)
    newest, record = registry.records(NOW)
    assert newest["file_name"] == "b"
    assert record["file_name"] == "0.png"
    assert "/tmp" not in repr(record)
    assert record["expires_at"] == NOW.wall + TTL


@pytest.mark.parametrize(("path", "name"), [("/a/b.png", "b.png"), ("C:\\x\\y.png", "y.png"), ("/a/", "a"), ("z", "z")])
def test_base_name(path: str, name: str) -> None:
    assert base_name(path) == name
