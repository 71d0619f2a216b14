import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.voice.speech_text import clean_for_speech
from svc_proto.wire.limits import MAX_TEXT

CASES = {
    "Hello there.": "Hello there.",
    "before\n```python\nprint(1)\n```\nafter": "before\n\nafter",
    "never closed ```code": "never closed",
    "It ran `🔧 terminal` and `ls -l`.": "It ran and ls -l.",
    "See [the page](https://example.com/a_(b)) now": "See the page now",
    "![a cat](cat.png)": "a cat",
    "Look at https://example.com/x?y=1 please": "Look at please",
    "At <https://example.com> or www.example.com.": "At or",
    "**bold**, *italic*, __strong__ and _soft_": "bold, italic, strong and soft",
    "snake_case_name and 2 * 3 * 4": "snake_case_name and 2 * 3 * 4",
    "# Title\n## Part\ntext": "Title\nPart\ntext",
    "- one\n* two\n+ three": "one\ntwo\nthree",
    "above\n---\nbelow\n* * *\nend": "above\n\nbelow\n\nend",
    "✅ done ⚠️ careful": "done careful",
    "a\n\n\n\n\nb": "a\n\nb",
    "a\r\nb\rc": "a\nb\nc",
    "one\x00two\x1b[31m three\x7f\x85four": "one two [31m three four",
    "a\tb": "a\tb",
    "[a [b](https://example.com) c": "[a b c",
    "```only code```": "",
    "🔧": "",
    "  \n ": "",
}


@pytest.mark.parametrize("text", CASES)
def test_text_for_speech(text: str) -> None:
    assert clean_for_speech(text) == CASES[text]


@given(st.text(max_size=200))
def test_any_text_is_accepted_and_gets_no_longer(text: str) -> None:
    said = clean_for_speech(text)
    assert len(said) <= len(text)
    assert said == said.strip()


@pytest.mark.parametrize(
    "piece", ["[", "![", "](", "[a](", "**a", "*a ", "_a ", "`", "`🔧", "- ", "-", "# ", "http://", "~~~", "\n", " "]
)
def test_no_text_takes_long(piece: str) -> None:
    """Limit the processor time for four times the longest text, so that quadratic behaviour shows."""
    began = time.process_time()
    clean_for_speech(piece * (4 * MAX_TEXT // len(piece)))
    assert time.process_time() - began < 1.0
