import pytest

from runtimes.store.store_service import Store
from svc_proto.agent.interface import StoredPicture
from svc_proto.api.chat.store_requests import DeleteChat, FindPicture, ForkChat, SavePicture, TruncateMessages
from tests.runtimes.store.chat_stores import add, chat, create, execute, message

MOST, SIZE = 3, 100


@pytest.fixture(autouse=True)
def _chats(store: Store) -> None:
    create(store, chat("c"), chat("d"))


def save(store: Store, token: str, at: float, data: bytes = b"x", *, of: str = "c") -> bool:
    picture = StoredPicture(token=token, kind="image/png", data=data)
    return execute(store, SavePicture(session_id=of, picture=picture, now=at, most=MOST, size=SIZE))


def stored(store: Store, session_id: str = "c") -> str:
    return "".join(
        token for token in "abcdefgh" if execute(store, FindPicture(session_id=session_id, token=token)) is not None
    )


def test_a_picture_is_found_in_its_chat(store: Store) -> None:
    data = bytes(range(100))
    assert save(store, "a", 1.0, b"old")
    assert save(store, "a", 2.0, data)  # replaced
    assert execute(store, FindPicture(session_id="c", token="a")) == StoredPicture(
        token="a", kind="image/png", data=data
    )
    assert stored(store, "d") == ""
    assert save(store, "a", 1.0, of="none") is False


def test_the_newest_pictures_of_a_chat_stay(store: Store) -> None:
    save(store, "h", 0.0, of="d")
    for at, token in enumerate("abcd"):
        save(store, token, float(at))
    assert (stored(store), stored(store, "d")) == ("bcd", "h")
    save(store, "a", 3.0)  # as old as the newest
    assert stored(store) == "acd"


def test_the_bytes_of_all_chats_are_limited(store: Store) -> None:
    save(store, "a", 1.0, b"x" * 40, of="d")
    save(store, "b", 2.0, b"x" * 40)
    save(store, "c", 3.0, b"x" * 60)
    assert (stored(store), stored(store, "d")) == ("bc", "")
    save(store, "d", 4.0, b"x" * 101)
    assert stored(store) == "bc"


def test_pictures_share_the_life_of_their_chat(store: Store) -> None:
    add(store, message("m"), message("n", "://a", role="tool"), message("o"), message("p", "://b"))
    for token in "abc":
        save(store, token, 1.0)
    assert execute(store, ForkChat(source="c", session=chat("f"), now=2.0))
    assert execute(store, TruncateMessages(session_id="c", keep=3, now=3.0))
    assert (stored(store), stored(store, "f")) == ("ac", "abc")
    assert execute(store, TruncateMessages(session_id="c", keep=1, now=4.0))
    assert stored(store) == "c"
    assert execute(store, DeleteChat(id="c"))
    create(store, chat("c"))
    assert (stored(store), stored(store, "f")) == ("", "abc")
