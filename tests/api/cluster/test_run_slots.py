from random import Random

import pytest

from svc_proto.api.cluster import run_slots
from svc_proto.api.cluster.run_slots import MAX_POLL_INTERVAL
from svc_proto.basics.errors import Refused
from svc_proto.cluster.leases import LEASE, TAKEOVER_DELAY
from svc_proto.engine.flow import Flow
from tests.api.cluster_harness import UNAVAILABLE, ApiClusterHarness, code, redis_key
from tests.api.harness import ApiCall
from tests.api.scripted_agent import ScriptedTurn, names

FULL = (429, "rate_limit_exceeded")
REFUSED = (
    ("/v1/runs", {"input": "c"}),
    ("/v1/responses", {"input": "c"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "c"}]}),
    ("/v1/runs", ["no object"]),  # refused before it is parsed
)


def begun(book: ApiClusterHarness) -> list[str]:
    """Return the prompts of the turns that have begun, on all nodes."""
    return [str(hand.turn.prompt) for hand in book.scripted.hands]


def chat(book: ApiClusterHarness, n: int, said: str, session: str = "") -> ApiCall:
    """Send the message `said` to the stream of a session at node `n`, by default a new session."""
    book.at(n)
    return book.chat(session or book.session(), {"message": said})


def hand_of(book: ApiClusterHarness, said: str) -> ScriptedTurn:
    return next(hand for hand in book.scripted.hands if hand.turn.prompt == said)


def finish(book: ApiClusterHarness, n: int, said: str) -> None:
    """Finish the turn with the message `said` on node `n`."""
    book.at(n)
    hand_of(book, said).finish()


def held(book: ApiClusterHarness, kind: str) -> str:
    """Return the record in Redis of the held slots of this kind, as JSON text; `{}` if there is none."""
    value, _ = book.town.keys.get(redis_key(f"places:{kind}"), (b"{}", 0.0))
    return value.decode()


def places(book: ApiClusterHarness, kind: str) -> int:
    return held(book, kind).count(":") - held(book, kind).count(": ")


def test_at_the_cap_of_all_nodes_runs_are_refused_and_turns_wait() -> None:
    book = ApiClusterHarness(3, max_concurrent_runs=2)
    chat(book, 0, "a")
    chat(book, 1, "b")
    waiting = chat(book, 2, "c")
    for n in range(3):
        book.at(n)
        for path, body in REFUSED:
            answer = book.call("POST", path, body)
            assert code(answer) == FULL, (n, path)
            assert answer.result.headers.get(b"retry-after") == b"1"
            assert "2 runs are under way; the limit is 2" in answer.text
    assert (begun(book), names(waiting)) == (["a", "b"], [])
    assert (places(book, "turns"), places(book, "line")) == (2, 1)
    finish(book, 0, "a")
    book.after(MAX_POLL_INTERVAL)
    assert begun(book) == ["a", "b", "c"]
    assert (places(book, "turns"), places(book, "line")) == (2, 0)
    finish(book, 1, "b")
    finish(book, 2, "c")
    assert names(waiting)[-1] == "done"
    assert (held(book, "turns"), held(book, "line")) == ("{}", "{}")
    assert book.request("POST", "/v1/runs", {"input": "d"}).status == 202


def test_slots_are_renewed_while_in_use() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    chat(book, 0, "a")
    waiting = chat(book, 0, "b")
    book.after(60.0)
    assert (places(book, "turns"), places(book, "line")) == (1, 1)
    assert code(book.at(1).call("POST", "/v1/runs", {"input": "c"})) == FULL
    finish(book, 0, "a")
    assert begun(book) == ["a", "b"]  # at once: no other turn waits
    waiting.vanish()
    finish(book, 0, "b")
    served = list(book.town.served).count("EVAL")
    book.after(60.0)
    assert list(book.town.served).count("EVAL") == served  # a node without slots sends no renewals


def test_a_node_waits_for_a_slot_a_second_time() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    for said in ("a", "b"):
        chat(book, 0, said)
        chat(book, 1, f"after {said}")
        book.after(2 * LEASE)
        assert (places(book, "turns"), places(book, "line")) == (1, 1)
        finish(book, 0, said)
        book.after(2 * MAX_POLL_INTERVAL)
        assert begun(book)[-1] == f"after {said}"
        finish(book, 1, f"after {said}")


def test_no_node_keeps_the_others_waiting() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    for n, (node, _) in enumerate(book.members):
        node.engine.entropy = Random(n).randbytes  # random order
    for number in range(12):
        chat(book, 0, f"0 {number}")
    chat(book, 1, "1")
    for number in range(12):
        if "1" in begun(book):
            break
        finish(book, 0, f"0 {number}")
        book.after(1.0)
    assert "1" in begun(book)
    assert len(begun(book)) < 8


