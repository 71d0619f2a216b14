"""Test that a simulated store closes its database when it is no longer referenced."""

import gc
import weakref

from runtimes.sim.store import SimStore
from svc_proto.api.chat.store_requests import CreateChat
from tests.runtimes.store.chat_stores import chat


def test_an_unreferenced_store_is_closed() -> None:
    store = SimStore()
    store.apply(CreateChat(session=chat()))
    gone = weakref.ref(store._sql)
    assert gone() is not None
    del store
    gc.collect()
    assert gone() is None
