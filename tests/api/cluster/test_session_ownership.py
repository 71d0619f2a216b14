from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.interface import ApprovalRequested, TextDelta
from svc_proto.api.cluster import session_ownership
from svc_proto.api.cluster.response_store import PROPAGATION_DELAY
from svc_proto.api.cluster.session_ownership import POLL_INTERVAL, WAIT_TIMEOUT
from svc_proto.api.runs.idempotency import KEY_TTL
from svc_proto.cluster.leases import LEASE
from svc_proto.cluster.node import LEASE as NODE_LEASE
from svc_proto.commands import Connect
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.service_clients.local_secret import OPERATOR
from tests.api.cluster_harness import UNAVAILABLE, VIA, ApiClusterHarness, chatting_nodes, code, lease, redis_key
from tests.api.harness import ApiCall
from tests.api.scripted_agent import call_of, names, streamed_text


def test_turn_is_queued_on_the_owning_node() -> None:
    book, session, first, hand = chatting_nodes("one")
    assert lease(book, session) == f"{book.ownership.node.id} http://127.0.0.1:8642"
    book.at(1)
    second = book.chat(session, {"message": "two"})
    blocking = book.call("POST", f"/api/sessions/{session}/chat?x=1", {"message": "three"})
    assert (book.turns, second.head.status, blocking.answer) == (1, 200, None)
    assert second.head.headers.get(b"content-type") == b"text/event-stream"
    said = [name for name, _ in second.head.headers]
    assert len(said) == len(set(said))  # no header of the forwarded answer is doubled
    book.at(0)
    hand.respond("1")
    book.hand.respond("2")
    assert lease(book, session) != ""
    book.hand.respond("3")
    assert [streamed_text(first), streamed_text(second)] == ["1", "2"]
    assert names(second)[-1] == "done"
    assert blocking.result.json["message"]["content"] == "3"
    assert lease(book, session) == ""
    assert [row["content"] for row in book.at(1).messages(session)] == ["one", "1", "two", "2", "three", "3"]
    book.chat(session)
    assert lease(book, session) == f"{book.ownership.node.id} http://127.0.0.1:8643"


@pytest.mark.parametrize("name", ["lease", "again"])
def test_a_request_with_its_key_goes_only_where_the_owning_node_says(name: str) -> None:
    """Ignore a URL in the value of a lease or an idempotency key: requests to it would carry API keys."""
    book = ApiClusterHarness()
    session = book.session()
    first = again(book) if name == "again" else book.chat(session, {"message": "one"})
    hand = book.hand
    key = next(key for key in book.town.keys if key[1].startswith(redis_key(f"{name}:")[1]))
    _, until = book.town.keys[key]
    book.town.keys[key] = f"{book.ownership.node.id} http://collector.example".encode(), until
    book.at(1)
    second = again(book) if name == "again" else book.chat(session, {"message": "two"})
    book.at(0)
    hand.finish()
    book.hand.finish()
    assert (first.head.status, second.head.status) == (200, 200)
    asked = {order.host for order in book.at(1).commands if isinstance(order, Connect)}
    assert asked == {"redis.example", "127.0.0.1"}


@pytest.mark.parametrize("name", ["lease", "again"])
def test_a_request_waits_for_the_heartbeat_of_the_owning_node(name: str) -> None:
    book = ApiClusterHarness()
    session = book.session()
    first = again(book) if name == "again" else book.chat(session, {"message": "one"})
    owner = book.ownership.node.id
    member = book.at(1).ownership.node.members[owner]
    pulse, member.pulse = member.pulse, None
    second = again(book) if name == "again" else book.chat(session, {"message": "two"})
    if name == "again":
        assert code(second) == (503, "cluster_unavailable")
    else:
        assert second.answer is None
        member.pulse = pulse
        book.after(POLL_INTERVAL)
        assert second.head.status == 200
    assert first.answer is None or name == "lease"


def test_turn_of_other_protocols_is_queued_on_the_owning_node() -> None:
    book, session, _, hand = chatting_nodes("one")
    book.at(1)
    named = [(b"x-svc-session-id", session.encode())]
    streamed = book.call("POST", "/v1/chat/completions", {**COMPLETION, "stream": True}, headers=named)
    run = book.call("POST", "/v1/runs", {"input": "three", "session_id": session})
    assert (book.turns, streamed.head.status, run.result.status) == (1, 200, 202)
    book.at(0)
    for text in ("1", "2", "3"):
        hand.respond(text)
        hand = book.hand
    assert "2" in "".join(event.data for event in streamed.stream())
    rows = [row["content"] for row in book.at(1).messages(session)]
    assert rows == ["one", "1", "Hi", "2", "three", "3"]


