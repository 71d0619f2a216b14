from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from svc_proto.basics.metrics import HISTOGRAM_BOUNDS
from svc_proto.commands import Compute
from svc_proto.facts import Stopping
from svc_proto.machines.auth_rate_limiter import MAX_FAILURES
from svc_proto.monitoring.monitoring_routes import OPENMETRICS
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import CheckStore
from svc_proto.version import VERSION
from tests.relay.harness import REMOTE, RelayHarness
from tests.support.http_codec import Response

TOKEN = "metrics-0123456789abcdef"


def parsed(answer: Response) -> dict[str, Metric]:
    """Return the metrics as the parser of prometheus-client reads them."""
    assert (answer.status, answer.headers.get(b"content-type")) == (200, OPENMETRICS)
    return {family.name: family for family in text_string_to_metric_families(answer.body.decode())}


def samples(answer: Response) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    for family in parsed(answer).values():
        for sample in family.samples:
            yield sample.name, tuple(sample.labels.items())


def value(answer: Response, name: str, **labels: str) -> float:
    samples = [sample for family in parsed(answer).values() for sample in family.samples]
    (found,) = [sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)]
    return float(found)


def shown(token: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"authorization", f"Bearer {token}".encode()),)


def test_without_a_token_metrics_are_for_programs_of_this_host() -> None:
    book = RelayHarness()
    assert book.request("GET", "/metrics", b"ignored").status == 200
    for answer in (
        book.request("GET", "/metrics", peer=REMOTE),
        book.request("GET", "/metrics", headers=((b"origin", b"https://evil.example"),)),
        book.request("GET", "/metrics", headers=((b"x-forwarded-for", b"192.0.2.1"),)),
        book.request("GET", "/metrics", peer=REMOTE, headers=shown(TOKEN)),
    ):
        assert (answer.status, answer.json["code"]) == (403, "loopback_only")


def test_metrics_token_is_required() -> None:
    book = RelayHarness(RelayConfig(metrics_token=TOKEN))
    assert book.request("GET", "/metrics", peer=REMOTE, headers=shown(TOKEN)).status == 200
    for headers in ((), shown(TOKEN[:-1]), ((b"authorization", b"Basic " + TOKEN.encode()),)):
        answer = book.request("GET", "/metrics", headers=headers)
        assert (answer.status, answer.json["code"]) == (401, "unauthorized")
        assert answer.headers.get(b"www-authenticate") == b"Bearer"
        assert TOKEN not in answer.body.decode()


def test_wrong_tokens_are_blocked_and_the_right_one_is_not() -> None:
    book = RelayHarness(RelayConfig(metrics_token=TOKEN))
    for _ in range(MAX_FAILURES):
        assert book.request("GET", "/metrics", peer=REMOTE, headers=shown("wrong")).status == 401
    blocked = book.request("GET", "/metrics", peer=REMOTE, headers=shown("wrong"))
    assert (blocked.status, blocked.headers.get(b"retry-after")) == (429, b"300")
    assert book.request("GET", "/metrics", peer=REMOTE).status == 401  # no key is no guess
    answer = book.request("GET", "/metrics", peer=REMOTE, headers=shown(TOKEN))
    assert value(answer, "svc_limiter_blocks_total") == 1


def test_requests_by_route_and_status() -> None:
    book = RelayHarness()
    for path in ("/health", "/health", "/media/abc", "/nowhere"):
        book.request("GET", path)
    answer = book.request("GET", "/metrics")
    assert value(answer, "svc_build", version=VERSION) == 1
    name = "svc_http_requests_total"
    assert value(answer, name, method="GET", route="/health", status="200") == 2
    assert value(answer, name, method="GET", route="/media/{token}", status="401") == 1
    assert value(answer, name, method="other", route="none", status="404") == 1
    least = {"method": "GET", "route": "/health", "le": str(HISTOGRAM_BOUNDS[0])}
    assert value(answer, "svc_http_request_duration_seconds_bucket", **least) == 2


def test_request_duration_includes_the_wait() -> None:
    book = RelayHarness()
    book.hold = (Compute,)
    first = book.call("GET", "/metrics")
    book.after(0.2)
    book.hold = ()
    book.release()
    assert first.result.status == 200
    answer = book.request("GET", "/metrics")
    which = {"method": "GET", "route": "/metrics"}
    assert value(answer, "svc_http_request_duration_seconds_sum", **which) == pytest.approx(0.2)
    assert value(answer, "svc_http_request_duration_seconds_bucket", le="0.1", **which) == 0
    assert value(answer, "svc_http_request_duration_seconds_bucket", le="0.25", **which) == 1


def test_no_peer_makes_more_series() -> None:
    book = RelayHarness()
    for warming in ("GET", "POST", "DELETE"):
        book.request(warming, "/nowhere")
    book.request("GET", "/media/0")
    book.request("GET", "/metrics")  # once, so that the request itself is counted
    before = sorted(samples(book.request("GET", "/metrics")))
    methods = ("GET", "POST", "BREW", "DELETE")
    for number in range(100):
        book.request(methods[number % 4], f"/nowhere/{number}?q={number}")
        book.request("GET", f"/media/{number}")
    assert sorted(samples(book.request("GET", "/metrics"))) == before


def test_late_timers_are_counted_as_lag() -> None:
    book = RelayHarness()
    engine = book.relay.engine
    engine.timers.timer(lambda: None).set(engine.now.mono + 1.0)
    counted = sum(engine.counts.lateness.counts)
    engine.handle(None, engine.now.at(engine.now.mono + 1.3))
    assert sum(engine.counts.lateness.counts) == counted + 1
    assert engine.counts.lateness.total == pytest.approx(0.3)


def test_missing_metrics_encoder_gives_503() -> None:
    book = RelayHarness()
    book.host.compute.pop("metrics.text")
    answer = book.request("GET", "/metrics")
    assert (answer.status, answer.json["code"]) == (503, "metrics_unavailable")


def test_health_and_readiness_are_public() -> None:
    book = RelayHarness()
    for path, body in (("/healthz", {"status": "ok"}), ("/readyz", {"status": "ready", "reasons": []})):
        answer = book.request("GET", path, b"ignored", peer=REMOTE)
        assert (answer.status, answer.json, answer.headers.get(b"cache-control")) == (200, body, b"no-store")


def test_failing_store_makes_the_server_unready() -> None:
    book = RelayHarness()
    book.host.store.refused = (CheckStore,)
    answer = book.request("GET", "/readyz")
    assert (answer.status, answer.json) == (503, {"status": "not ready", "reasons": ["store: internal"]})
    assert value(book.request("GET", "/metrics"), "svc_store_failures_total") == 1
    book.host.store.refused = ()
    assert book.request("GET", "/readyz").status == 503  # cached for a second
    book.after(1.0)
    assert book.request("GET", "/readyz").status == 200


def test_store_check_has_two_seconds_and_a_stopping_server_is_not_ready() -> None:
    book = RelayHarness()
    book.hold = (CheckStore,)
    call = book.call("GET", "/readyz")
    assert call.answer is None
    book.after(2.0)
    assert call.result.json["reasons"] == ["store: timed_out"]
    book.after(1.0)  # the result is not cached any more
    call = book.call("GET", "/readyz")
    book.feed(Stopping(5.0))
    book.hold = ()
    book.release()
    assert (call.result.status, call.result.json["reasons"]) == (503, ["stopping"])