def test_queue_limit_is_shared_by_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_slots, "MAX_QUEUED", 1)
    book = ApiClusterHarness(max_concurrent_runs=1)
    book.at(0)
    session = book.session()
    chat(book, 0, "a", session)
    chat(book, 0, "b", session)  # queued behind it
    for n in (0, 1):
        refused = chat(book, n, "c")
        assert (code(refused), "too many turns wait" in refused.text) == (FULL, True)
    finish(book, 0, "a")
    assert begun(book) == ["a", "b"]
    chat(book, 1, "c")
    assert code(chat(book, 0, "d")) == FULL
    finish(book, 0, "b")
    book.after(MAX_POLL_INTERVAL)
    assert begun(book) == ["a", "b", "c"]


def test_without_a_cap_turns_wait_for_their_session_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_slots, "MAX_QUEUED", 1)
    book = ApiClusterHarness(max_concurrent_runs=0)
    for number in range(12):
        chat(book, number % 2, f"{number}")
    assert len(begun(book)) == 12
    assert book.request("POST", "/v1/runs", {"input": "x"}).status == 202
    session = book.session()
    chat(book, 0, "one", session)
    chat(book, 0, "two", session)
    assert code(chat(book, 0, "three", session)) == FULL
    finish(book, 0, "one")
    assert begun(book)[-1] == "two"


def test_without_redis_a_slot_passes_within_its_node_only() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    chat(book, 0, "a")
    chat(book, 0, "b")
    chat(book, 1, "c")
    book.cut()
    book.after(60.0)
    finish(book, 0, "a")
    assert begun(book) == ["a", "b"]
    book.after(60.0)
    assert begun(book) == ["a", "b"]
    assert code(book.at(1).call("POST", "/v1/runs", {"input": "x"})) == UNAVAILABLE
    finish(book, 0, "b")
    book.mend()
    book.after(1.0 + TAKEOVER_DELAY + MAX_POLL_INTERVAL)
    assert begun(book) == ["a", "b", "c"]
    assert (places(book, "turns"), places(book, "line")) == (1, 0)


def test_empty_redis_receives_held_slots_before_granting_new_ones() -> None:
    book = ApiClusterHarness(max_concurrent_runs=2)
    chat(book, 0, "a")
    chat(book, 1, "b")
    book.cut()
    book.after(LEASE)
    book.mend()
    book.after(1.0)
    calls = [book.at(n).call("POST", "/v1/runs", {"input": "x"}) for n in range(2)]
    book.after(TAKEOVER_DELAY)
    assert [code(call) for call in calls] == [FULL, FULL]


def test_stopped_waiting_turn_leaves_the_queue() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    chat(book, 0, "a")
    waiting = book.at(1).call("POST", "/v1/runs", {"input": "x"})
    assert code(waiting) == FULL
    session = book.session()
    waiting = chat(book, 1, "b", session)
    assert places(book, "line") == 1
    assert book.request("DELETE", f"/api/sessions/{session}").status == 204
    assert names(waiting)[-1] == "done"
    assert places(book, "line") == 0
    finish(book, 0, "a")
    book.after(1.0)
    assert begun(book) == ["a"]
    assert places(book, "turns") == 0


@pytest.mark.parametrize("first", [0, 1])
def test_stopping_node_releases_its_slots(first: int) -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    chat(book, 0, "a")
    chat(book, 0, "b")
    chat(book, 1, "c")
    book.end(first)
    assert places(book, "line") == 1
    finish(book, 0, "a")
    book.after(1.0)
    assert begun(book) == ["a", "cb"[first]]


def refusal(book: ApiClusterHarness, flow: Flow[None]) -> tuple[int, str]:
    """Return status and code of the refusal of a flow."""
    errors: list[Exception] = []
    engine = book.node.engine
    book.within(lambda: engine.spawn(flow, on_error=errors.append))
    book.after(0.1)
    (refused,) = errors
    assert isinstance(refused, Refused)
    return refused.status, refused.code


def test_second_reservation_and_one_without_redis_are_refused() -> None:
    book = ApiClusterHarness(max_concurrent_runs=1)
    chat(book, 0, "a")
    assert refusal(book, book.ownership.reserve_slot("s", may_wait=False)) == FULL
    book.cut()
    for flow in (book.ownership.places.check_capacity(), book.ownership.reserve_slot("s", may_wait=True)):
        assert refusal(book, flow) == UNAVAILABLE