def test_stored_rows_carry_a_rising_fencing_token() -> None:
    book = ApiClusterHarness()
    session = book.session()
    fences = []
    for n in (0, 1, 0):
        book.at(n).chat(session)
        fences.append(book.ownership.fence(session))
        book.hand.finish()
    assert fences == sorted({fence for fence in fences if fence})
    stored = [query.fence for query in book.queries() if hasattr(query, "fence")]
    assert stored == [fence for fence in fences for _ in range(2)]
    assert book.ownership.fence(session) is None


def test_intermediate_rows_carry_the_fencing_token() -> None:
    book, session, _, _ = chatting_nodes()
    book.hand.store_calls(call_of())
    fences = [query.fence for query in book.queries() if hasattr(query, "fence")]
    assert fences == [book.ownership.fence(session)] * 2


def test_deleting_a_session_ends_its_turn_on_any_node() -> None:
    book, session, first, _ = chatting_nodes()
    book.at(1)
    assert book.request("DELETE", f"/api/sessions/{session}/messages?from_row=1").status == 204
    assert book.hand.cancelled
    assert book.messages(session) == []
    first = book.chat(session)
    assert book.at(0).request("DELETE", f"/api/sessions/{session}").status == 204
    assert names(first)[-1] == "done"
    assert book.hand.cancelled
    assert (lease(book, session), book.request("GET", f"/api/sessions/{session}").status) == ("", 404)
    other = book.session()
    assert book.request("DELETE", f"/api/sessions/{other}").status == 204
    assert lease(book, other) == ""


def test_refused_turn_releases_the_session() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    session = book.session()
    held = book.call("POST", "/v1/runs", {"input": "Hi", "session_id": "s"})
    assert held.result.status == 202
    acquiring = book.spawn(book.ownership.acquire(session))
    assert acquiring == [None]
    book.within(lambda: book.ownership.release(session))
    book.hold = ()
    refused = book.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    assert refused.status == 429
    assert [place for place in book.town.keys if b":lease:" in place[1]] == [redis_key("lease:s")]


def test_mcp_client_waits_for_a_session_of_another_node() -> None:
    book, session, _, hand = chatting_nodes()
    book.at(1)
    acquired = book.spawn(book.ownership.acquire(session))
    book.after(60.0)
    assert acquired == []
    book.at(0)
    hand.finish()
    book.at(1).after(POLL_INTERVAL)
    assert acquired == [None]
    book.at(0)
    refused: list[Any] = []
    flow = book.ownership.acquire(session)
    book.within(lambda: book.engine.spawn(flow, on_done=refused.append, on_error=refused.append))
    book.after(WAIT_TIMEOUT)
    assert (refused[0].status, refused[0].code) == UNAVAILABLE


def test_operator_header_is_not_forwarded() -> None:
    book = ApiClusterHarness()
    session = book.session()
    said = [OPERATOR, (b"cookie", b"a=b"), (b"range", b"bytes=0-")]
    book.chat(session, headers=said)
    assert book.hand.turn.operator is not None
    book.at(1).chat(session, headers=said)
    book.at(0).hand.finish()
    assert book.turns == 2
    assert not book.hand.turn.operator


def test_run_is_read_stopped_and_answered_from_any_node() -> None:
    book = ApiClusterHarness(3)
    begun = book.request("POST", "/v1/runs", {"input": "Hi"})
    run = f"/v1/runs/{begun.json['run_id']}"
    hand = book.hand
    asked = ApprovalRequested(call=call_of(), command="rm", pattern="", description="rm", choices=("once", "deny"))
    hand.do(lambda: hand.host.request_approval(asked))
    book.at(1)
    status = book.request("GET", run)
    assert (status.json["status"], len(status.json["approvals"])) == ("waiting_for_approval", 1)
    follower = book.call("GET", f"{run}/events")
    assert "approval.request" in follower.text
    assert book.request("GET", f"{run}/events").status == 404  # the one reader is attached
    book.at(2)
    approval = f"{run}/approval"
    assert book.request("POST", approval, {"choice": "nonsense"}).status == 400
    assert book.request("POST", approval, {"choice": "once", "call_id": "call_7"}).json["resolved"] == 1
    book.at(0)
    hand.emit(TextDelta("so"))
    assert hand.answers[0] == "once"
    assert '"so"' in follower.text
    book.at(2)
    assert book.request("POST", f"{run}/stop").json["status"] == "stopping"
    assert "run.cancelled" in follower.text
    assert book.request("GET", run).json["status"] == "cancelled"


