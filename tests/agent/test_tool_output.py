import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.tool_output import MAX_OUTPUT, fit_output, output_limit
from svc_proto.basics import strict_json


@pytest.mark.parametrize(("context", "limit"), [(None, MAX_OUTPUT), (4_096, 3_072), (1_000_000, MAX_OUTPUT)])
def test_limit_follows_the_context(context: int | None, limit: int) -> None:
    assert output_limit(context) == limit


def test_text_is_cut_between_lines() -> None:
    text = "\n".join(f"{number} line" for number in range(100))
    *lines, note = fit_output(text, 200).split("\n")
    assert lines == text.split("\n")[: len(lines)]
    assert note == f"(cut: {100 - len(lines)} more lines are too long for one result)"
    assert fit_output(text, len(text)) == text
    assert fit_output("x" * 300, 100) == "x" * 72 + "\n[cut: the rest is too long]"


def test_json_is_cut_between_items() -> None:
    body: dict[str, Any] = {"short": [1], "entries": [{"n": number} for number in range(100)], "count": 100}
    text = fit_output(strict_json.dumps(body), 200)
    assert fit_output(strict_json.dumps(body), len(text)) == text
    found = json.loads(text)
    assert (found["count"], found["short"], found["left_out"] + len(found["entries"])) == (100, [1], 100)
    assert found["entries"] == body["entries"][: len(found["entries"])]


@pytest.mark.parametrize("text", ['{"a":"%s"}' % ("x" * 300), '{"a":"%s","b":[1]}' % ("x" * 300), "{" + "x" * 300])
def test_other_json_is_cut_as_text(text: str) -> None:
    assert fit_output(text, 100) == text[:72] + "\n[cut: the rest is too long]"


@given(st.lists(st.text(max_size=40), max_size=60), st.integers(100, 400))
def test_result_is_never_longer_than_its_limit(lines: list[str], limit: int) -> None:
    for text in ("\n".join(lines), strict_json.dumps({"rows": lines})):
        assert len(fit_output(text, limit)) <= max(limit, 0)
