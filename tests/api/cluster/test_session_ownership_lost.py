from typing import Any

import pytest

from svc_proto.agent.interface import TextDelta
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.api.cluster.session_ownership import ACQUIRE_TIMEOUT, POLL_INTERVAL, START_TIMEOUT
from svc_proto.api.gateway.compression import SHOWN
from svc_proto.cluster.leases import LEASE, TAKE, TAKEOVER_DELAY
from svc_proto.cluster.node import LEASE as NODE_LEASE
from svc_proto.commands import Ready
from svc_proto.facts import Started
from svc_proto.schema.json_object import JsonObject
from tests.api.cluster.test_session_ownership import again
from tests.api.cluster_harness import UNAVAILABLE, VIA, ApiClusterHarness, chatting_nodes, code, lease, redis_key
from tests.api.gateway_client import open_gateway
from tests.api.scripted_agent import call_of, names, streamed_text


def test_session_of_a_killed_node_is_taken_over_after_the_lease() -> None:
    book, session, _, _ = chatting_nodes("one")
    run = book.hand.turn.run_id
    hand = book.hand
    hand.store_calls(call_of())
    book.at(1)
    follower = book.call("GET", f"/v1/runs/{run}")
    blocking = book.call("POST", f"/api/sessions/{session}/chat", {"message": "two"})
    stream = book.chat(session, {"message": "three"})
    assert follower.result.status == 200
    book.kill(0)
    assert code(blocking) == UNAVAILABLE
    assert (stream.gone, names(stream)) == (True, [])
    assert code(book.call("GET", f"/v1/runs/{run}")) == (404, "run_not_found")  # as after a restart of a single process
    fresh = book.chat(session, {"message": "four"})
    book.after(LEASE - 0.1)
    assert book.turns == 1
    book.after(POLL_INTERVAL)
    assert names(fresh)[:2] == ["session.created", "run.started"]
    rows = book.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "user"]  # all reported messages are stored


def test_wait_for_a_hanging_node_ends_with_its_lease() -> None:
    book, session, _, _ = chatting_nodes()
    blocking = book.at(1).call("POST", f"/api/sessions/{session}/chat", {"message": "two"})
    book.members[0][0].alive = False
    book.after(NODE_LEASE + 0.5)
    assert code(blocking) == UNAVAILABLE


def test_session_with_a_stale_lease_is_unavailable() -> None:
    book = ApiClusterHarness()
    session = book.session()
    book.town.keys[redis_key(f"lease:{session}")] = b"absent http://127.0.0.1:1", 1e9
    call = book.chat(session)
    book.after(ACQUIRE_TIMEOUT - 0.1)
    assert call.answer is None
    book.after(POLL_INTERVAL)
    assert code(call) == UNAVAILABLE


def test_an_error_of_redis_refuses_a_turn() -> None:
    book = ApiClusterHarness()
    session = book.session()
    del book.town.scripts[TAKE]  # as for a user of Redis without the permission
    assert code(book.chat(session)) == UNAVAILABLE
    assert book.turns == 0


def test_forwarded_turn_is_not_forwarded_again() -> None:
    book, session, _, _ = chatting_nodes()
    call = book.at(1).chat(session, {"message": "two"}, headers=VIA)
    book.after(ACQUIRE_TIMEOUT + POLL_INTERVAL)
    assert (code(call), book.turns) == (UNAVAILABLE, 1)


def test_stopping_node_stores_its_turns_and_leaves() -> None:
    book, session, call, _ = chatting_nodes()
    book.hand.emit(TextDelta("so far"))
    book.at(1).end(0)
    assert names(call)[-1] == "done"
    assert [row["content"] for row in book.messages(session)] == ["Hi", "so far"]
    assert "node left" in book.events()
    book.chat(session)
    assert book.turns == 2  # a stopping node releases its ownership


