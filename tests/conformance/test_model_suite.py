"""Test of the suite of a long chat, with a short one."""

from pathlib import Path

import pytest

from tests.conformance.model_suite import play
from tests.servers.llama_server import needs_model

pytestmark = [needs_model, pytest.mark.full]


def test_a_short_chat(tmp_path: Path) -> None:
    result = play(tmp_path, 6)
    assert result.failed == {}
    assert result.passed == 7
