import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.profiles import profile_of, profile_path

# The lookup of a file is in tests/relay/routes/test_voice_basic.py, since the table needs files.


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("default", "/a/config.yaml"),
        ("work", "/a/profiles/work/config.yaml"),
        ("Ünique name", "/a/profiles/Ünique name/config.yaml"),
        ("..x", "/a/profiles/..x/config.yaml"),
        ("x" * 100, f"/a/profiles/{'x' * 100}/config.yaml"),
        ("😀" * 63 + "abc", f"/a/profiles/{'😀' * 63}abc/config.yaml"),  # 255 bytes
        ("😀" * 64, None),  # 256 bytes: longer than any folder name
        *((name, None) for name in (".", "..", "a/b", "a\\b", "a\nb", "x" * 101)),
    ],
)
def test_the_file_of_a_profile(name: str, path: str | None) -> None:
    assert profile_path("/a/config.yaml", name) == path


@pytest.mark.parametrize(
    ("query", "body", "name"),
    [
        ({}, None, None),
        ({}, {}, None),
        ({"profile": " "}, {"profile": None}, None),
        ({"profile": "a"}, {"profile": "b"}, "a"),
        ({}, {"profile": " b "}, "b"),
        ({}, {"profile": " "}, None),
    ],
)
def test_the_profile_that_a_request_names(
    query: dict[str, str], body: dict[str, object] | None, name: str | None
) -> None:
    assert profile_of(query, body) == name


def test_non_text_profile_is_refused() -> None:
    with pytest.raises(Refused, match="profile"):
        profile_of({}, {"profile": 5})
