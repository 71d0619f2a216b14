import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Level, ReadConfig, WriteConfig
from svc_proto.facts import FailureKind, Started
from svc_proto.relay import session_records
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession
from tests.relay.harness import PairedPhone, RelayHarness
from tests.support.core_harness import HOME

TOMBSTONES = f"{HOME}/{session_records.TOMBSTONES}"
BACK = "a restart before that would make it valid again"


def restarted(book: RelayHarness) -> RelayHarness:
    return RelayHarness(records=book.store.values(), files=book.files)


def revoked(book: RelayHarness, name: str = "Phone") -> PairedPhone:
    """Pair a phone and revoke its session while the store refuses to delete it."""
    paired = book.pair(device_name=name)
    book.refuse = (*book.refuse, DeleteSession)
    answer = book.request("DELETE", f"/sessions/{paired.prefix}")
    assert (answer.status, answer.json["code"]) == (500, "store_failed")
    return paired


def status(book: RelayHarness, paired: PairedPhone) -> int:
    return book.request("GET", "/sessions", token=paired.token).status


def test_a_revoked_session_is_refused_after_a_restart_with_any_store(book: RelayHarness) -> None:
    other = book.pair()
    paired = revoked(book)
    assert book.files[TOMBSTONES] == f"{sha256_hex(paired.token)}\n".encode()
    assert len(book.store) == 2
    again = restarted(book)
    assert (status(again, paired), status(again, other)) == (401, 200)
    assert again.websocket().auth(session_token=paired.token)["type"] == "auth.fail"
    assert list(again.store) == [sha256_hex(other.token)]  # erased at the start
    assert again.files[TOMBSTONES] == b""
    assert status(restarted(again), paired) == 401
    book = RelayHarness()
    paired = revoked(book)
    again = RelayHarness(records=book.store.values(), files=book.files, started=False)
    again.refuse = (DeleteSession,)
    again.feed(Started())
    assert status(again, paired) == 401
    assert again.request("DELETE", f"/sessions/{paired.prefix}").status == 500
    assert again.files[TOMBSTONES] == book.files[TOMBSTONES]
    again.refuse = ()
    again.after(60)
    assert (again.store, again.files[TOMBSTONES]) == ({}, b"")


