"""Sessions and messages over HTTP (wire api 3)."""

from typing import Any

import pytest

from svc_proto.api.chat import store_requests
from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.commands import Level, StoreRequest
from tests.api.harness import START, ApiHarness
from tests.api.scripted_agent import TurnHarness

UNKNOWN = "5f0d6c1e-2b57-4b53-9a0e-0f6f0c3f9a11"


@pytest.fixture
def book() -> ApiHarness:
    return ApiHarness()


def fill(book: ApiHarness, session_id: str, *texts: str, role: str = "user") -> None:
    """Store these texts as messages of a session."""
    members: Any = {"session_id": session_id, "role": role, "timestamp": book.now.wall}
    rows = tuple(Message(id=f"{session_id}-{text}", content=text, **members) for text in texts)
    assert book.store.execute(store_requests.AddMessages(session_id=session_id, messages=rows)) is True


def error(answer: Any) -> tuple[int, str | None]:
    return answer.status, answer.json["error"]["code"]


def test_an_empty_session(book: ApiHarness) -> None:
    answer = book.request("POST", "/api/sessions", {})
    assert answer.status == 201
    body = answer.json
    assert body["object"] == "svc.session"
    assert len(body["id"]) == 36
    assert (body["title"], body["message_count"], body["preview"]) == (None, 0, None)
    assert (body["created_at"], body["started_at"]) == ("2027-01-15T08:00:00Z", START.wall)
    assert body["model"] == "svc-agent"
    assert body["source"] == "api_server"
    assert {name: body[name] for name in body["session"]} == body["session"]
    assert book.request("GET", f"/api/sessions/{body['id']}").json == body


def test_session_with_all_members(book: ApiHarness) -> None:
    wanted = {"id": "mine", "title": " Trip\n plan ", "model": "fast", "profile": "any", "system_prompt": "be brief"}
    answer = book.request("POST", "/api/sessions", {**wanted, "unknown": [1]})
    assert answer.status == 201
    assert (answer.json["id"], answer.json["title"], answer.json["model"]) == ("mine", "Trip plan", "fast")
    found = book.store.execute(store_requests.GetChat(id="mine"))
    assert isinstance(found, ChatSession)
    assert found.system_prompt == "be brief"
    assert error(book.request("POST", "/api/sessions", wanted)) == (409, "session_exists")
    assert error(book.request("POST", "/api/sessions", {"session_id": "mine"})) == (409, "session_exists")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"title": 7}, "invalid_title"),
        ({"id": "../x"}, "invalid_session_id"),
        ({"session_id": 7}, "invalid_session_id"),
        ({"system_prompt": ["x"]}, "invalid_system_prompt"),
        ({"model": 7}, None),
        ({"model": "a\nb"}, None),
        ({"model": "x" * 257}, None),
    ],
)
def test_bad_sessions_are_not_made(book: ApiHarness, body: object, code: str | None) -> None:
    answer = book.request("POST", "/api/sessions", body)
    assert error(answer) == (400, code)
    assert book.request("GET", "/api/sessions").json["total"] == 0
    assert not [query for query in book.queries() if isinstance(query, store_requests.CreateChat)]


@pytest.mark.parametrize("body", [{"system_prompt": ""}, {"system_prompt": None}, {"model": None, "title": None}])
def test_values_that_count_as_absent(book: ApiHarness, body: dict[str, object]) -> None:
    answer = book.request("POST", "/api/sessions", body)
    assert (answer.status, answer.json["has_system_prompt"], answer.json["model"]) == (201, False, "svc-agent")
    assert book.request("POST", "/api/sessions", {"model": "x" * 256}).json["model"] == "x" * 256  # the longest name