def test_nodes_may_be_under_a_path() -> None:
    book = ApiClusterHarness(root_path="/agent", under="/agent")
    book.chat(book.session())
    run = f"/v1/runs/{book.hand.turn.run_id}"
    book.at(1)
    for path in (run, f"/agent{run}", f"/agent{run}?x=/agent"):
        assert book.request("GET", path).json["status"] == "running"


@pytest.mark.parametrize("run", [f"run_{'0' * 32}", "run_x", "x"])
def test_unknown_run_gives_404(run: str) -> None:
    book = ApiClusterHarness()
    for method, path in (("GET", ""), ("POST", "/stop"), ("POST", "/approval")):
        answer = book.request(method, f"/v1/runs/{run}{path}", {} if path else None)
        assert (answer.status, answer.json["error"]["code"]) == (404, "run_not_found")
    call = book.call("GET", f"/v1/runs/{run}/events")
    book.after(1.0)
    assert code(call) == (404, "run_not_found")


def test_forwarded_run_request_is_not_forwarded_again() -> None:
    book, _, _, hand = chatting_nodes()
    run = f"/v1/runs/{hand.turn.run_id}"
    assert book.at(1).request("GET", run, headers=VIA).status == 404
    assert book.request("GET", run).status == 200


def test_silent_node_may_own_the_run_until_it_is_lost() -> None:
    book, _, _, hand = chatting_nodes()
    run = f"/v1/runs/{hand.turn.run_id}"
    node, _ = book.members[0]
    node.alive = False  # the node hangs
    call = book.at(1).call("GET", run)
    book.after(1.0)
    assert code(call) == UNAVAILABLE
    book.after(NODE_LEASE)
    assert code(book.call("GET", run)) == (404, "run_not_found")


def test_node_with_another_key_is_unavailable() -> None:
    book, session, _, _ = chatting_nodes()
    book.api.config = evolve(book.api.config, key="another key of that node")
    book.at(1)
    assert code(book.call("GET", f"/v1/runs/{book.hand.turn.run_id}")) == UNAVAILABLE
    assert code(book.chat(session)) == UNAVAILABLE


def passed(book: ApiClusterHarness) -> int:
    """Return the number of `EVAL`, `GET` and `SET` commands that Redis has executed."""
    return sum(name in ("EVAL", "GET", "SET") for name in book.town.served)


@pytest.mark.parametrize("key", ["", "wrong"])
def test_requests_without_key_are_not_forwarded(key: str) -> None:
    book, session, _, _ = chatting_nodes()
    run = f"/v1/runs/{book.hand.turn.run_id}"
    asked = passed(book)
    for n, headers in ((1, ()), (0, VIA)):  # nor does a client get access by claiming that the request was forwarded
        book.at(n)
        refused = [
            book.request("GET", run, key=key, headers=headers),
            book.request("POST", f"{run}/stop", {}, key=key, headers=headers),
            book.request("POST", f"/api/sessions/{session}/chat", {"message": "x"}, key=key, headers=headers),
            book.request("DELETE", f"/api/sessions/{session}", key=key, headers=headers),
        ]
        assert [answer.status for answer in refused] == [401] * 4
        for _, api in book.members:
            AuthRateLimiter.clear(api.ownership.limiter)  # five wrong keys on all nodes together are the limit
    assert passed(book) == asked
    assert (len(book.api.runs), book.turns) == (1, 1)


def test_forwarded_requests_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_ownership, "MAX_WAITING", 1)
    book, session, _, hand = chatting_nodes()
    book.at(1)
    waiting = book.call("POST", f"/api/sessions/{session}/chat", {"message": "two"})
    metrics = {"svc_cluster_passing": 1, "svc_cluster_nodes": 1, "svc_cluster_connections_total": 1}
    assert {name: shown(book, name) for name in metrics} == metrics
    assert shown(book.at(0), "svc_cluster_leases") == 1
    book.at(1)
    for refused in (book.chat(session), book.call("GET", f"/v1/runs/{hand.turn.run_id}")):
        assert code(refused) == (503, "busy")
        assert refused.head.headers.get(b"retry-after") == b"1"
    waiting.vanish()
    assert book.request("GET", f"/v1/runs/{hand.turn.run_id}").status == 200
    assert shown(book, "svc_cluster_passing") == 0


