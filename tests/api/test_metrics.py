"""Metrics of the API's turns, and access to their route."""

from __future__ import annotations

from svc_proto.agent.interface import ModelCallFinished, ModelCallStarted, TextDelta
from svc_proto.api.config import ApiConfig
from svc_proto.api.metrics import api_metrics
from svc_proto.basics.metrics import HistogramSnapshot, MetricFamily
from svc_proto.facts import Address
from tests.api.harness import KEY, PEER
from tests.api.scripted_agent import TurnHarness


def shown(book: TurnHarness) -> dict[str, MetricFamily]:
    return {family.name: family for family in api_metrics(book.api.runs)}


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
    assert dict(found["svc_runs"].values) == dict.fromkeys(
        [("queued",), ("running",), ("waiting_for_approval",), ("stopping",)], 0
    )
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
