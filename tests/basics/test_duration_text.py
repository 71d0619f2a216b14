import pytest

from svc_proto.basics.duration_text import short_duration


@pytest.mark.parametrize(
    ("seconds", "short"), [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (7199, "1h"), (86_400, "1d"), (1e6, "11d")]
)
def test_short_spans(seconds: float, short: str) -> None:
    assert short_duration(seconds) == short
