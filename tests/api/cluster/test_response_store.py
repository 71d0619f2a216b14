from typing import Any

from svc_proto.api.chat.store_requests import FindResponse, SaveResponse
from svc_proto.api.cluster.response_store import PROPAGATION_DELAY, ClusterResponseStore
from svc_proto.api.runs.response_store import MAX_STORED
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from tests.api.cluster_harness import ApiClusterHarness

ID = f"resp_{'a' * 28}"


def response(name: str = ID, text: str = "ä") -> dict[str, object]:
    return {"id": name, "object": "response", "text": text}


class Two(ApiClusterHarness):
    """Harness of two API nodes with access to the response store of each."""

    def responses(self, n: int = 0) -> ClusterResponseStore:
        responses = self.at(n).api.responses
        assert isinstance(responses, ClusterResponseStore)
        return responses

    def comes_of(self, flow: Flow[Any], after: float = 0.1) -> Any:
        """Return the result or the refusal of a flow, or "nothing yet" if it has not ended after `after` seconds."""
        results: list[Any] = []
        engine = self.node.engine
        self.within(lambda: engine.spawn(flow, on_done=results.append, on_error=results.append))
        self.after(after)
        return results[0] if results else "nothing yet"

    def keep(self, name: str = ID, conversation: str | None = None, n: int = 0) -> None:
        assert self.comes_of(self.responses(n).put(response(name), "s", conversation)) is None


def test_stored_response_is_available_on_all_nodes() -> None:
    book = Two()
    book.keep(conversation="talk")
    for n in (0, 1):
        mine = book.responses(n)
        assert book.comes_of(mine.load()) is None
        assert book.comes_of(mine.get(ID)) == response()
        assert book.comes_of(mine.session_of("response", ID)) == "s"
        assert book.comes_of(mine.session_of("conversation", "talk")) == "s"
        assert book.comes_of(mine.session_of("conversation", "other")) is None
        assert book.comes_of(mine.get("talk")) is None
    assert book.comes_of(book.responses(1).delete(ID)) is True
    assert book.comes_of(book.responses(0).delete(ID), after=1.0) is False
    assert book.comes_of(book.responses(0).get(ID), after=1.0) is None


def test_response_being_stored_is_waited_for() -> None:
    book = Two()
    there = book.responses(1)
    waiting = there.get(ID)
    assert book.comes_of(waiting, after=0.1) == "nothing yet"
    book.keep(n=0)
    assert book.comes_of(book.responses(1).get(ID)) == response()
    book.after(PROPAGATION_DELAY)
    assert book.comes_of(book.responses(1).get("resp_of_others")) is None  # at once: no node made it


def test_response_refused_by_the_store_is_kept_locally() -> None:
    book = Two()
    mine = book.responses()
    book.refuse = (SaveResponse,)
    book.keep(conversation="talk")
    assert book.events(Level.WARNING) == ["responses not stored"] * 2
    assert book.comes_of(mine.get(ID)) == response()
    assert book.comes_of(mine.session_of("conversation", "talk")) == "s"
    assert book.comes_of(book.responses(1).get(ID), after=1.0) is None
    assert book.comes_of(book.responses(0).delete(ID)) is True
    assert book.comes_of(mine.get(ID), after=1.0) is None
    for number in range(MAX_STORED - 1):
        book.keep(f"resp_{number}")
    book.keep("resp_0", conversation="talk")  # both are the newest again, in place of the two oldest
    book.keep("resp_more")
    assert [book.comes_of(mine.get(f"resp_{name}")) for name in (0, 1, 2)] == [
        response("resp_0"),
        None,
        response("resp_2"),
    ]
    assert book.comes_of(mine.session_of("conversation", "talk")) == "s"


def test_failing_store_gives_503() -> None:
    book = Two()
    book.keep()
    book.at(1).refuse = (FindResponse,)
    for flow in (book.responses(1).get(ID), book.responses(1).delete(ID), book.responses(1).session_of("response", ID)):
        refused = book.comes_of(flow)
        assert isinstance(refused, Refused)
        assert (refused.status, refused.code) == (503, "session_db_unavailable")


def test_response_saved_twice_keeps_the_newer_text() -> None:
    book = Two()
    mine = book.responses()
    book.hold = (SaveResponse,)
    book.comes_of(mine.put(response(), "s", None))
    book.comes_of(mine.put(response(text="other"), "s", None))
    book.hold = ()
    for held in book.held[:]:
        book.held = [held]
        book.release()
        assert book.comes_of(mine.get(ID)) == response(text="other")  # before it is stored, too
