"""Language of a requested page by cookie and `Accept-Language`, and the texts of pages and errors in it."""

import pytest

from svc_proto.engine.page_language import LANGUAGES, MAX_RANGES, PageTexts, find_language, page_texts
from svc_proto.wire.events import Headers


def language(accepted: bytes = b"", *cookies: bytes) -> str:
    fields = [(b"accept-language", accepted)] if accepted else []
    return find_language(Headers((*fields, *((b"cookie", each) for each in cookies))))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"fr;q=0.5, de;q=0.5"], "fr"),  # the first of equal ones
        ([b"de;q=2, de;q=0.1234, de;level=1, de;q=, de;q"], "en"),  # no weights of RFC 9110
        ([b"", b"en-GB,de", b"it-IT,it;q=0.9", b"de;q=0", b"*", b";q=1,,-,\xff", b"deutsch"], "en"),
        ([b"it," * MAX_RANGES + b"de"], "en"),
        ([b"de", b"de-AT,de;q=0.9,en;q=0.8", b"it, fr;q=0.3, de;q=0.7", b"de;"], "de"),
        ([b"it," * (MAX_RANGES - 1) + b"de"], "de"),
        ([b"ES-mx"], "es"),
        ([b"zh-Hans-CN"], "zh"),
        ([b"de;q=0, fr;q=0.001", b"de ; q=0.4 , fr; q=1.000"], "fr"),
    ],
)
def test_the_preferred_language_of_the_browser_is_used(values: list[bytes], expected: str) -> None:
    for accepted in values:
        assert language(accepted) == expected


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        ((b"svc-relay-language=de",), "de"),
        ((b"a=b; svc-relay-language=zh; c=d",), "zh"),
        ((b"a=b", b"svc-relay-language=es"), "es"),
        ((b"svc-relay-language=en",), "en"),
        ((b"svc-relay-language=it",), "fr"),
        ((b"svc-relay-language=",), "fr"),
        ((b"svc-relay-language=\xff<script>",), "fr"),
        ((b"svc-relay-language=it; svc-relay-language=de",), "de"),
        ((b"x-svc-relay-language=de; svc-relay-languages=de; svc-relay-language",), "fr"),
    ],
)
def test_the_setting_goes_before_the_browser(cookies: tuple[bytes, ...], expected: str) -> None:
    assert language(b"fr", *cookies) == expected


def test_values_are_html_and_texts_are_escaped() -> None:
    assert LANGUAGES == ("en", "de", "es", "fr", "zh")
    german, english = page_texts(Headers(((b"accept-language", b"de"),))), PageTexts("en")
    assert german.html("{name} was refused.", name="<b>{name}</b>") == "<b>{name}</b> wurde abgelehnt."
    assert english.html("{name} was refused.", name="A&amp;B") == "A&amp;B was refused."
    with pytest.raises(KeyError):
        german.html("no text of a page")


def test_messages_of_errors_are_translated_or_marked_as_english() -> None:
    german, english = PageTexts("de"), PageTexts("en")
    assert german.error_html("this is not the password") == "Das ist nicht das Passwort"
    assert english.error_html("this is not the password") == "this is not the password"
    assert german.error_html("<b> is wrong") == '<span lang="en">&lt;b&gt; is wrong</span>'
    assert english.error_html("<b> is wrong") == "&lt;b&gt; is wrong"