def test_without_redis_turns_continue_and_none_begins() -> None:
    book = ApiClusterHarness()
    session, other = book.session(), book.session()
    call = book.chat(session, {"message": "one"})
    hand = book.hand
    blocking = book.at(1).call("POST", f"/api/sessions/{session}/chat", {"message": "two"})
    book.cut()
    book.after(60.0)
    run = f"/v1/runs/{hand.turn.run_id}"
    for n in (0, 1):
        book.at(n)
        assert code(book.chat(session)) == UNAVAILABLE
        assert code(book.chat(other)) == UNAVAILABLE
        assert code(again(book)) == UNAVAILABLE
        assert code(book.call("DELETE", f"/api/sessions/{other}")) == UNAVAILABLE
        assert book.request("GET", "/api/sessions").json["total"] == 2
    assert code(book.call("GET", run)) == UNAVAILABLE
    assert code(book.call("GET", f"{run}/events")) == UNAVAILABLE
    book.at(0)
    assert book.request("GET", run).status == 200
    book.mend()
    waiting = book.at(1).chat(session, {"message": "three"})
    assert code(waiting) == UNAVAILABLE
    book.after(1.0)
    waiting = book.chat(session, {"message": "three"})
    book.after(TAKEOVER_DELAY)
    assert lease(book, session).endswith(":8642")  # owned again
    book.at(0)
    hand.respond("1")
    assert streamed_text(call) == "1"
    book.hand.finish()
    assert blocking.result.status == 200
    book.hand.finish()
    assert names(waiting)[-1] == "done"
    said = [row["content"] for row in book.messages(session) if row["role"] == "user"]
    assert said == ["one", "two", "three"]


def test_previous_owner_has_precedence_after_redis_returns() -> None:
    book, session, _, _ = chatting_nodes()
    book.cut()
    book.mend(1)
    book.at(1).after(0.3)
    assert book.ownership.node.is_up
    passed = book.chat(session, {"message": "two"})
    book.mend(0)
    book.after(TAKEOVER_DELAY)
    assert lease(book, session).endswith(":8642")
    assert (passed.head.status, book.turns) == (200, 1)


def test_unaware_former_owner_stores_nothing() -> None:
    book, session, first, hand = chatting_nodes("one")
    hand.store_calls(call_of())
    book.cut(0)  # the others still reach Redis
    book.at(1).after(LEASE)
    second = book.chat(session, {"message": "two"})
    assert (names(second)[0], book.turns) == ("session.created", 2)
    book.at(0)
    hand.respond("late")
    assert first.named_events()[-2][1]["error"] == "session_db_unavailable"
    book.at(1).hand.emit(TextDelta("2"))
    book.hand.finish()
    rows = [(row["role"], row["content"]) for row in book.messages(session)]
    assert rows == [("user", "one"), ("assistant", ""), ("user", "two"), ("assistant", "2")]


def test_former_owner_stops_when_informed() -> None:
    book, session, first, _ = chatting_nodes("one")
    waits = book.chat(session, {"message": "two"})
    hand = book.hand
    book.cut(0)
    book.at(1).after(LEASE)
    book.chat(session, {"message": "three"})
    book.at(0).mend()
    book.after(1.0)
    assert hand.cancelled
    assert [names(call)[-1] for call in (first, waits)] == ["done", "done"]
    assert "session taken over" in book.events()
    assert (book.turns, lease(book, session)) == (2, f"{book.members[1][1].ownership.node.id} http://127.0.0.1:8643")  # type: ignore[attr-defined]
    book.at(1).hand.finish()
    assert [row["content"] for row in book.messages(session)] == ["one", "three", ""]
    assert lease(book, session) == ""


@pytest.mark.parametrize(("overtaken", "store_fails"), [(False, False), (True, False), (False, True)])
def test_lapsed_owner_checks_the_store(overtaken: bool, store_fails: bool) -> None:
    book, session, first, hand = chatting_nodes("one")
    book.cut(0)
    book.at(1).after(LEASE)
    if overtaken:
        book.chat(session, {"message": "two"})
        book.hand.finish()  # without an owner now
    book.at(0).mend()
    book.refuse = (AddMessages,) if store_fails else ()
    book.after(1.0)
    book.refuse = ()
    assert lease(book, session).endswith(":8642") is not overtaken
    assert hand.cancelled is overtaken
    hand.finish()
    assert ("session taken over" in book.events()) is overtaken
    assert names(first)[-1] == "done"
    assert [row["content"] for row in book.messages(session)] == (["one", "two", ""] if overtaken else ["one", ""])


