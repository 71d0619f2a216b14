import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.voice.speech_text import clean_for_speech
from svc_proto.wire.limits import MAX_TEXT

CASES: dict[str, str] = yaml.safe_load(Path(__file__).with_name("speech_text.yaml").read_text("utf-8"))


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
