import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import Refused
from svc_proto.basics.strict_json import dumps
from svc_proto.machines import inbox

NOW = 1_800_000_000.0


def test_the_newest_hundred_are_kept_and_renewed() -> None:
    buffer = inbox.NotificationBuffer()
    for number in range(130):
        assert buffer.post("1", {"key": number, "text": None})
    assert [entry["key"] for entry in buffer.recent(3)] == [129, 128, 127]
    assert len(buffer.recent(1000)) == 100
    buffer, message = inbox.NotificationBuffer(), {"package_name": "chat", "key": "m"}
    assert buffer.post("1", message)
    for number in range(120):
        assert buffer.post("1", {"package_name": "store", "key": "d", "text": number})
    assert buffer.recent(20) == [{"package_name": "store", "key": "d", "text": 119}, message]
    buffer = inbox.NotificationBuffer()
    assert not buffer.post("1", {"text": "x" * 17_000})
    assert buffer.recent(10) == []


@pytest.mark.parametrize(
    ("renewals", "replaced"),
    [
        ([{"package_name": "p", "key": "k"}], True),
        ([{"package_name": "p", "key": "other"}, {"package_name": "other", "key": "k"}], False),
        ([{"package_name": "p", "key": ""}, {"package_name": "p"}, {"key": "k"}], False),
        ([{"package_name": "p", "key": 1}], False),
    ],
)
def test_a_renewed_notification_replaces_the_one_with_its_key(
    renewals: list[dict[str, object]], replaced: bool
) -> None:
    for renewed in renewals:
        buffer, first = inbox.NotificationBuffer(), {"package_name": "p", "key": "k", "text": "1 %"}
        message = {"package_name": "chat", "key": "m"}
        for source, payload in (("1", first), ("1", message), ("2", first), ("1", {**renewed, "text": "2 %"})):
            assert buffer.post(source, payload)
        rest = [first, message] if replaced else [first, message, first]
        assert buffer.recent(9) == [{**renewed, "text": "2 %"}, *rest]


@pytest.mark.parametrize(("text", "limit"), [(None, 20), ("1", 1), (" 5 ", 5), ("100", 100), ("99999999999999", 100)])
def test_limits(text: str | None, limit: int) -> None:
    assert inbox.NotificationBuffer.parse_limit(text) == limit


@pytest.mark.parametrize("text", ["0", "-1", "", "ten", "1.5", "²", "\uff11"])
def test_bad_limits(text: str) -> None:
    with pytest.raises(Refused, match=r"limit must be a whole number, at least 1"):
        inbox.NotificationBuffer.parse_limit(text)


@pytest.mark.parametrize(("value", "found"), [("png", "png"), ("JPG", "jpeg"), ("jpeg", "jpeg"), ("WebP", "webp")])
def test_formats(value: str, found: str) -> None:
    assert inbox.parse_format(value) == found


@pytest.mark.parametrize("value", ["bmp", 3, None, ""])
def test_foreign_formats(value: object) -> None:
    with pytest.raises(Refused, match="format"):
        inbox.parse_format(value)


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
    assert inbox.image_type(data) == found


def test_names_keep_little_of_a_hint() -> None:
    assert inbox.inbox_name(NOW, "shot 1/../é", "png", "ab12") == "images/inbox/clip_20270115_080000_ab12_shot1.png"
    assert inbox.inbox_name(NOW, None, "jpeg", "ab12") == "images/inbox/clip_20270115_080000_ab12.jpeg"
    assert inbox.inbox_name(NOW, "x" * 60, "gif", "n").endswith("_" + "x" * 40 + ".gif")
    with pytest.raises(Refused, match="filename_hint"):
        inbox.inbox_name(NOW, 5, "gif", "n")


class NotificationsAgainstAModel(RuleBasedStateMachine):
    """Notification buffer beside a model: `kept` are the accepted notifications that no later one has replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = inbox.NotificationBuffer()
        self.kept: list[dict[str, object]] = []

    @rule(key=st.sampled_from([0, "a", "b", ""]), text=st.none() | st.text(max_size=5))
    def post(self, key: int | str, text: str | None) -> None:
        # Wire core 7.2: "as received"; a text is a key.
        payload: dict[str, object] = {"key": key, "package_name": "p", "text": text}
        assert self.buffer.post("1", payload)
        if isinstance(key, str) and key:
            self.kept = [each for each in self.kept if each.get("key") != key]
        self.kept.append(dict(payload))
        payload["key"] = "changed later"

    @rule(beyond=st.integers(-1, 1))
    def post_a_long_one(self, beyond: int) -> None:
        frame = len(dumps({"text": ""}))
        payload = {"text": "x" * (inbox.MAX_NOTIFICATION - frame + beyond)}
        assert self.buffer.post("1", payload) is (beyond <= 0)
        if beyond <= 0:
            self.kept.append(dict(payload))

    @rule(beside=st.integers(-1, 1))
    def post_many(self, beside: int) -> None:
        for number in range(inbox.MAX_NOTIFICATIONS + beside):
            self.post(number, None)

    @invariant()
    def the_newest_hundred_newest_first(self) -> None:
        # Spec "Limits"; wire core 7.3: "newest first".
        newest = self.kept[-inbox.MAX_NOTIFICATIONS :][::-1]
        for limit in (1, 2, inbox.MAX_NOTIFICATIONS + 1):
            same = self.buffer.recent(limit) == newest[:limit]
            assert same  # a plain assert would print a comparison of long texts


TestNotificationsAgainstAModel = NotificationsAgainstAModel.TestCase
TestNotificationsAgainstAModel.settings = settings(max_examples=20, stateful_step_count=15)
