import pytest

from svc_proto.basics.brand import HERMES, SVC, Brand, recognize_headers, spell_markers


@pytest.mark.parametrize("scheme", ["svc-relay", "hermes-relay"])
def test_media_markers_are_spelled_for_a_client(scheme: str) -> None:
    text = f"a MEDIA:{scheme}://t, {scheme}://pair and MEDIA:/x"
    assert spell_markers(text, HERMES) == f"a MEDIA:hermes-relay://t, {scheme}://pair and MEDIA:/x"
    assert spell_markers(text, SVC) == f"a MEDIA:svc-relay://t, {scheme}://pair and MEDIA:/x"


@pytest.mark.parametrize(
    ("names", "brand"),
    [
        ([b"host", b"x-hermes-session-id"], HERMES),
        ([b"x-svc-tool-progress", b"x-hermes-session-id"], SVC),
        ([b"host", b"x-hermes", b"accept"], None),
        ([], None),
    ],
)
def test_a_client_is_recognized_by_its_headers(names: list[bytes], brand: Brand | None) -> None:
    assert recognize_headers([(name, b"") for name in names]) is brand
