"""Session ownership of a single process."""

from typing import Any

from tests.api.scripted_agent import TurnHarness


def test_single_process_owns_every_session() -> None:
    book = TurnHarness()
    ownership = book.api.ownership
    assert book.spawn(ownership.start()) == [None]
    assert book.spawn(ownership.acquire("s")) == [None]
    assert (ownership.fence("s"), ownership.metrics()) == (None, [])
    unknown: Any = None
    assert ownership.lookup_run(unknown, "r") is None
    ownership.release("s")
    ownership.stop()
    assert book.request("GET", f"/v1/runs/run_{'0' * 32}").status == 404
