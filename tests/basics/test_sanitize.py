import pytest

from svc_proto.basics.sanitize import is_printable_ascii, sanitize_line, sanitize_text


def test_the_letters_of_a_token() -> None:
    assert [code for code in range(0x250) if is_printable_ascii(chr(code))] == list(range(0x21, 0x7F))
    assert [is_printable_ascii(text) for text in ("", "svc_0-Z", "svc 0", "svc\ud800")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (" a\r\nb\tc ", "a b c"),
        ("\x1b]0;x\x07y", "]0;x y"),
        ("a\u202eb\u200bc\x9bd", "a b c d"),
        ("a\u061cb\u2069c\u2060d\u206ae", "a b c d e"),
        ("x" * 300, "x" * 200),
        ("a\U000e0041b\U000e007fc", "a b c"),
        ("h\u00e9 \U0001f600", "h\u00e9 \U0001f600"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert sanitize_line(text) == shown


def test_readable_keeps_lines() -> None:
    assert sanitize_text(" a\r\nb\tc\x1b[2J\u202e \U000e0041\n\nd" + "x" * 300) == " a\nb    c [2J   \n\nd" + "x" * 300
