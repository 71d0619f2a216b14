import pytest

from svc_proto.api.chat.titles import base_title, check_session_id, clean_title, title_of_copy
from svc_proto.basics.errors import Refused


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (None, None),
        ("", None),
        (" \t\n ", None),
        ("\u200b\u202e", None),
        ("  Trip \t plan\r\n for\u00a0 May ", "Trip plan for May"),
        ("a\x00b\x1b[31mc\u200d\u2066d", "ab[31mcd"),
        ("x" * 100, "x" * 100),
        ("x" * 100 + "   ", "x" * 100),
        ("Grüße 🎉", "Grüße 🎉"),
    ],
)
def test_titles_are_cleaned(given: object, title: str | None) -> None:
    assert clean_title(given) == title


@pytest.mark.parametrize("given", [7, True, ["x"], {"a": 1}, "x" * 101])
def test_bad_titles(given: object) -> None:
    with pytest.raises(Refused) as caught:
        clean_title(given)
    assert (caught.value.status, caught.value.code) == (400, "invalid_title")


@pytest.mark.parametrize(
    ("title", "stem"), [("Trip", "Trip"), ("Trip #2", "Trip"), ("Trip # 2", "Trip # 2"), ("#2", "#2"), (" #2", " #2")]
)
def test_stems(title: str, stem: str) -> None:
    assert base_title(title) == stem


@pytest.mark.parametrize(
    ("title", "taken", "copy"),
    [
        ("Trip", [], "Trip #2"),
        ("Trip", ["Trip", "Trip #2", "Trip #x", "Other #9", "Trip #1 #7"], "Trip #3"),
        ("Trip #2", ["Trip #2"], "Trip #3"),
        ("Trip #9", [], "Trip #2"),
        ("Trip", ["Trip", "Trip #4"], "Trip #5"),  # the numbers of deleted sessions are not reused
        ("x" * 100, [], "x" * 97 + " #2"),
    ],
)
def test_titles_of_copies(title: str, taken: list[str], copy: str) -> None:
    assert title_of_copy(title, taken) == copy


@pytest.mark.parametrize("given", ["x", "api_1_abc", "5f0d6c1e-2b57-4b53-9a0e-0f6f0c3f9a11", "é", "x" * 256, "a.b"])
def test_ids_of_clients(given: str) -> None:
    assert check_session_id(given) == given


@pytest.mark.parametrize(
    "given", ["", "x" * 257, "a\nb", "a\r", "a\x00", "..", "a..b", "a/b", "a\\b", "C:x", "c:\\x", 7, None, ["x"]]
)
def test_bad_ids(given: object) -> None:
    with pytest.raises(Refused) as caught:
        check_session_id(given)
    assert (caught.value.status, caught.value.code) == (400, "invalid_session_id")
