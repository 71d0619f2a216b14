import pytest

from svc_proto.agent.interface import ModelCallFinished, ModelCallStarted, TextDelta
from svc_proto.api.config import ApiConfig
from svc_proto.api.runs.run import Run
from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import HistogramSnapshot, MetricFamily
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address
from tests.api.harness import KEY, PEER
from tests.api.scripted_agent import TurnHarness, chatting, names


def test_a_bug_in_the_order_of_things_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Run) -> Flow[bool]:
        yield from ()
        raise KeyError("sk-secret")

    monkeypatch.setattr(Run, "wait_started", broken)
    book, _, call = chatting()
    assert names(call) == ["error", "done"]
    assert call.named_events()[0][1]["error"] == "agent_error"
    assert "bug-1" in call.named_events()[0][1]["message"]
    assert len(book.api.runs) == 0
    assert "sk-secret" not in repr(book.logs)


@pytest.mark.parametrize(("fields", "name"), [((), "svc"), (((b"X-Hermes-Session-Id", b"s"),), "hermes")])
@pytest.mark.parametrize("path", ["/api/sessions/{}/chat/stream", "/v1/runs", "/v1/responses", "/v1/chat/completions"])
def test_a_turn_has_the_names_of_its_client(path: str, fields: tuple[tuple[bytes, bytes], ...], name: str) -> None:
    book = TurnHarness()
    body = {"input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}
    book.call("POST", path.format(book.session()), body, headers=fields)
    brand = book.hand.turn.brand
    assert brand is not None
    assert brand.name == name


def test_a_bug_after_the_end_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Run.finish

    def broken(self: Run, how: object) -> None:
        ended(self, how)  # type: ignore[arg-type]  # passed on unchanged
        raise KeyError("x")

    book, _, call = chatting()
    monkeypatch.setattr(Run, "finish", broken)
    book.hand.finish()
    assert names(call).count("done") == 1
    assert "bug" in book.events(Level.ERROR)


def test_finished_runs_are_removed() -> None:
    book, session, _ = chatting()
    first = book.hand.turn.run_id
    book.hand.finish()
    book.after(3_600.0)
    book.chat(session)
    book.hand.finish()  # runs that ended an hour ago are removed now
    with pytest.raises(Refused):
        book.api.runs.stop(first)
    assert book.api.runs.get(first) is None
    assert first not in book.api.runs._runs


def test_a_session_of_a_run_is_made_once() -> None:
    book = TurnHarness()
    for _ in range(2):
        book.call("POST", "/v1/runs", {"input": "Hi", "session_id": "s"})
        book.hand.finish()
    assert len(book.messages("s")) == 4
    (created,) = book.request("GET", "/api/sessions").json["sessions"]
    assert created["id"] == "s"


def shown(book: TurnHarness) -> dict[str, MetricFamily]:
    return {family.name: family for family in book.api.runs.metrics()}


def test_turns_tokens_and_deltas() -> None:
    book = TurnHarness()
    book.chat(book.session())
    assert dict(shown(book)["svc_runs"].values)["running",] == 1
    assert dict(shown(book)["svc_turns"].values) == {("completed",): 0, ("failed",): 0, ("cancelled",): 0}
    host = book.hand.host
    host.emit(ModelCallStarted())
    for text in ("Hello", ", you"):
        host.emit(TextDelta(text))
    host.emit(ModelCallFinished(11, 7))
    book.after(3.0)
    book.hand.finish()
    found = shown(book)
    states = ("queued", "running", "waiting_for_approval", "stopping")
    assert dict(found["svc_runs"].values) == {(state,): 0 for state in states}
    assert dict(found["svc_turns"].values)["completed",] == 1
    assert dict(found["svc_tokens"].values) == {("input",): 11, ("output",): 7}
    assert (dict(found["svc_deltas"].values)[()], dict(found["svc_model_calls"].values)[()]) == (2, 1)
    ((_, took),) = found["svc_turn_duration_seconds"].values
    assert isinstance(took, HistogramSnapshot)
    assert (sum(took.counts), round(took.total, 6)) == (1, 3.0)


def test_metrics_token_is_the_only_credential() -> None:
    book = TurnHarness(ApiConfig(key=KEY, metrics_token="monitor-5e01"))
    for key, status in (("monitor-5e01", 200), (KEY, 401), ("monitor-5e01x", 401), ("", 401)):
        for peer in (PEER, Address("198.51.100.7", 40_000)):
            assert book.request("GET", "/metrics", key=key, peer=peer).status == status
    assert book.request("GET", "/v1/models", key="monitor-5e01").status == 401