def test_pages(book: ApiHarness) -> None:
    ids = []
    for _ in range(5):
        ids.append(book.session())
        book.after(1.0)
    ids.reverse()  # latest activity first
    answer = book.request("GET", "/api/sessions?limit=2").json
    assert [row["id"] for row in answer["sessions"]] == ids[:2]
    assert (answer["object"], answer["limit"], answer["offset"]) == ("list", 2, 0)
    assert (answer["has_more"], answer["total"]) == (True, 5)
    answer = book.request("GET", "/api/sessions?limit=2&offset=4").json
    assert [row["id"] for row in answer["sessions"]] == ids[4:]
    assert answer["has_more"] is False
    answer = book.request("GET", "/api/sessions?limit=2&offset=99").json
    assert (answer["sessions"], answer["has_more"], answer["total"]) == ([], False, 5)
    fill(book, ids[4], "now")
    assert book.request("GET", "/api/sessions").json["sessions"][0]["preview"] == "now"


@pytest.mark.parametrize(
    ("query", "limit", "offset"),
    [
        ("", 100_000, 0),
        ("source=api_server", 100_000, 0),
        ("offset=3", 50, 3),
        ("limit=7&offset=3", 7, 3),
        ("limit=200", 200, 0),
        ("limit=201", 200, 0),
        ("limit=99999999999999999999", 200, 0),
        ("limit=0", 50, 0),
        ("limit=-1&offset=-1", 50, 0),
        ("limit=x&offset=1.5", 50, 0),
        ("limit=&offset=", 50, 0),
        ("limit=%C2%B2", 50, 0),  # a superscript two is not a digit
        ("limit=1&limit=2&profile=x", 1, 0),
        ("offset=1000000000000000", 50, 10**15),
        ("offset=9007199254740993", 50, 2**53 - 1),
        (f"limit={'0' * 30}7&offset={'9' * 5_000}", 7, 2**53 - 1),
    ],
)
def test_limits_are_lenient(book: ApiHarness, query: str, limit: int, offset: int) -> None:
    answer = book.request("GET", f"/api/sessions?{query}")
    assert answer.status == 200
    assert (answer.json["limit"], answer.json["offset"]) == (limit, offset)


def test_hidden_sessions(book: ApiHarness) -> None:
    kept, archived = book.session(), book.session()
    book.request("PATCH", f"/api/sessions/{archived}", {"archived": True})

    def ids(query: str = "") -> list[str]:
        return [row["id"] for row in book.request("GET", f"/api/sessions?{query}").json["sessions"]]

    assert ids() == [kept]
    assert sorted(ids("include_archived=1")) == sorted([kept, archived])
    assert ids("include_archived=no") == [kept]
    assert ids("source=api_server") == [kept]
    assert ids("source=telegram") == []
    assert ids("include_children=TRUE") == [kept]


def test_a_title_is_changed_and_cleared(book: ApiHarness) -> None:
    identity = book.session()
    book.after(5.0)
    answer = book.request("PATCH", f"/api/sessions/{identity}", {"title": " New\ttitle "})
    assert answer.status == 200
    assert (answer.json["title"], answer.json["session"]["title"]) == ("New title", "New title")
    assert answer.json["updated_at"] == "2027-01-15T08:00:05Z"
    for blank in (None, "  "):
        book.request("PATCH", f"/api/sessions/{identity}", {"title": "x"})
        assert book.request("PATCH", f"/api/sessions/{identity}", {"title": blank}).json["title"] is None


def test_the_first_end_reason_stays(book: ApiHarness) -> None:
    identity = book.session()
    first = book.request("PATCH", f"/api/sessions/{identity}", {"end_reason": "done"}).json
    assert (first["end_reason"], first["ended_at"]) == ("done", START.wall)
    book.after(1.0)
    second = book.request("PATCH", f"/api/sessions/{identity}", {"end_reason": "later", "title": "t"}).json
    assert (second["end_reason"], second["ended_at"], second["title"]) == ("done", START.wall, "t")


@pytest.mark.parametrize(("given", "kept"), [(True, True), (False, False), (1, True), (0, False)])
@pytest.mark.parametrize("name", ["pinned", "archived"])
def test_flags(book: ApiHarness, name: str, given: object, kept: bool) -> None:
    identity = book.session()
    assert book.request("PATCH", f"/api/sessions/{identity}", {name: given}).json[name] is kept