def shown(book: ApiClusterHarness, name: str) -> float:
    """Return the value of a metric without labels at the selected node."""
    lines = book.request("GET", "/metrics").body.decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def respond(book: ApiClusterHarness, text: str, **more: object) -> str:
    """Create a stored response and return its id."""
    call = book.call("POST", "/v1/responses", {"input": text, **more})
    book.hand.respond(f"{text}!")
    return str(call.result.json["id"])


def asked_with(book: ApiClusterHarness) -> list[object]:
    """Return the contents of the history that the newest turn received."""
    return [row["content"] for row in book.hand.turn.history]


def test_response_outlives_its_node_and_is_continued_read_and_deleted_on_any_other() -> None:
    book = ApiClusterHarness(3)
    first, other = respond(book, "one"), respond(book, "other", conversation="c")
    book.after(0.1)
    book.kill(0)
    book.at(1)
    second = respond(book, "two", previous_response_id=first)
    assert asked_with(book) == ["one", "one!"]
    respond(book, "three", conversation="c")
    assert asked_with(book) == ["other", "other!"]
    book.at(2)
    begun = book.request("POST", "/v1/runs", {"input": "three", "previous_response_id": second})
    assert begun.status == 202
    assert asked_with(book) == ["one", "one!", "two", "two!"]
    for wanted in (first, second, other):
        assert book.request("GET", f"/v1/responses/{wanted}").json["id"] == wanted
    assert book.request("DELETE", f"/v1/responses/{first}").json["deleted"] is True
    for n in (1, 2):
        gone = [book.at(n).call(method, f"/v1/responses/{first}") for method in ("GET", "DELETE")]
        book.after(PROPAGATION_DELAY)
        assert [call.result.status for call in gone] == [404, 404]


COMPLETION = {"messages": [{"role": "user", "content": "Hi"}]}


def again(book: ApiClusterHarness, path: str = "/v1/chat/completions", key: str = "k", **body: object) -> ApiCall:
    """Send a request with an idempotency key."""
    wanted = {"input": "Hi"} if path == "/v1/responses" else COMPLETION
    return book.call("POST", path, {**wanted, **body}, headers=[(b"idempotency-key", key.encode())])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_idempotent_request_is_not_repeated_on_another_node(path: str) -> None:
    book = ApiClusterHarness(3)
    first = again(book, path)
    hand = book.hand
    meanwhile = again(book.at(1), path)
    beside = again(book, path)
    book.at(0)
    hand.respond("so")
    later = again(book.at(2), path)
    bodies = [call.result.json for call in (first, meanwhile, beside, later)]
    assert all(body == bodies[0] for body in bodies)
    assert book.turns == 1
    for more in ({"model": "other"}, {"key": "other"}):  # a different request
        again(book, path, **more)
        book.hand.finish()
    assert book.turns == 3


def test_idempotency_key_belongs_to_the_node_of_its_run() -> None:
    book = ApiClusterHarness(3)
    held = again(book, key="other")  # conversation and session are those of the next request
    hand = book.hand
    passed = again(book.at(1))
    book.at(0)
    hand.finish()
    book.hand.finish()
    assert (held.result.status, passed.result.status) == (200, 200)
    assert again(book.at(2)).result.json == passed.result.json
    assert again(book.at(1)).result.json == passed.result.json
    assert book.turns == 2


def test_simultaneous_requests_with_one_key_run_once() -> None:
    book = ApiClusterHarness()
    book.at(1).chat(book.session())
    book.at(0)
    calls: list[ApiCall] = []
    settle, book.run_until_idle = book.run_until_idle, lambda: None  # type: ignore[method-assign]  # no answer before both have arrived
    calls += [again(book), again(book)]
    book.run_until_idle = settle  # type: ignore[method-assign]
    book.run_until_idle()
    assert book.turns == 2
    book.hand.finish()
    assert calls[0].result.json == calls[1].result.json
    assert not any(key.startswith(redis_key("lease:api-")[1]) for _, key in book.town.keys)


def test_key_of_a_lost_node_is_free() -> None:
    book = ApiClusterHarness()
    again(book)
    book.kill(0)
    assert code(again(book.at(1))) == UNAVAILABLE  # not detected yet
    book.after(0.5)
    call = again(book)
    book.after(LEASE)
    assert book.turns == 2
    book.hand.finish()
    assert call.result.status == 200
    book.after(KEY_TTL)
    again(book)
    assert book.turns == 3


def test_key_expiring_during_the_lookup_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    book = ApiClusterHarness()
    again(book)
    book.hand.finish()
    monkeypatch.setitem(book.town.commands, b"GET", lambda client, given: None)
    again(book.at(1))
    assert book.turns == 2
