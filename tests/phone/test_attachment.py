from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.phone.attachment import (
    ATTACHMENT_TABLE,
    MAX_PATHS,
    Attachment,
    AttachmentState,
    MediaCache,
    MediaMarker,
    find_markers,
)
from svc_proto.phone.preferences import MIB, Preferences

SPEC_ROWS = {  # the five rows of SPEC.md; the other rows follow from them
    ("LOADING", "on cellular, auto-fetch off", "LOADING"),
    ("LOADING", "too large", "FAILED"),
    ("LOADING", "relay offline", "unavailable card"),
    ("LOADING", "sandbox violation", "unavailable card"),
    ("LOADING", "file not found", "unavailable card"),
}
IMPLIED_ROWS = {("LOADING", "tap", "LOADING"), ("LOADING", "fetched", "READY"), ("unavailable card", "tap", "LOADING")}
TOKEN = MediaMarker(token="abc_-1")
PATHS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("media_paths.yaml").read_text("utf-8"))


def test_the_table_is_the_specification() -> None:
    assert {(a.value, t.value, b.value) for (a, t), b in ATTACHMENT_TABLE.items()} == SPEC_ROWS | IMPLIED_ROWS


def test_attachment_is_fetched_at_once_on_wifi() -> None:
    attachment = Attachment(TOKEN, Preferences())
    assert attachment.wants_fetch
    assert not attachment.can_tap
    attachment.on_response(200, 25 * MIB)
    assert attachment.state is AttachmentState.READY
    assert attachment.message == ""
    attachment.on_response(404, 0)  # late and without effect
    assert attachment.state is AttachmentState.READY
    attachment.tap()
    assert not attachment.tapped


def test_attachment_waits_for_a_tap_on_cellular_and_after_a_failure() -> None:
    attachment = Attachment(TOKEN, Preferences(), on_cellular=True)
    assert (attachment.wants_fetch, attachment.can_tap) == (False, True)
    attachment.tap()
    assert (attachment.wants_fetch, attachment.can_tap) == (True, False)
    assert Attachment(TOKEN, Preferences(auto_fetch_on_cellular=True), on_cellular=True).wants_fetch
    attachment.on_response(None, 0)
    attachment.tap()
    assert attachment.wants_fetch
    assert attachment.message == ""


@pytest.mark.parametrize(
    ("status", "size", "state", "message"),
    [
        (200, 25 * MIB + 1, AttachmentState.FAILED, "file too large"),
        (None, 0, AttachmentState.UNAVAILABLE, "relay offline"),
        (502, 0, AttachmentState.UNAVAILABLE, "relay offline"),
        (403, 0, AttachmentState.UNAVAILABLE, "sandbox violation"),
        (404, 0, AttachmentState.UNAVAILABLE, "file not found"),
    ],
)
def test_the_card_names_the_reason(status: int | None, size: int, state: AttachmentState, message: str) -> None:
    attachment = Attachment(TOKEN, Preferences())
    attachment.on_response(status, size)
    assert (attachment.state, attachment.message) == (state, message)
    assert attachment.can_tap is (state is AttachmentState.UNAVAILABLE)


def test_markers_of_both_brands_and_of_paths() -> None:
    text = "see MEDIA:svc-relay://abc-1 and MEDIA:hermes-relay://x_2, or MEDIA:/tmp/a.png"
    assert find_markers(text) == [MediaMarker(token="abc-1"), MediaMarker(token="x_2"), MediaMarker(path="/tmp/a.png")]
    assert MediaMarker(token="abc").targets == ("/media/abc",)
    assert MediaMarker(path="/tmp/a b&c.png").targets == ("/media/by-path?path=%2Ftmp%2Fa%20b%26c.png",)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_in_running_text(path: str) -> None:
    for text in PATHS[path]:
        (marker,) = find_markers(text)
        possible = (marker.path, *marker.shorter)
        assert path in possible
        assert len(possible) <= MAX_PATHS


def test_longer_paths_are_tried_first_and_a_path_without_marks_once() -> None:
    (marker,) = find_markers("MEDIA:/x/a.b (1).pdf")
    assert (marker.path, *marker.shorter) == ("/x/a.b (1).pdf", "/x/a.b (1", "/x/a.b")
    assert find_markers("MEDIA:/x/r\u00e9sum\u00e9-1_2.final.txt") == [
        MediaMarker(path="/x/r\u00e9sum\u00e9-1_2.final.txt")
    ]


@given(st.text("/aM.,*)> \u3002\\%&;", max_size=60))
def test_any_text_has_bounded_paths(text: str) -> None:
    for marker in find_markers(f"MEDIA:/{text}MEDIA:/x"):
        assert marker.path
        assert len(set(marker.targets)) == len(marker.targets) <= MAX_PATHS


def test_paths_with_blanks() -> None:
    quoted = "MEDIA:\"/tmp/my photo.png\" MEDIA:'/a  b' MEDIA:`/c d`"
    assert [marker.path for marker in find_markers(quoted)] == ["/tmp/my photo.png", "/a  b", "/c d"]
    text = "MEDIA:/tmp/my photo.png is here MEDIA:/b\nMEDIA:/c \nbelow"
    first, second, third = find_markers(text)
    assert first.path == "/tmp/my photo.png is here"
    assert first.shorter == ("/tmp/my photo.png is", "/tmp/my photo.png", "/tmp/my")
    assert (second, third) == (MediaMarker(path="/b"), MediaMarker(path="/c"))
    assert find_markers("MEDIA:/ b") == [MediaMarker(path="/ b")]
    (long,) = find_markers("MEDIA:/1 2 3 4 5 6 7 8 9")
    assert (long.path, long.shorter[-1], len(long.shorter)) == ("/1 2 3 4 5 6 7 8", "/1", 7)


def test_the_longest_path_that_exists_is_fetched() -> None:
    marker = MediaMarker(path="/a b c", shorter=("/a b", "/a"))
    attachment = Attachment(marker, Preferences())
    for status, target in ((404, "%2Fa%20b%20c"), (403, "%2Fa%20b")):
        assert attachment.target == f"/media/by-path?path={target}"
        attachment.on_response(status, 0)
        assert attachment.wants_fetch
    attachment.on_response(404, 0)
    assert (attachment.state, attachment.message) == (AttachmentState.UNAVAILABLE, "file not found")
    attachment.tap()
    assert attachment.target == marker.targets[0]
    attachment.on_response(200, 5)
    assert attachment.state is AttachmentState.READY


def test_cache_evicts_the_oldest_and_a_larger_file() -> None:
    cache = MediaCache(Preferences(cache_cap_mb=50))
    assert cache.put("b", 20 * MIB, 2.0) == []
    assert cache.put("a", 20 * MIB, 1.0) == []
    assert cache.put("c", 10 * MIB + 1, 3.0) == ["a"]
    assert cache.put("d", 45 * MIB, 4.0) == ["b", "c"]
    assert cache.put("e", 5 * MIB, 5.0) == []
    assert cache.size == 50 * MIB
    cache = MediaCache(Preferences(cache_cap_mb=50))
    assert cache.put("a", 10 * MIB, 1.0) == []
    assert cache.put("huge", 60 * MIB, 2.0) == ["a", "huge"]
    assert cache.size == 0


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 80 * MIB), st.floats(0, 100)), max_size=20))
def test_the_cache_never_exceeds_its_cap(puts: list[tuple[str, int, float]]) -> None:
    cache = MediaCache(Preferences(cache_cap_mb=50))
    for name, size, modified in puts:
        cache.put(name, size, modified)
        assert cache.size <= 50 * MIB
