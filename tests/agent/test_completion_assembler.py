import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.agent.completion_assembler import (
    MAX_CALLS,
    MAX_CHUNK,
    MAX_TEXT,
    CompletionAssembler,
    Delta,
    ModelResponseError,
)
from svc_proto.agent.interface import ReasoningDelta, TextDelta, TextRetracted
from tests.support.tables import read_table


def delta(**members: object) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": members}]})


def fed(*data: str) -> CompletionAssembler:
    assembly = CompletionAssembler()
    for each in data:
        list(assembly.feed(each))
    return assembly


def fragment(name: str = "", arguments: str | None = None, *, call: str | None = None, at: int | None = None) -> str:
    """Return a chunk with a piece of the tool call with the id `call` and the index `at`."""
    function = {"name": name or None, "arguments": arguments}
    members = {
        "id": call,
        "index": at,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return delta(tool_calls=[{key: value for key, value in members.items() if value is not None}])


def texts(delta: Delta) -> str:
    assert not isinstance(delta, TextRetracted)
    return delta.text


def wanted(assembly: CompletionAssembler) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in assembly.calls]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"content": "Hi"}, [TextDelta("Hi")]),
        *((members, []) for members in ({"content": ""}, {"content": None}, {"content": 5})),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 7]}, [TextDelta("ab")]),
        ({"refusal": "No."}, [TextDelta("No.")]),
        ({"reasoning": "hm"}, [ReasoningDelta("hm")]),
        ({"reasoning_content": "hm", "reasoning": "hm"}, [ReasoningDelta("hm")]),
        ({"reasoning_content": "", "thinking": "hm", "content": "so"}, [ReasoningDelta("hm"), TextDelta("so")]),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, [ReasoningDelta("hm")]),
        ({"tool_calls": "none"}, []),
    ],
)
def test_words(members: dict[str, object], told: list[object]) -> None:
    assembly = CompletionAssembler()
    assert list(assembly.feed(delta(**members))) == told
    assert assembly.begun is bool(told)


@pytest.mark.parametrize(
    "data", ["{}", "[]", "5", '{"choices": {}}', '{"choices": []}', '{"choices": [3]}', '{"choices": [{"delta": 1}]}']
)
def test_empty_chunks(data: str) -> None:
    assembly = fed(data)
    assert not assembly.begun
    assert not assembly.is_finished


def test_the_end_and_unfinished_answers() -> None:
    assembly = fed(delta(content="a"), '{"choices": [{"delta": {}, "finish_reason": "stop"}]}', " [DONE] ")
    assert (assembly.text, assembly.finish, assembly.done, assembly.is_finished) == ("a", "stop", True, True)
    assert fed('{"choices": [{"finish_reason": 4}]}').finish is None
    with pytest.raises(ModelResponseError, match="it reported an error"):
        fed('{"error": {"code": 500}}')
    with pytest.raises(ModelResponseError, match="it reported an error"):
        fed('{"choices": [{"error": {"code": 500}}]}')
    assert not fed('{"error": null}').begun
    assert fed('{"choices":[{"delta":{"content":"a\\ud83d"}}]}').text == "a\ufffd"
    chunks = [delta(reasoning="hm"), delta(signature="a", audio={"id": 1}), delta(signature="b")]
    assert fed(*chunks, fragment("tap", "{}")).extra == {"reasoning": "hm", "signature": "ab"}
    assert fed(*chunks).extra == {"signature": "ab"}


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 4)),
        ({"prompt_tokens": "3"}, (0, 0)),
        ({"prompt_tokens": True, "completion_tokens": -1}, (0, 0)),
        (None, (0, 0)),
    ],
)
def test_usage(usage: Any, counts: tuple[int, int]) -> None:
    assembly = fed(json.dumps({"choices": [], "usage": usage}))
    assert (assembly.input_tokens, assembly.output_tokens) == counts
    assembly = fed(json.dumps({"choices": [], "x_groq": {"usage": usage}}))
    assert (assembly.input_tokens, assembly.output_tokens) == counts


def test_whole_answer_and_its_usage() -> None:
    parts = [json.dumps({"usage": {"prompt_tokens": 5, "completion_tokens": count}}) for count in (1, 0, 3, 0)]
    assert fed(*parts[:3], '{"usage": null}').output_tokens == 3
    assert fed(*parts).output_tokens == 0
    message = {"content": "Hi", "tool_calls": [{"id": "a", "function": {"name": "tap", "arguments": "{}"}}]}
    assembly = fed(json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))
    assert (assembly.text, assembly.done, wanted(assembly)) == ("Hi", True, [("a", "tap", "{}")])


def parse_fragment(text: str) -> str:
    """Return the chunk of `index:id:name:arguments`; a part without text is absent, and one of '' is empty."""
    index, *parts = text.split(":", 3)
    call, name, arguments = ({"": None, "''": ""}.get(part, part) for part in parts)
    return fragment(name or "", arguments, call=call, at=int(index) if index else None)


