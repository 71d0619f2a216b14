import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.model_refusal import ModelRefusal, parse_refusal
from tests.support.tables import read_table

REQUEST = {"model": "m", "messages": [], "stream": True, "stream_options": {}, "tools": [{}], "max_tokens": 900}
REQUEST |= {"parallel_tool_calls": True, "top_k": 3, "stop": ["x"]}


def refusal_of(status: int | None, report: object) -> ModelRefusal:
    return parse_refusal(status, report if isinstance(report, str) else json.dumps(report), REQUEST)


@pytest.mark.parametrize("row", read_table("tests/agent/model_refusals.tsv"), ids=lambda row: row["report"])
def test_problem_and_numbers_of_a_report(row: dict[str, str]) -> None:
    """Try each row of reports as servers send them, a text in every form that servers put one in."""
    text = row["report"]
    reports: list[object] = [text, {"error": text}, [{"error": {"message": text}}], {"detail": text}]
    if text.startswith("{"):
        reports = [json.loads(text)]
    for report in reports:
        found = refusal_of(int(row["status"]) if row["status"] else None, report)
        assert [problem.name for problem in found.problems[:1]] == [row["problem"]] * bool(row["problem"])
        assert (found.size, found.limit) == tuple(int(row[name]) if row[name] else None for name in ("size", "limit"))


def test_deep_reports() -> None:
    report: object = "tools"
    for _ in range(15):
        report = {"error": [report]}
    assert refusal_of(400, json.dumps(report)).problems == ()


@pytest.mark.parametrize(
    ("report", "text"),
    [
        *((report, "why") for report in ([{"error": {"message": "why"}}], "why", {"fault": {"faultstring": "why"}})),
        ("<html><head><title>413 why</title></head></html>", "413 why"),
        ("<p>why</p>", "why"),
        ({"object": "error", "message": "why"}, "why"),
        (
            {"error": {"message": "Provider error", "metadata": {"raw": '{"error": {"message": "why"}}'}}},
            "Provider error: why",
        ),
        ({"error": {"message": "Provider error", "metadata": {"raw": "why"}}}, "Provider error: why"),
        ({"detail": [{"loc": ["body", 3], "msg": "why"}]}, "why"),
    ],
)
def test_text_for_people(report: object, text: str) -> None:
    assert refusal_of(400, report).text == refusal_of(401, report).text == text


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "detail", "loc", "param", "n_ctx"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.sampled_from([None, 400, 413, 500]), JSON)
def test_any_report_is_read(status: int | None, report: object) -> None:
    found = parse_refusal(status, report, REQUEST)
    assert found.limit is None or found.limit > 0
    assert parse_refusal(status, json.dumps(report), REQUEST).problems == found.problems or isinstance(report, str)
