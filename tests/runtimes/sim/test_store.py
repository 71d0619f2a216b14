"""Tests of the simulated store: chat requests, failures, answers of a test, and records that outlive the process."""

import gc
import weakref
from functools import partial

import pytest
from attrs import frozen

from runtimes.failures import HostError
from runtimes.sim.store import SimStore
from svc_proto.api.chat.store_requests import AddMessages, CreateChat, GetChat, ListMessages, SearchMessages
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import Done, FailureKind, OperationId
from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession
from tests.runtimes.sim.toy_cores import ToyNetwork
from tests.runtimes.store.chat_stores import chat, message


def op(number: int) -> OperationId:
    return OperationId(number)


def test_sessions_and_chats_are_answered_and_survive_a_kill(bench: ToyNetwork) -> None:
    for request in (SaveSession("a", {"n": [1]}), SaveSession("b", {"n": [1]})):
        bench.run_operation(partial(Query, request=request))
    for _ in range(2):
        bench.run_operation(lambda op: Query(op, DeleteSession("a")))
    assert bench.run_operation(lambda op: Query(op, CreateChat(session=chat()))) is True
    assert bench.run_operation(lambda op: Query(op, AddMessages(session_id="c", messages=(message("m"),)))) is True
    bench.process = bench.process.restart()
    bench.world.run_idle()
    bench.order(Query(op(900), LoadSessions()), Query(op(901), ListMessages(session_id="c")))
    bench.order(Query(op(902), SearchMessages(query="hello", limit=1)))
    bench.world.run_idle()
    assert bench.toy.answer(900) == ("done", ({"n": [1]},))
    assert bench.toy.answer(901) == ("done", (message("m"),))
    (hits,) = [fact.result for fact in bench.toy.of(Done) if fact.op == 902]
    assert isinstance(hits, tuple)
    assert [hit.snippet for hit in hits] == [">>>hello<<<"]


def test_a_test_may_answer_itself() -> None:
    @frozen
    class Own(StoreRequest[int]):
        answer = int

    store = SimStore()
    with pytest.raises(HostError) as caught:
        store.apply(Own())
    assert caught.value.failure.kind is FailureKind.UNSUPPORTED
    store.serve(Own, lambda request: 7)
    store.serve(GetChat, lambda request: chat("mine"))
    assert store.apply(Own()) == 7
    assert store.apply(GetChat(id="c")) == chat("mine")
    store.apply(SaveSession("a", {"n": [1]}))
    assert store.sessions == {"a": {"n": [1]}}


def test_an_unreferenced_store_is_closed() -> None:
    store = SimStore()
    store.apply(CreateChat(session=chat()))
    gone = weakref.ref(store._sql)
    assert gone() is not None
    del store
    gc.collect()
    assert gone() is None