@pytest.mark.parametrize("body", [{}, {"end_reason": None}])
def test_nothing_to_change(book: ApiHarness, body: dict[str, object]) -> None:
    identity = book.session()
    assert book.request("PATCH", f"/api/sessions/{identity}", body).json["id"] == identity
    assert error(book.request("PATCH", f"/api/sessions/{UNKNOWN}", body)) == (404, "session_not_found")
    assert not [query for query in book.queries() if isinstance(query, store_requests.UpdateChat)]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": "x"}, "unsupported_session_field"),
        ({"title": "t", "id": "x"}, "unsupported_session_field"),
        ({"title": 7}, "invalid_title"),
        ({"pinned": None}, None),
        ({"archived": 2}, None),
        ({"pinned": "true"}, None),
        ({"end_reason": 7}, None),
        ({"end_reason": "x" * 257}, None),
    ],
)
def test_bad_changes_change_nothing(book: ApiHarness, body: object, code: str | None) -> None:
    identity = book.session(title="Before")
    before = book.request("GET", f"/api/sessions/{identity}").json
    assert error(book.request("PATCH", f"/api/sessions/{identity}", body)) == (400, code)
    assert book.request("GET", f"/api/sessions/{identity}").json == before


def test_delete(book: ApiHarness) -> None:
    identity = book.session()
    fill(book, identity, "Hi")
    answer = book.request("DELETE", f"/api/sessions/{identity}")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers.get(b"content-length") is None
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/messages")):
        assert error(book.request(method, f"/api/sessions/{identity}{path}")) == (404, "session_not_found")
    assert "session deleted" in book.events(Level.INFO)


@pytest.mark.parametrize(
    ("held", "method", "path", "body"),
    [(store_requests.DeleteChat, "DELETE", "", None), (store_requests.ForkChat, "POST", "/fork", {})],
)
def test_session_deleted_during_the_request(book: ApiHarness, held: type, method: str, path: str, body: object) -> None:
    identity = book.session()
    book.hold = (held,)
    call = book.call(method, f"/api/sessions/{identity}{path}", body)
    book.store.execute(store_requests.DeleteChat(id=identity))
    book.hold = ()
    book.release()
    assert error(call.result) == (404, "session_not_found")


@pytest.mark.parametrize(
    ("query", "texts", "pagination"),
    [
        ("limit=2", "01", (2, 0, "oldest", 2)),
        ("limit=2&offset=3&order=oldest", "34", (2, 3, "oldest", 2)),
        ("limit=2&order=latest", "34", (2, 0, "latest", 2)),
        ("limit=2&offset=1&order=latest", "23", (2, 1, "latest", 2)),
        ("offset=4", "4", (100_000, 4, "oldest", 1)),
        ("limit=9&offset=9", "", (9, 9, "oldest", 0)),
        ("limit=999999999", "01234", (100_000, 0, "oldest", 5)),
        ("limit=junk&order=junk", "01234", None),
        ("order=latest", "01234", None),
    ],
)
def test_pages_of_messages(
    book: ApiHarness, query: str, texts: str, pagination: tuple[int, int, str, int] | None
) -> None:
    identity = book.session()
    fill(book, identity, *"01234")
    body = book.request("GET", f"/api/sessions/{identity}/messages?{query}").json
    assert "".join(row["content"] for row in body["messages"]) == texts
    assert [row["row_id"] for row in body["messages"]] == [int(text) + 1 for text in texts]
    expected = pagination and dict(zip(("limit", "offset", "order", "returned"), pagination, strict=True))
    assert body.get("pagination") == expected