@pytest.mark.parametrize("row", read_table("tests/agent/tool_call_fragments.tsv"), ids=lambda row: row["case"])
def test_calls(row: dict[str, str]) -> None:
    found = wanted(fed(*map(parse_fragment, row["fragments"].split(" | "))))
    assert [":".join(call) for call in found] == row["calls"].split(" | ")


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        # the form before `tool_calls`
        (
            [{"function_call": {"name": "tap", "arguments": ""}}, {"function_call": {"arguments": "{}"}}],
            ["", "tap", "{}"],
        ),
        # arguments as an object
        ([{"tool_calls": [{"id": "a", "function": {"name": "tap", "arguments": {"x": 1}}}]}], ["a", "tap", '{"x":1}']),
        # invalid input
        ([{"tool_calls": [5, {"function": 6, "id": 7}]}], ["", "", ""]),
        ([{"tool_calls": [{"function": {"name": "tap", "arguments": 8}}]}], ["", "tap", ""]),
    ],
)
def test_call_in_an_odd_form(deltas: list[dict[str, object]], calls: list[str]) -> None:
    assert wanted(fed(*(delta(**each) for each in deltas))) == [tuple(calls)]


def test_limits_of_calls() -> None:
    fragments = [fragment("tap", "{}", at=place) for place in range(MAX_CALLS)]
    assert len(fed(*fragments).calls) == MAX_CALLS
    with pytest.raises(ModelResponseError, match=f"more than {MAX_CALLS} tools"):
        fed(*fragments, fragment("tap", "{}", at=MAX_CALLS))
    half = "x" * (MAX_TEXT // 2)
    fed(fragment("tap", half, at=0), fragment(arguments=half, at=0))
    with pytest.raises(ModelResponseError, match="characters of arguments"):
        fed(fragment("tap", half, at=0), fragment(arguments=half, at=0), fragment(arguments="y", at=0))


@pytest.mark.parametrize("name", ["content", "reasoning"])
def test_too_long_text_is_cut(name: str) -> None:
    part = "x" * (MAX_TEXT // 2)
    assembly = fed(delta(**{name: part}))
    assert (assembly.full, assembly.is_finished) == (False, False)
    assert sum(len(texts(told)) for told in assembly.feed(delta(**{name: part + "yy"}))) == MAX_TEXT // 2
    assert (assembly.full, assembly.is_finished) == (True, True)
    assert list(assembly.feed(delta(**{name: "z"}))) == []
    assert len(assembly.text + assembly.reasoning) == MAX_TEXT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices", "delta", "message", "content", "text", "tool_calls", "index", "id", "function", "name",
                    "arguments", "usage", "prompt_tokens", "finish_reason", "reasoning", "error",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=50)
@given(deltas=st.lists(JSON, max_size=4))
def test_any_input_is_an_answer_or_an_error(deltas: list[object]) -> None:
    for data in deltas:
        for value in (data, {"choices": [{"delta": data}]}, {"choices": [{"delta": {"tool_calls": [data]}}]}):
            assembly = CompletionAssembler()
            try:
                told = list(assembly.feed(json.dumps(value)))
            except ModelResponseError:
                continue
            assert all(map(texts, told))
            assert assembly.text == "".join(each.text for each in told if isinstance(each, TextDelta))
            assert all(isinstance(part, str) for call in wanted(assembly) for part in call)


@pytest.mark.parametrize("content", ["Hi", "", None, 5, "x" * MAX_TEXT, "x" * (MAX_TEXT + 1)])
@pytest.mark.parametrize("more", [{}, {"error": ""}, {"usage": {}}, {"usage": {"prompt_tokens": 3}}])
def test_text_chunk_equals_a_fully_parsed_chunk(content: object, more: dict[str, object]) -> None:
    plain, closer = CompletionAssembler(), CompletionAssembler()
    plain_chunk = {"choices": [{"delta": {"content": content}, "finish_reason": None}], **more}
    closer_chunk = {"choices": [{"delta": {"content": content, "role": "assistant"}}], **more}
    for _ in range(2):
        told = [list(each.feed(json.dumps(data))) for each, data in ((plain, plain_chunk), (closer, closer_chunk))]
        assert told[0] == told[1]
    assert (plain.text, plain.full, plain.input_tokens) == (closer.text, closer.full, closer.input_tokens)


# --- chunks that differ only in their text ---

AROUND = ('{"id":"c","choices":[{"index":0,"delta":{"content":"', '"},"finish_reason":null}]}')
ODD_AROUND = (
    ('{"content":"a","choices":[{"delta":{"content":"', '"}}]}'),  # the first `content` is not the text
    ('{"choices":[{"delta":{"content":"', '"}}],"usage":null,"content":"a"}'),
    ('{"choices": [{"delta": {"content": "', '"}}]}'),
    ('{"choices":[{"delta":{"content" : "', '"}}]}'),
    ('{"choices":[{"delta":{"content":"', '"},"finish_reason":"stop"}]}'),
    ('{"choices":[{"delta":{"role":"assistant","content":"', '"}}]}'),
    (AROUND[0], AROUND[1] + " " * 16_384),
)
WORDS = ("a", "", "word ", "content", '\\"', "\\n", "\\u00e9", "é", "\\ud83d\\ude00", "\\ud800", "\t", '"', "a b", "c")


def same_as_parsed(chunks: list[str]) -> list[object]:
    """Return what the chunks yield, an error text included; require that the fast path and full parsing agree."""
    told = []
    for lessons in (8, 0):
        assembly, found = CompletionAssembler(), list[object]()
        assembly._template._lessons = lessons
        try:
            for chunk in chunks:
                found += assembly.feed(chunk)
        except ModelResponseError as problem:
            found.append(str(problem))
        told.append((found, assembly.text, assembly.finish, assembly.is_finished))
    assert told[0] == told[1]
    return told[0][0]


@given(st.lists(st.tuples(st.sampled_from((AROUND, AROUND, *ODD_AROUND)), st.sampled_from(WORDS)), max_size=12))
def test_fast_path_equals_full_parsing(drawn: list[tuple[tuple[str, str], str]]) -> None:
    same_as_parsed([f"{before}{words}{after}" for (before, after), words in drawn])


@given(st.lists(st.text(alphabet='{}[]":,\\contea n', max_size=30), max_size=4))
def test_invalid_chunk_is_refused_by_the_fast_path(drawn: list[str]) -> None:
    before, after = AROUND
    same_as_parsed([f"{before}a{after}", *(f"{before}{words}{after}" for words in drawn), *drawn])


LONGEST = (AROUND[0], AROUND[1].ljust(MAX_CHUNK - len(AROUND[0] + "one")))


@pytest.mark.parametrize("around", [AROUND, LONGEST, ODD_AROUND[1], ODD_AROUND[2]])
def test_second_similar_chunk_uses_the_fast_path(around: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assembly = CompletionAssembler()
    before, after = around
    assert list(assembly.feed(f"{before}one{after}")) == [TextDelta("one")]
    monkeypatch.setattr("svc_proto.agent.completion_assembler.strict_json.loads", pytest.fail)
    assert list(assembly.feed(f"{before}two{after}")) == [TextDelta("two")]


def test_fast_path_has_the_same_limits_and_ends_at_dissimilar_chunks() -> None:
    before, after = AROUND
    part = "x" * (MAX_TEXT // 128)
    chunks = [f"{before}{part}{after}"] * 132
    told = same_as_parsed(chunks)
    assert sum(len(delta.text) for delta in told if isinstance(delta, TextDelta)) == MAX_TEXT
    assembly = CompletionAssembler()
    for number in range(20):
        list(assembly.feed(f'{{"n":{number},{AROUND[0][1:]}a{AROUND[1]}'))
    assert assembly.text == "a" * 20
    assert assembly._template._lessons == 0


# --- deviations of servers ---


@pytest.mark.parametrize(
    ("chunks", "text", "reasoning"),
    [
        (["<th", "ink>Hm.</thi", "nk>Hello."], "Hello.", "Hm."),
        (["Hello <thin"], "Hello <thin", ""),
        (["</think>Hello."], "Hello.", ""),
        (["Hm.", "</think>", "Hello."], "Hello.", "Hm."),
    ],
)
def test_reasoning_in_tags(chunks: list[str], text: str, reasoning: str) -> None:
    assembly = fed(*(delta(content=each) for each in chunks))
    list(assembly.close())
    assert (assembly.text, assembly.reasoning, assembly.extra) == (text, reasoning, {})
    assert (assembly.answer_size, assembly.reasoning_size) == (len(text), len(reasoning))


@pytest.mark.parametrize(
    "data",
    [
        '{"choices":[{"delta":{"content":"Hi"},"logprobs":NaN}]}',
        '{"model":"a","model":"b","choices":[{"delta":{"content":"Hi","content":"Hi"}}]}',
        '{"created":1e999,"choices":[{"delta":{"role":"assistant","content":"Hi"},"finish_reason":""}]}',
        '\ufeff{"choices":[{"delta":{"content":"Hi","tool_calls":null,"audio":null}}]}',
    ],
)
def test_text_of_invalid_json(data: str) -> None:
    assert fed(data).text == "Hi"


def finish(reason: str | None = "stop", **members: object) -> str:
    return json.dumps({"choices": [{"delta": members, "finish_reason": reason}]})


@pytest.mark.parametrize(
    ("chunks", "ending"),
    [
        ([delta(content="a"), finish()], True),
        ([delta(content="a"), finish(), '{"choices":[],"usage":{"prompt_tokens":1}}'], True),
        *((chunks, False) for chunks in ([finish()], [finish(reasoning="hm")], [finish(content="a")])),
        ([finish(content="a"), finish()], False),
        ([finish(), delta(content="a"), finish()], False),
        ([delta(content="a"), finish(), delta(content="b")], False),
        ([delta(content="a"), finish(), delta(content="b"), finish()], False),
        ([delta(content="a"), finish("null"), finish("none")], False),
        ([fragment("tap", "{}"), finish("tool_calls")], True),
    ],
)
def test_finish_reason_at_the_end(chunks: list[str], ending: bool) -> None:
    assert fed(*chunks).is_ending is ending