def test_sessions_are_stored_without_tokens_and_loaded_in_pages(
    book: RelayHarness, paired: PairedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(book.store) == 1
    assert paired.token not in repr(book.store)
    phones = [book.pair() for _ in range(3)]
    monkeypatch.setattr(session_records, "SESSIONS_PAGE", 1)
    again = restarted(book)
    assert [status(again, phone) for phone in phones] == [200] * 3


def test_tombstones_are_removed_one_by_one_and_their_bad_records_skipped(book: RelayHarness) -> None:
    first, second = revoked(book, "First"), revoked(book, "Second")
    assert book.files[TOMBSTONES].decode().split() == [sha256_hex(first.token), sha256_hex(second.token)]
    book.refuse = ()
    assert book.request("DELETE", f"/sessions/{first.prefix}").status == 200
    assert book.files[TOMBSTONES].decode().split() == [sha256_hex(second.token)]
    book.stop()
    assert (book.store, book.files[TOMBSTONES]) == ({}, b"")
    book = RelayHarness()
    paired = revoked(book)
    (record,) = book.store.values()
    again = RelayHarness(records=[{**record, "created_at": None}], files=book.files)
    assert again.events(Level.WARNING) == ["stored session skipped"]
    assert status(again, paired) == 401


def test_failed_and_stale_tombstones(book: RelayHarness) -> None:
    book.refuse = (WriteConfig,)
    paired = revoked(book)
    assert book.events(Level.ERROR) == ["session not erased", "revoked session would be back after a restart"]
    assert BACK in book.request("DELETE", f"/sessions/{paired.prefix}").json["error"]
    assert status(restarted(book), paired) == 200
    book.refuse = (DeleteSession,)  # the home is writable again: the next attempt succeeds
    book.after(60)
    assert BACK not in book.request("DELETE", f"/sessions/{paired.prefix}").json["error"]
    assert status(restarted(book), paired) == 401
    book = RelayHarness()
    paired = revoked(book)
    book.refuse = (WriteConfig,)
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 200
    assert book.files[TOMBSTONES]  # stale but harmless: the record is gone
    assert book.events(Level.ERROR) == ["session not erased"]
    again = restarted(book)
    assert again.ready
    assert status(again, again.pair()) == 200


@pytest.mark.parametrize("fails", [ReadConfig, DeleteSession])
def test_unreadable_tombstones_end_the_process(book: RelayHarness, fails: type[object]) -> None:
    paired = revoked(book)
    again = RelayHarness(records=book.store.values(), files=book.files, started=False)
    again.refuse = (fails,)
    again.feed(Started())
    if fails is ReadConfig:
        assert [exit_.code for exit_ in again.exits] == [1]
    else:
        assert status(again, paired) == 401


def test_sessions_that_are_not_stored_are_kept_in_memory(book: RelayHarness, paired: PairedPhone) -> None:
    (session,) = book.relay.sessions.find(paired.prefix, book.now)
    assert book.relay.records.is_stored(session)
    book.refuse = (SaveSession,)
    assert book.request("PATCH", f"/sessions/{paired.prefix}", {"ttl_seconds": 60}).status == 500
    assert not book.relay.records.is_stored(session)
    book.refuse = ()
    assert book.request("PATCH", f"/sessions/{paired.prefix}", {"ttl_seconds": 60}).status == 200
    assert book.relay.records.is_stored(session)
    book = RelayHarness(started=False)
    book.refuse, book.refuse_with = (LoadSessions, SaveSession, DeleteSession), FailureKind.UNSUPPORTED
    book.feed(Started())
    assert book.events(Level.WARNING) == ["no store: sessions end with this process"]
    paired = book.pair()
    assert status(book, paired) == 200
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 200
    assert status(book, paired) == 401
    assert book.events(Level.ERROR) == []


def test_shared_tombstones_of_other_relays_are_kept() -> None:
    config = RelayConfig(home=HOME, shares_home=True, local_trust=LocalTrustPolicy.ADDRESS)
    book = RelayHarness(config)
    paired = [book.pair() for _ in range(2)]
    theirs = f"{'a' * 64}\n"
    book.disk.put(TOMBSTONES, theirs.encode())
    book.refuse = (DeleteSession,)
    ours = [f"{sha256_hex(one.token)}\n" for one in paired]
    book.request("DELETE", f"/sessions/{paired[0].prefix}")
    assert book.files[TOMBSTONES].decode() == theirs + ours[0]
    book.request("DELETE", f"/sessions/{paired[1].prefix}")
    assert book.files[TOMBSTONES].decode() == theirs + ours[0] + ours[1]
    book.disk.put(TOMBSTONES, theirs.encode())  # two nodes wrote at once, and this one was first
    book.after(60)
    assert book.files[TOMBSTONES].decode() == theirs + ours[0] + ours[1]
    book.refuse = ()
    book.after(60)
    assert (book.store, book.files[TOMBSTONES].decode()) == ({}, theirs)
    book.refuse = (DeleteSession, ReadConfig)
    unknown = book.pair()
    assert BACK in book.request("DELETE", f"/sessions/{unknown.prefix}").json["error"]
    assert book.files[TOMBSTONES].decode() == theirs  # a file that could not be read is not overwritten
    book.refuse = ()
    book.after(60)
    book.disk.remove(TOMBSTONES)
    book.refuse = (DeleteSession,)
    third = book.pair()
    book.request("DELETE", f"/sessions/{third.prefix}")
    assert book.files[TOMBSTONES].decode() == f"{sha256_hex(third.token)}\n"