def test_start_without_redis_becomes_ready() -> None:
    book = ApiClusterHarness(1, started=False)
    redis = book.servers.pop(6379)
    book.feed(Started())
    book.after(START_TIMEOUT - 0.1)
    assert Ready() not in book.commands
    book.after(POLL_INTERVAL)
    assert book.ready
    session = book.session()
    assert code(book.chat(session)) == UNAVAILABLE
    book.servers[6379] = redis
    book.after(1.0 + TAKEOVER_DELAY)
    assert names(book.chat(session))[0] == "session.created"


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_redis_lost_during_a_query(lost: int) -> None:
    book = ApiClusterHarness()
    again(book.at(1))
    (place,) = [place for place in book.town.keys if b":again:" in place[1]]
    book.town.keys[place] = b"gone http://127.0.0.1:1", 1e9
    book.at(0)
    served: list[bytes] = []

    def die(name: bytes, serve: Any) -> Any:
        def dying(client: Any, given: list[bytes]) -> object:
            served.append(name)
            if len(served) > lost:
                book.cut()
            return serve(client, given)

        return dying

    commands = book.town.commands
    for name in (b"SET", b"GET", b"EVAL"):
        commands[name] = die(name, commands[name])
    call = again(book, key="k")
    assert code(call) == UNAVAILABLE


def test_cluster_messages_of_the_api() -> None:
    book = ApiClusterHarness()
    ownership = book.ownership
    nothing = JsonObject({})
    assert ownership.export_state() == {}
    ownership.apply_state("b", nothing)
    ownership.on_message("b", "word", nothing)
    assert ownership.on_request("b", "other", nothing) == {}


@pytest.mark.parametrize("stream", [False, True])
def test_a_forwarded_request_ends_with_its_client(stream: bool) -> None:
    book, session, _, hand = chatting_nodes("one")
    body = {"messages": [{"role": "user", "content": "two"}], "stream": stream}
    named = [(b"x-svc-session-id", session.encode())]
    call = book.at(1).call("POST", "/v1/chat/completions", body, headers=named)
    assert len(book.members[0][1].runs.session_runs(session)) == 2
    call.vanish()
    book.after(1.0)
    assert len(book.members[0][1].runs.session_runs(session)) == 1
    hand.finish()
    assert book.turns == 1


@pytest.mark.parametrize("method", ["session.compress", "prompt.submit"])
def test_a_change_of_the_history_waits_for_the_turn_of_another_node(method: str) -> None:
    """The messages of the other node's turn stay until it ends, and writes after that carry the new owner's token."""
    book = ApiClusterHarness(model_base_url="http://model.example/v1", model="small")
    session = book.session()
    for number in range(2):
        book.chat(session, {"message": str(number)})
        book.hand.respond(f"answer {number}")
    book.chat(session, {"message": "2"})
    other = book.hand
    phone = open_gateway(book.at(1))
    phone.call("session.resume", session_id=session)
    cut = {"text": "again", "truncate_before_user_ordinal": 1} if method == "prompt.submit" else {}
    call = phone.begin(method, session_id=session, **cut)
    assert (book.hand, len(book.messages(session)), call in phone.answers) == (other, 5, False)
    other.respond("answer 2")
    book.after(2 * POLL_INTERVAL)
    token = book.ownership.fence(session)
    book.hand.respond("summary")
    assert "result" in phone.answers[call]
    rows = [row["content"] for row in book.messages(session)]
    assert rows == (["0", "answer 0", "again", "summary"] if cut else [SHOWN, "summary"])
    assert token
    assert [query.fence for query in book.queries() if isinstance(query, AddMessages)][-1] == token
    assert lease(book, session) == ""
