from runtimes.store.store_service import Store
from svc_proto.api.chat.records import StoredResponse
from svc_proto.api.chat.store_requests import DeleteResponse, FindResponse, SaveResponse
from tests.runtimes.store.chat_stores import execute


def keep(store: Store, name: str, at: float, text: str = "x", *, kind: str = "response", **more: int) -> None:
    limits = {"most": 3, "size": 100, **more}
    assert execute(store, SaveResponse(kind=kind, name=name, session_id=f"s {name}", text=text, now=at, **limits))


def find(store: Store, name: str, at: float, *, kind: str = "response") -> StoredResponse | None:
    return execute(store, FindResponse(kind=kind, name=name, now=at))


def there(store: Store, *names: str) -> list[str]:
    return [name for name in names if find(store, name, 0.0)]


def test_a_response_is_saved_found_and_deleted(store: Store) -> None:
    assert find(store, "a", 1.0) is None
    keep(store, "a", 1.0, "früher \x00 🍵")
    keep(store, "a", 1.0, "", kind="conversation")
    kept = find(store, "a", 1.0)
    assert kept is not None
    assert (kept.session_id, kept.text.replace("\ufffd", "\x00")) == ("s a", "früher \x00 🍵")
    keep(store, "a", 2.0, "again")
    assert find(store, "a", 2.0) == StoredResponse(session_id="s a", text="again")
    assert execute(store, DeleteResponse(name="a"))
    assert not execute(store, DeleteResponse(name="a"))
    assert find(store, "a", 3.0) is None
    assert find(store, "a", 3.0, kind="conversation") is not None


def test_the_least_recently_used_response_is_dropped_first(store: Store) -> None:
    for number, name in enumerate("abc"):
        keep(store, name, float(number))
    keep(store, "a", 0.0, kind="conversation")  # kinds are counted separately
    assert find(store, "a", 5.0)
    keep(store, "d", 6.0)
    assert there(store, *"abcd") == ["a", "c", "d"]
    keep(store, "c", 0.0)  # by a clock that was set back
    assert there(store, *"abcd") == ["a", "c", "d"]
    assert find(store, "a", 0.0, kind="conversation")


def test_the_total_size_is_limited(store: Store) -> None:
    keep(store, "a", 1.0, "x" * 40)
    keep(store, "b", 2.0, "x" * 60)
    assert there(store, *"ab") == ["a", "b"]
    keep(store, "c", 3.0, "x" * 41)
    assert there(store, *"abc") == ["c"]
    keep(store, "d", 4.0, "x" * 101)
    assert there(store, *"abcd") == []
