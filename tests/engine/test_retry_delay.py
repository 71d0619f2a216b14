import time
from collections.abc import Iterator

import pytest

from svc_proto.engine.retry_delay import parse_response_date, parse_retry_delay
from svc_proto.wire.events import Headers

NOON = 1_792_584_000.0  # Wed, 21 Oct 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("fields", "body", "delay"),
    [
        ({"retry-after": "17"}, "", 17.0),
        ({"retry-after": " 1.5 "}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 12:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 11:00:00 GMT"}, "", 0.0),
        ({"retry-after": "1m30s"}, "", 90.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, "", 9.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", None),
        ({"retry-after": "."}, "", None),
        ({"retry-after": "1.2.3"}, "", None),
        ({}, '[{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "38.5s"}]}}]', 38.5),
        ({}, '{"error": {"retryDelay": "soon"}, "retry_after": 4}', 4.0),
        ({}, '{"retry_after": 0, "retry_after_seconds": 5, "error": "try again in 2 minutes"}', 0.0),
        ({}, '{"retry_after_seconds": 0}', 0.0),
        ({}, '{"error": {"message": "Rate limit reached. Please try again in 1m2.5s. Visit"}}', 62.5),
        ({}, '{"error": "please retry after 20 seconds"}', 20.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "try again in a moment", None),
        ({}, '{"a":' * 8 + '{"retryDelay": "3s"}' + "}" * 8, None),
        ({}, "[" * 8 + "]" * 8, None),
    ],
)
def test_delay(fields: dict[str, str], body: str, delay: float | None) -> None:
    headers = Headers([(name.encode(), value.encode()) for name, value in fields.items()])
    assert parse_retry_delay(headers, body, NOON) == delay


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the host be in a time zone that is not GMT."""
    monkeypatch.setenv("TZ", "<+0545>-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Wed, 21 Oct 2026 12:00:00 GMT", NOON),
        ("Wednesday, 21-Oct-26 12:00:00 GMT", NOON),
        ("Wed Oct 21 12:00:00 2026", NOON),
        ("Wed, 21 Oct 2026 12:00:00", NOON),
        ("Wed, 21 Oct 2026 12:00:00 -0000", NOON),
        ("Wed, 21 Oct 2026 14:00:00 +0200", NOON),
        ("Wed, 21 Oct 99999999999999999999 12:00:00 GMT", None),
        ("today", None),
        ("", None),
    ],
)
def test_a_date_does_not_depend_on_the_time_zone_of_the_host(text: str, date: float | None) -> None:
    assert parse_response_date(text) == date
