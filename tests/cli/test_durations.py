import pytest

from svc_proto.cli.durations import duration_label, parse_duration, parse_preset, short_expiry
from svc_proto.cli.errors import CliError
from svc_proto.machines.grants import CHANNELS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((text, 0) for text in ("never", "NEVER", "0", "0d")),
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
    assert parse_duration(text, "--ttl") == seconds


@pytest.mark.parametrize(
    "text",
    ["", "d", "1.5h", "-1", "1 h", "1x", "1hh", "forever", "11y", "9999999999999", "\u0661d", "1h\n2", "\x1b[2J"],
)
def test_bad_spans(text: str) -> None:
    with pytest.raises(CliError) as caught:
        parse_duration(text, "--ttl")
    assert caught.value.code == 2
    assert str(caught.value).startswith("--ttl must be ")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_presets() -> None:
    found = parse_preset("terminal=7d, bridge=1h,,voice:stt=never,tui=None", None)
    assert found == {"terminal": 604_800, "bridge": 3600, "voice:stt": 0, "tui": None}
    assert parse_preset(None, None) is None
    assert parse_preset("", None) is None
    assert parse_preset(None, ",".join(CHANNELS)) is None


def test_only_withholds_the_others() -> None:
    others = {channel: None for channel in CHANNELS if channel not in ("chat", "bridge")}
    assert parse_preset(None, " chat,bridge,") == others
    assert parse_preset("bridge=1h,tui=none", "chat,bridge") == {**others, "bridge": 3600}


BAD_GRANTS = ["bridge", "=1h", "bridge=", "bridge=x", "bridge=1h,bridge=2h", "bridge=none,bridge=2h", "Bridge=1h"]
BAD_GRANTS += ["termnal=none", "\x1b[2J=1h"]


@pytest.mark.parametrize(
    ("grants", "only"),
    [*((grants, None) for grants in BAD_GRANTS), ("tui=1h", "chat"), (None, ""), (None, ","), (None, "chat,termnal")],
)
def test_bad_presets(grants: str | None, only: str | None) -> None:
    with pytest.raises(CliError, match=r"--grants|--only") as caught:
        parse_preset(grants, only)
    assert caught.value.code == 2
    assert "\x1b" not in str(caught.value)


def test_unknown_channel_lists_the_channels() -> None:
    for grants, only in (("termnal=none", None), (None, "termnal")):
        with pytest.raises(CliError, match=f"'termnal' is no channel; there are {', '.join(CHANNELS)}"):
            parse_preset(grants, only)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [
        *((0, "never expires"), (1, "1 second"), (1.5, "1 second"), (61, "61 seconds"), (120, "2 minutes")),
        *((3600, "1 hour"), (2_592_000, "30 days"), (31_536_000, "1 year")),
    ],
)
def test_labels(seconds: float, label: str) -> None:
    assert duration_label(seconds) == label


def test_expiries() -> None:
    assert short_expiry(None, 5.0) == "never"
    assert short_expiry(5.0, 5.0) == "expired"
    assert short_expiry(65.0, 5.0) == "in 1m"
    month = 30 * 86_400.0
    days = {month: "30d", month - 1: "30d", month - 60: "30d", month - 61: "29d", 86_399.0: "1d"}
    for left, said in {**days, 3_599.0: "1h", 3_541.0: "1h", 3_540.0: "59m", 119.0: "1m"}.items():
        assert short_expiry(1000.0 + left, 1000.0) == f"in {said}"


@pytest.mark.parametrize(
    ("grants", "only", "expected"),
    [
        ("manage=none", None, {"manage": None}),
        ("files=never", None, {"files": 0.0}),
        (None, "chat,manage", {**{name: None for name in CHANNELS if name != "chat"}, "manage": 0.0}),
        ("notifications=never", "chat", {**{name: None for name in CHANNELS if name != "chat"}, "notifications": 0.0}),
    ],
)
def test_rights_are_named_like_channels(
    grants: str | None, only: str | None, expected: dict[str, float | None]
) -> None:
    assert parse_preset(grants, only) == expected


def test_a_right_lasts_as_the_session() -> None:
    with pytest.raises(CliError, match="manage lasts as the session: manage=never or manage=none"):
        parse_preset("manage=1h", None)
