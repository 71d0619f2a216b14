from __future__ import annotations

import pytest

from svc_proto.client.problem import Problem
from svc_proto.client.spans import parse_grant_spans, parse_span, short_expiry, short_span, span_label


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("never", 0),
        ("NEVER", 0),
        ("0", 0),
        ("0d", 0),
        ("3600", 3600),
        (" 1h ", 3600),
        ("90s", 90),
        ("5m", 300),
        ("1d", 86_400),
        ("7D", 604_800),
        ("2w", 1_209_600),
        ("1y", 31_536_000),
        ("10y", 315_360_000),
    ],
)
def test_spans(text: str, seconds: int) -> None:
    assert parse_span(text, "--ttl") == seconds


@pytest.mark.parametrize(
    "text",
    ["", "d", "1.5h", "-1", "1 h", "1x", "1hh", "forever", "11y", "9999999999999", "\u0661d", "1h\n2", "\x1b[2J"],
)
def test_bad_spans(text: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_span(text, "--ttl")
    assert caught.value.code == 2
    assert str(caught.value).startswith("--ttl must be ")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_grants() -> None:
    assert parse_grant_spans("terminal=7d, bridge=1h,,voice:stt=never") == {
        "terminal": 604_800,
        "bridge": 3600,
        "voice:stt": 0,
    }
    assert parse_grant_spans("") == {}
    assert len(parse_grant_spans(",".join(f"{n:064}=1h" for n in range(64)))) == 64


@pytest.mark.parametrize(
    "text",
    [
        "bridge",
        "=1h",
        "bridge=",
        "bridge=x",
        "bridge=1h,bridge=2h",
        "c" * 65 + "=1h",
        ",".join(f"c{n}=1h" for n in range(65)),
    ],
)
def test_bad_grants(text: str) -> None:
    with pytest.raises(Problem, match="--grants") as caught:
        parse_grant_spans(text)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("seconds", "label"),
    [(0, "never expires"), (1, "1 second"), (61, "61 seconds"), (120, "2 minutes"), (3600, "1 hour"),
     (2_592_000, "30 days"), (31_536_000, "1 year"), (1.5, "1 second")],
)  # fmt: skip
def test_labels(seconds: float, label: str) -> None:
    assert span_label(seconds) == label


@pytest.mark.parametrize(
    ("seconds", "short"), [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (7199, "1h"), (86_400, "1d"), (1e6, "11d")]
)
def test_short_spans(seconds: float, short: str) -> None:
    assert short_span(seconds) == short


def test_expiries() -> None:
    assert short_expiry(None, 5.0) == "never"
    assert short_expiry(5.0, 5.0) == "expired"
    assert short_expiry(65.0, 5.0) == "in 1m"
