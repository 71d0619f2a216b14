import pytest

from runtimes.sim.disk import SimDisk
from svc_proto.api.runs.response_store import FILE, MAX_STORED, MAX_TEXT, ResponseStore
from svc_proto.basics import strict_json
from svc_proto.commands import Level, ReadConfig, WriteConfig
from svc_proto.engine.flow import Flow
from tests.api.harness import HOME, ApiHarness


def kept(book: ApiHarness) -> ResponseStore:
    return book.api.responses


def run(book: ApiHarness, flow: Flow[object]) -> object:
    (result,) = book.spawn(flow)
    return result


def session(book: ApiHarness, kind: str, name: str) -> object:
    return run(book, kept(book).session_of(kind, name))


def response(number: int, text: str = "") -> dict[str, object]:
    return {"id": f"resp_{number}", "object": "response", "text": text}


def reopened(book: ApiHarness) -> ApiHarness:
    other = ApiHarness()
    other.host.disk = book.disk
    return other


def test_a_response_survives_a_restart() -> None:
    book = ApiHarness()
    assert run(book, kept(book).get("resp_1")) is None
    run(book, kept(book).put(response(1, "ä"), "s-1", "talk"))
    again = reopened(book)
    assert run(again, kept(again).get("resp_1")) == response(1, "ä")
    assert session(again, "response", "resp_1") == "s-1"
    assert session(again, "conversation", "talk") == "s-1"
    assert session(again, "response", "resp_2") is None
    assert session(again, "conversation", "other") is None
    assert run(again, kept(again).delete("resp_1")) is True
    assert run(again, kept(again).delete("resp_1")) is False
    assert session(again, "response", "resp_1") is None
    once_more = reopened(again)
    assert run(once_more, kept(once_more).get("resp_1")) is None


def test_least_recently_used_is_evicted_first() -> None:
    book = ApiHarness()
    store = kept(book)
    for number in range(MAX_STORED):
        run(book, store.put(response(number), "s", f"c{number}"))
    assert session(book, "conversation", "c0") == "s"
    run(book, store.get("resp_0"))
    run(book, store.put(response(MAX_STORED), "s", "c0"))
    run(book, store.put(response(MAX_STORED + 1), "s", "new"))
    assert run(book, store.get("resp_0")) is not None
    for dropped in ("resp_1", "resp_2"):
        assert (run(book, store.get(dropped)), session(book, "response", dropped)) == (None, None)
    assert session(book, "conversation", "c0") == "s"
    assert session(book, "conversation", "c1") is None
    again = reopened(book)
    run(again, kept(again).put(response(200), "s", None))  # before the file is read
    found = [run(again, kept(again).get(each)) is not None for each in ("resp_200", "resp_3", "resp_4")]
    assert found == [True, False, True]


def test_all_together_have_a_size() -> None:
    book = ApiHarness()
    store = kept(book)
    run(book, store.put(response(1), "s", None))
    run(book, store.put(response(2, "x" * (MAX_TEXT - 200)), "s", None))
    assert run(book, store.get("resp_1")) is not None
    run(book, store.put(response(3, "x" * 200), "s", None))
    assert run(book, store.get("resp_2")) is None  # the least recently used one was evicted
    run(book, store.put(response(4, "x" * MAX_TEXT), "s", None))
    assert [run(book, store.get(f"resp_{number}")) for number in (1, 3, 4)] == [None, None, None]
    left = MAX_TEXT - len(strict_json.dumps(response(5)))
    for size, fits in ((left, True), (left + 1, False)):
        run(book, store.put(response(5, "x" * size), "s", None))
        assert (run(book, store.get("resp_5")) is not None) is fits


@pytest.mark.parametrize(
    "text", ["[", "[]", "{}", '{"responses":[["a"]],"conversations":[]}', '{"responses":[["a",1,"b"]]}', "7"]
)
def test_unusable_file_counts_as_empty(text: str) -> None:
    book = ApiHarness()
    book.disk.put(f"{HOME}/{FILE}", text.encode())
    assert run(book, kept(book).get("a")) is None
    assert "responses not read" in book.events(Level.WARNING)
    run(book, kept(book).put(response(1), "s", None))
    assert run(book, kept(book).get("resp_1")) is not None


def test_failed_write_is_logged() -> None:
    book = ApiHarness()
    book.refuse = (WriteConfig,)
    run(book, kept(book).put(response(1), "s", None))
    assert book.events(Level.WARNING) == ["responses not stored"]
    assert run(book, kept(book).get("resp_1")) is not None


def test_temporarily_unreadable_file_loses_nothing() -> None:
    before = ApiHarness()
    run(before, kept(before).put(response(1), "s-1", "talk"))
    book = reopened(before)
    book.refuse = (ReadConfig,)
    for unknown in ({"previous_response_id": "resp_1"}, {"conversation": "talk"}):
        refused = book.request("POST", "/v1/responses", {"input": "hi", **unknown})
        assert (refused.status, refused.json["error"]["code"]) == (503, "session_db_unavailable")
    assert book.request("GET", "/v1/responses/resp_1").status == 503
    assert book.request("DELETE", "/v1/responses/resp_1").status == 503
    call = book.call("POST", "/v1/responses", {"input": "hi"})
    book.after(5.0)
    new = call.result.json["id"]
    assert book.request("GET", f"/v1/responses/{new}").status == 200
    run(book, kept(book).put(response(3), "s-3", "talk"))
    assert {"responses not read", "responses not stored"} == {*book.events(Level.WARNING)}
    book.refuse = ()
    assert book.request("GET", "/v1/responses/resp_1").json == response(1)
    assert session(book, "conversation", "talk") == "s-3"  # newer than the file
    run(book, kept(book).put(response(2), "s-2", None))
    after = reopened(book)
    assert [after.request("GET", f"/v1/responses/{each}").status for each in ("resp_1", new, "resp_2")] == [200] * 3


def test_response_is_found_during_the_reload() -> None:
    book = ApiHarness()
    book.refuse = (ReadConfig,)
    run(book, kept(book).load(required=False))
    book.refuse, book.hold = (), (ReadConfig,)
    keeping = book.spawn(kept(book).put(response(1), "s-1", "talk"))
    found = book.spawn(kept(book).get("resp_1"))
    sessions = [book.spawn(kept(book).session_of(*each)) for each in (("response", "resp_1"), ("conversation", "talk"))]
    book.hold = ()
    book.release()
    assert (keeping, found, sessions) == ([None], [response(1)], [["s-1"], ["s-1"]])


def test_a_client_that_disconnects_while_the_file_is_read_leaves_the_store_usable() -> None:
    book = ApiHarness()
    book.hold = (ReadConfig,)
    book.call("GET", "/v1/responses/resp_1").vanish()
    book.hold = ()
    book.release()
    assert book.request("GET", "/v1/responses/resp_1").status == 404


def test_file_is_loaded_once() -> None:
    book = ApiHarness()
    assert isinstance(book.disk, SimDisk)
    book.hold = (ReadConfig,)
    results = [book.spawn(kept(book).get("resp_1")) for _ in range(3)]
    assert results == [[], [], []]
    book.hold = ()
    book.release()
    assert results == [[None], [None], [None]]
    assert len([each for each in book.commands if isinstance(each, ReadConfig)]) == 1
