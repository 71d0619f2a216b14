"""Tests of two concurrent writers in one PostgreSQL database: row locks, a turn's fence, and keys that both insert."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from runtimes.failures import HostError
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store, outcome_of
from svc_proto.api.chat import store_requests
from svc_proto.api.chat.records import ChatSession, Usage
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from tests.runtimes.scripted_core import TIMEOUT
from tests.runtimes.store.chat_stores import chat, create, execute, get, ids, message
from tests.runtimes.store.postgresql_server import needs_postgresql, server

pytestmark = needs_postgresql

# Reads and row locks pass, changes wait: each writer has finished its reads before its first change.
CHANGES_WAIT = "LOCK TABLE chat_sessions IN SHARE MODE"
# The insertion of this key waits; a search for it finds nothing.
INSERTION_WAITS = (
    "INSERT INTO chat_responses (kind, name, session_id, text, used_at) VALUES ('conversation', 'n', 'x', '', 0)"
)
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'svc' AND wait_event_type = 'Lock'"


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store(server().empty())) as opened:
        create(opened, chat())
        yield opened


def both(first: StoreRequest[Any], second: StoreRequest[Any], *, hold: str = CHANGES_WAIT) -> tuple[object, object]:
    """Execute two requests concurrently on two stores; return their answers or exceptions.

    A third connection executes `hold`, and rolls back when both transactions wait, the first before the second.
    """
    import psycopg

    url = server().url("svc")
    patient = f"{url}&options=-c%20lock_timeout=0"  # a busy machine takes longer than the usual 5 s
    answers: list[Future[object]] = []
    with (
        closing(open_store(patient)) as one,
        closing(open_store(patient)) as other,
        ThreadPoolExecutor(2) as threads,
        psycopg.connect(url) as holder,
        psycopg.connect(url, autocommit=True) as observer,
    ):
        for store in (one, other):  # data that a store reads once is not read under the lock
            store.execute(store_requests.GetChat(id="c"))
        holder.execute(hold.encode())
        for store, request in ((one, first), (other, second)):
            answers.append(threads.submit(outcome_of, store, request))
            deadline = time.monotonic() + TIMEOUT
            while observer.execute(WAITING).fetchall() != [(len(answers),)]:
                assert time.monotonic() < deadline, f"{request} does not wait"
        holder.rollback()
        return answers[0].result(TIMEOUT), answers[1].result(TIMEOUT)


def added(message_id: str, fence: int | None = None) -> store_requests.AddMessages:
    usage = Usage(input_tokens=1, output_tokens=2)
    return store_requests.AddMessages(session_id="c", messages=(message(message_id, usage=usage),), fence=fence)


def begun(message_id: str, fence: int | None = None) -> store_requests.BeginTurn:
    return store_requests.BeginTurn(session_id="c", messages=(message(message_id),), history=10, fence=fence)


def is_denied(answer: object) -> bool:
    return isinstance(answer, HostError) and answer.failure.kind is FailureKind.DENIED


def test_the_counters_have_the_messages_of_both(store: Store) -> None:
    assert both(added("a"), added("b")) == (True, True)
    assert ids(store) == ["a", "b"]
    session = get(store)
    assert (session.message_count, session.input_tokens, session.output_tokens) == (2, 2, 4)


def test_the_history_has_concurrently_stored_messages(store: Store) -> None:
    assert both(begun("a"), begun("b")) == ((), (message("a"),))


@pytest.mark.parametrize("request_of", [added, begun])
@pytest.mark.parametrize("before", [None, 1])
def test_a_lower_fence_is_refused_after_an_uncommitted_higher_one(
    store: Store, request_of: Any, before: int | None
) -> None:
    if before is not None:
        assert store.execute(added("before", before))
    first, second = both(request_of("higher", 3), request_of("lower", 2))
    assert not isinstance(first, Exception)
    assert is_denied(second)
    assert "higher" in ids(store)
    assert "lower" not in ids(store)
    assert is_denied(outcome_of(store, added("late", 2)))


def test_a_higher_fence_waits_for_the_lower_one_and_ends_it(store: Store) -> None:
    assert both(begun("lower", 2), begun("higher", 3)) == ((), (message("lower"),))
    assert ids(store) == ["lower", "higher"]
    assert is_denied(outcome_of(store, added("late", 2)))


def test_the_first_reason_for_an_end_stays(store: Store) -> None:
    ends = [
        store_requests.UpdateChat(id="c", changes={"ended_at": at, "end_reason": f"at {at}"}, now=at)
        for at in (5.0, 6.0)
    ]
    both(*ends)
    session = get(store)
    assert (session.ended_at, session.end_reason) == (5.0, "at 5.0")


def test_a_deleted_session_takes_no_message(store: Store) -> None:
    assert both(store_requests.DeleteChat(id="c"), added("a")) == (True, False)
    assert execute(store, store_requests.ListMessages(session_id="c")) is None


def test_the_counters_of_a_fork_are_those_of_its_messages(store: Store) -> None:
    both(added("a"), store_requests.ForkChat(source="c", session=chat("fork"), now=3.0))
    assert get(store, "fork").message_count == len(ids(store, "fork")) == 1


def test_an_id_inserted_by_both_is_refused_for_the_later(store: Store) -> None:
    new = store_requests.CreateChat(session=chat("new"))
    assert set(both(new, new)) == {True, False}
    forks = [store_requests.ForkChat(source=source, session=chat("fork"), now=3.0) for source in ("c", "new")]
    assert {type(answer) for answer in both(*forks)} == {ChatSession, bool}


def test_a_conversation_saved_by_both_is_stored(store: Store) -> None:
    kept = [
        store_requests.SaveResponse(kind="conversation", name="n", session_id=session, text="", now=1.0, most=9, size=9)
        for session in ("first", "second")
    ]
    assert both(*kept, hold=INSERTION_WAITS) == (True, True)
    found = execute(store, store_requests.FindResponse(kind="conversation", name="n", now=2.0))
    assert found is not None
    assert found.session_id in ("first", "second")  # the later one