def test_a_fork(book: ApiHarness) -> None:
    parent = book.session(title="Trip", system_prompt="x", model="m")
    fill(book, parent, "one", "two")
    answer = book.request("POST", f"/api/sessions/{parent}/fork", {})
    assert answer.status == 201
    body = answer.json
    assert (body["title"], body["parent_session_id"], body["model"]) == ("Trip #2", parent, "m")
    assert (body["has_system_prompt"], body["message_count"]) == (True, 2)
    assert body["session"]["id"] == body["id"] != parent
    assert [row["content"] for row in book.messages(body["id"])] == ["one", "two"]
    assert book.request("GET", f"/api/sessions/{parent}").json["end_reason"] == "branched"
    again = book.request("POST", f"/api/sessions/{parent}/fork", {"title": "", "id": "mine"}).json
    assert (again["id"], again["title"]) == ("mine", "Trip #3")
    named = book.request("POST", f"/api/sessions/{parent}/fork", {"title": "Other"}).json
    assert named["title"] == "Other"
    assert error(book.request("POST", f"/api/sessions/{parent}/fork", {"id": "mine"})) == (409, "session_exists")
    untitled = book.session()
    total = book.request("GET", "/api/sessions").json["total"]
    for bad in ({"title": 7}, {"id": ".."}):
        assert book.request("POST", f"/api/sessions/{untitled}/fork", bad).status == 400
    assert book.request("GET", "/api/sessions").json["total"] == total
    assert book.request("POST", f"/api/sessions/{untitled}/fork", {}).json["title"] is None


def forked_at_once(book: ApiHarness, *forks: tuple[str, dict[str, str]]) -> list[Any]:
    """Send forks that reach each step of the store at the same time; return the answers."""
    book.hold = (store_requests.GetChat,)
    calls = [book.call("POST", f"/api/sessions/{source}/fork", body) for source, body in forks]
    for held in ((store_requests.ListTitles,), (store_requests.ForkChat,), ()):
        book.hold = held
        book.release()
    return [call.result for call in calls]


def test_forks_at_once_have_a_number_each(book: ApiHarness) -> None:
    trip = book.session(title="Trip")
    other = str(book.request("POST", f"/api/sessions/{trip}/fork", {}).json["id"])
    answers = forked_at_once(book, (trip, {}), (other, {}), (trip, {}))
    assert [answer.json["title"] for answer in answers] == ["Trip #3", "Trip #4", "Trip #5"]


def test_forks_of_a_long_title_have_a_number_each(book: ApiHarness) -> None:
    source = book.session(title="x" * 100)
    made = [book.request("POST", f"/api/sessions/{source}/fork", {}).json["title"] for _ in range(12)]
    assert made[:3] == [f"{'x' * 97} #{number}" for number in (2, 3, 4)]
    assert made[7:10] == [f"{'x' * 97} #9", f"{'x' * 96} #2", f"{'x' * 96} #3"]  # no fork of the shorter title existed
    assert len({*made}) == 12


def test_failed_fork_does_not_block_another(book: ApiHarness) -> None:
    trip = book.session(title="Trip")
    taken, made = forked_at_once(book, (trip, {"id": trip}), (trip, {}))
    assert error(taken) == (409, "session_exists")
    assert made.json["title"] == "Trip #2"
    book.refuse = (store_requests.ForkChat,)
    assert book.request("POST", f"/api/sessions/{trip}/fork", {}).status == 503
    book.refuse = ()
    assert book.request("POST", f"/api/sessions/{trip}/fork", {}).json["title"] == "Trip #3"


