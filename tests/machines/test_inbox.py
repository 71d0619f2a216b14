"""Notifications and pasted images."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.inbox import Notifications, image_type, inbox_name, parse_format

NOW = 1_800_000_000.0


def test_the_newest_hundred_newest_first() -> None:
    buffer = Notifications()
    for number in range(130):
        assert buffer.post({"key": number, "text": None})
    assert [entry["key"] for entry in buffer.recent(3)] == [129, 128, 127]
    assert len(buffer.recent(1000)) == 100


def test_a_huge_one_is_dropped() -> None:
    buffer = Notifications()
    assert not buffer.post({"text": "x" * 17_000})
    assert buffer.recent(10) == []


@pytest.mark.parametrize(("text", "limit"), [(None, 20), ("1", 1), (" 5 ", 5), ("100", 100), ("99999999999999", 100)])
def test_limits(text: str | None, limit: int) -> None:
    assert Notifications.parse_limit(text) == limit


@pytest.mark.parametrize("text", ["0", "-1", "", "ten", "1.5", "²"])
def test_bad_limits(text: str) -> None:
    with pytest.raises(Refused, match="limit"):
        Notifications.parse_limit(text)


@pytest.mark.parametrize(("value", "found"), [("png", "png"), ("JPG", "jpeg"), ("jpeg", "jpeg"), ("WebP", "webp")])
def test_formats(value: str, found: str) -> None:
    assert parse_format(value) == found


@pytest.mark.parametrize("value", ["bmp", 3, None, ""])
def test_foreign_formats(value: object) -> None:
    with pytest.raises(Refused, match="format"):
        parse_format(value)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"GIF89a", "gif"),
        (b"GIF87a..", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"", None),
    ],
)
def test_leading_bytes(data: bytes, found: str | None) -> None:
    assert image_type(data) == found


def test_names_keep_little_of_a_hint() -> None:
    assert inbox_name(NOW, "shot 1/../é", "png", "ab12") == "images/inbox/clip_20270115_080000_ab12_shot1.png"
    assert inbox_name(NOW, None, "jpeg", "ab12") == "images/inbox/clip_20270115_080000_ab12.jpeg"
    assert inbox_name(NOW, "x" * 60, "gif", "n").endswith("_" + "x" * 40 + ".gif")
    with pytest.raises(Refused, match="filename_hint"):
        inbox_name(NOW, 5, "gif", "n")
