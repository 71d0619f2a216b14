import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.model_refusal import ModelRefusal, Problem, parse_refusal

REQUEST = {
    "model": "m",
    "messages": [],
    "stream": True,
    "stream_options": {},
    "tools": [{}],
    "max_tokens": 900,
    "parallel_tool_calls": True,
    "top_k": 3,
    "stop": ["x"],
}


def problem_of(status: int | None, report: object) -> Problem | None:
    return next(iter(refusal_of(status, report).problems), None)


def refusal_of(status: int | None, report: object) -> ModelRefusal:
    return parse_refusal(status, report if isinstance(report, str) else json.dumps(report), REQUEST)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "gemma3:4b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use. Try disabling"),
        (400, "`tool calling` is not supported with this model"),
        (400, "Function calling is not enabled for models/gemma-3-4b-it"),
        (501, "function calls are not implemented"),
        (400, "此模型不支持工具调用"),
        (400, "Das Modell unterstützt keine Werkzeuge"),
        (400, "Ce modèle ne prend pas en charge les outils"),
        (None, "this model cannot use tools"),
    ],
)
def test_tools_are_refused_in_any_words(status: int | None, text: str) -> None:
    for report in (
        text,
        {"error": text},
        [{"error": {"message": text}}],
        {"detail": text},
        {"object": "error", "message": text},
    ):
        assert problem_of(status, report) is Problem.TOOLS


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        ({"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}, Problem.TOOLS),
        ({"error": {"message": "unknown", "param": "tools[0].function"}}, Problem.TOOLS),
        ({"error": {"message": "unknown", "param": "tool_choice"}}, Problem.TOOLS),
        ({"detail": [{"loc": ["body", "stream_options", "include_usage"], "msg": "extra"}]}, Problem.STREAM_OPTIONS),
        ({"detail": [{"loc": ["body"], "msg": "unknown field stream_options"}]}, Problem.STREAM_OPTIONS),
        ({"message": "Unrecognized request argument supplied: parallel_tool_calls"}, Problem.PARALLEL_TOOL_CALLS),
        ({"error": "'max_tokens' is not supported, use 'max_completion_tokens'"}, Problem.MAX_TOKENS),
        ({"error": "unexpected: max_tokens"}, Problem.MAX_TOKENS),
        (
            {"error": "max_tokens is too large: 900. This model supports at most 512 completion tokens"},
            Problem.OUTPUT_LIMIT,
        ),
        ({"error": "unknown member 'stop'"}, Problem.OPTION),
        ({"error": "top_k: extra"}, Problem.OPTION),
        (
            {"detail": [{"loc": ["body", "messages", 1, "reasoning_content"], "msg": "Extra inputs"}]},
            Problem.EXTRA_MEMBERS,
        ),
        ({"detail": [{"loc": ["body", "messages", 1, "note"], "msg": "Extra inputs"}]}, Problem.EXTRA_MEMBERS),
        ({"error": "property 'reasoning_content' is unsupported"}, Problem.EXTRA_MEMBERS),
        ({"error": "the following must be satisfied: property 'reasoning' is unsupported"}, Problem.EXTRA_MEMBERS),
        ({"error": "maximum prompt length is 8192 but the request contains 9000 tokens"}, Problem.CONTEXT),
        ({"error": "`inputs` tokens + `max_new_tokens` must be <= 8192"}, Problem.CONTEXT),
        ({"error": "Missing `reasoning_content` field in the assistant message"}, Problem.REASONING_MISSING),
        ({"error": "Function call is missing a thought_signature"}, Problem.REASONING_MISSING),
        ({"error": "Conversation roles must alternate user/assistant/user/assistant/..."}, Problem.ROLE_ORDER),
        ({"error": "Unexpected role 'user' after role 'user'"}, Problem.ROLE_ORDER),
        ({"error": "Expected last role User or Tool (or Assistant with prefix True)"}, Problem.ROLE_ORDER),
        ({"error": "System role not supported"}, Problem.SYSTEM_ROLE),
        ({"error": "Developer instruction is not enabled for models/gemma-3-4b-it"}, Problem.SYSTEM_ROLE),
        ({"error": "image input is not supported - hint: you may need to provide the mmproj"}, Problem.IMAGES),
        ({"error": "messages[0].content must be a string"}, Problem.IMAGES),
        ({"error": "streaming is not supported by this model"}, Problem.STREAM),
        ({"error": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."}, Problem.TOOL_IDS),
        ({"error": "This model's maximum context length is 8192 tokens."}, Problem.CONTEXT),
        ({"error": {"error": {"metadata": '{"error": "prompt is too long"}'}}}, Problem.CONTEXT),
        ({"error": "bad luck"}, None),
        ({"error": ["prompt is too long"]}, Problem.CONTEXT),
        ("", None),
        ("<html><title>Request too large</title></html>", Problem.CONTEXT),
    ],
)
def test_problem_of_a_report(report: object, problem: Problem | None) -> None:
    assert problem_of(400, report) is problem


@pytest.mark.parametrize("status", [500, 502, None])
def test_internal_error_that_mentions_a_function_is_not_about_tools(status: int | None) -> None:
    assert problem_of(status, "error in function forward()") is None


@pytest.mark.parametrize("status", [401, 402, 429])
def test_statuses_without_a_problem(status: int) -> None:
    found = refusal_of(status, {"error": "tools are not supported"})
    assert (found.problems, found.text) == ((), "tools are not supported")


@pytest.mark.parametrize(
    ("text", "size", "limit"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 9000, 8192),
        ("maximum context length is 8,192 tokens, you requested 10,500 tokens (9,000 in the messages)", 10_500, 8192),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 5000, 4096),
        ("prompt is too long: 210000 tokens > 200000 maximum", 210_000, 200_000),
        ("The input token count (40000) exceeds the maximum number of tokens allowed (32768).", None, 32_768),
        ("the prompt is too long", None, None),
        ("context size exceeded: at most 4 messages", None, None),
    ],
)  # fmt: skip
def test_numbers_of_an_overflow(text: str, size: int | None, limit: int | None) -> None:
    found = refusal_of(400, {"error": {"message": text}})
    assert (found.problems[0], found.size, found.limit) == (Problem.CONTEXT, size, limit)


def test_named_numbers_of_an_overflow_and_deep_reports() -> None:
    error = {"message": "too long", "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}
    found = refusal_of(400, {"error": error})
    assert (found.size, found.limit) == (5000, 4096)
    assert problem_of(413, "") is Problem.CONTEXT
    report: object = "tools"
    for _ in range(15):
        report = {"error": [report]}
    assert refusal_of(400, json.dumps(report)).problems == ()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Invalid 'tools': array too long. Expected an array with maximum length 128, but got length 165", 128),
        ("too many tools", None),
        ("at most 64 tools", 64),
    ],
)
def test_limit_of_tools(text: str, limit: int | None) -> None:
    found = refusal_of(400, {"error": {"message": text}})
    assert (found.problems[0], found.limit) == (Problem.TOOL_COUNT, limit)


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
    assert refusal_of(400, report).text == text


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