def test_search(book: ApiHarness) -> None:
    identity = book.session(title="Trip")
    parts = ({"type": "text", "text": "look at this"}, {"type": "image_url", "image_url": {"url": "data:image/png,"}})
    row = Message(id="p", session_id=identity, role="user", content=parts, timestamp=1.0)
    assert book.store.execute(store_requests.AddMessages(session_id=identity, messages=(row,)))
    fill(book, identity, "in the mountains", "x" * 300)
    answer = book.request("GET", "/api/sessions/search?q=mountains").json
    assert (answer["query"], answer["count"]) == ("mountains", 1)
    (hit,) = answer["results"]
    assert (hit["session_id"], hit["id"]) == (identity, f"{identity}-in the mountains")
    assert (hit["role"], hit["source"], hit["model"]) == ("user", "api_server", "svc-agent")
    assert (hit["timestamp"], hit["session_started"], hit["tool_name"]) == (START.wall, START.wall, None)
    assert hit["context"][0] == {"role": "user", "content": "look at this"}
    assert max(len(row["content"]) for row in hit["context"]) <= 200
    assert book.request("GET", "/api/sessions/search?q=mountains&limit=0").json["count"] == 0
    assert book.request("GET", "/api/sessions/search?q=mountains&limit=500&offset=1").json["count"] == 0


@pytest.mark.parametrize("query", ["", "q=", "q=%20", "q=x&limit=-1", "q=x&offset=-1", "q=x&limit=y", "q=x&offset=1.0"])
def test_bad_searches(book: ApiHarness, query: str) -> None:
    assert error(book.request("GET", f"/api/sessions/search?{query}")) == (400, None)


FORK: tuple[str, str, object] = ("POST", "/fork", {})


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "", None), ("PATCH", "", {"title": "x"}), ("DELETE", "", None), ("GET", "/messages", None), FORK],
)
@pytest.mark.parametrize("identity", [UNKNOWN, "%2e%2e%2fx", "x" * 300, "%C3%A9"])
def test_unknown_sessions(book: ApiHarness, method: str, path: str, body: object, identity: str) -> None:
    answer = book.request(method, f"/api/sessions/{identity}{path}", body)
    assert error(answer) == (404, "session_not_found")
    assert answer.json["error"]["message"].startswith("No such session: ")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "", None), ("POST", "", {}), ("GET", "/x", None), ("DELETE", "/x", None), ("GET", "/search?q=x", None)],
)
def test_failing_store_gives_503(book: ApiHarness, method: str, path: str, body: object) -> None:
    book.refuse = (StoreRequest,)
    answer = book.request(method, f"/api/sessions{path}", body)
    assert error(answer) == (503, "session_db_unavailable")
    assert "store failed" in book.events(Level.ERROR)


def test_messages_are_removed_from_a_row_on(book: ApiHarness) -> None:
    identity = book.session()
    for words in ("/echo one", "/echo two"):
        assert book.request("POST", f"/api/sessions/{identity}/chat", {"message": words}).status == 200
    path = f"/api/sessions/{identity}/messages"
    rows = book.request("GET", path).json["messages"]
    users = [row["row_id"] for row in rows if row["role"] == "user"]
    answers = [row["row_id"] for row in rows if row["role"] == "assistant"]
    for wrong in (0, answers[0], rows[-1]["row_id"] + 1, "x"):
        assert error(book.request("DELETE", f"{path}?from_row={wrong}"))[0] == 400
    assert error(book.request("DELETE", path))[0] == 400
    assert error(book.request("DELETE", "/api/sessions/none/messages?from_row=1")) == (404, "session_not_found")
    call = book.call("POST", f"{path.removesuffix('messages')}chat/stream", {"message": "/count 1000"})
    book.after(1.0)
    assert book.request("DELETE", f"{path}?from_row={users[1]}").status == 204
    assert call.named_events()[-1][0] == "done"  # the turn was stopped first
    assert [row["content"] for row in book.request("GET", path).json["messages"]] == ["/echo one", "one"]
    assert book.request("DELETE", f"{path}?from_row=1").status == 204
    assert book.request("DELETE", f"{path}?from_row=1").status == 400  # the chat is empty


def test_row_zero_is_not_the_last_message() -> None:
    book = TurnHarness()
    session = book.session()
    book.chat(session)
    assert error(book.request("DELETE", f"/api/sessions/{session}/messages?from_row=0"))[0] == 400
    assert [row["role"] for row in book.messages(session)] == ["user"]
