from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.api.content import (
    MAX_MESSAGES,
    MAX_PARTS,
    parse_apps,
    parse_conversation,
    parse_history,
    parse_prompt,
    parse_text,
)
from svc_proto.basics.errors import Refused

PNG = "data:image/png;base64,aGk="
FILE = {"contentType": "image/png"}


def text(value: str) -> dict[str, object]:
    return {"type": "text", "text": value}


def image(url: str, **more: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def refusal(call: Any, *args: Any, **named: Any) -> tuple[int, str | None, object]:
    with pytest.raises(Refused) as refused:
        call(*args, **named)
    return refused.value.status, refused.value.code or None, refused.value.extra.get("field")


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ({"message": "Hi"}, "Hi"),
        ({"input": "Hi"}, "Hi"),
        ({"message": None, "input": "Hi"}, "Hi"),
        ({"message": "one", "input": "two"}, "one"),
        ({"message": ["a", text("b"), {"type": "input_text", "text": "c"}]}, "a\nb\nc"),
        ({"message": "a\x00b"}, "ab"),
        ({"message": "x" * 1_000_000 + "END"}, "x" * 1_000_000 + "END"),
        ({"message": ["x"] * MAX_PARTS}, "\n".join(["x"] * MAX_PARTS)),
        ({"message": [image(PNG)]}, (image(PNG),)),
        (
            {"message": [text("Look"), {"type": "input_image", "image_url": " http://x.example/a.png "}]},
            (text("Look"), image("http://x.example/a.png")),
        ),
        ({"message": [image("http://x" + "a" * 8_184)]}, (image("http://x" + "a" * 8_184),)),
        ({"message": [image(PNG, detail="low")]}, (image(PNG, detail="low"),)),
        ({"message": [text("a"), text("b"), image(PNG)]}, (text("a"), text("b"), image(PNG))),
        (
            {"message": "Look", "attachments": [{"contentType": "image/jpeg", "content": "aG\nk="}]},
            (text("Look"), image("data:image/jpeg;base64,aGk=")),
        ),
        ({"attachments": [{"contentType": "image/jpeg", "content": "aGk="}]}, (image("data:image/jpeg;base64,aGk="),)),
        ({"message": "Hi", "attachments": [{"contentType": "text/plain", "content": "aGk="}, 7, {}]}, "Hi"),
        ({"message": "Hi", "attachments": "none"}, "Hi"),
    ],
)
def test_a_message(body: dict[str, object], content: object) -> None:
    assert parse_prompt(body) == content


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_message", "message"),
        ({"message": ""}, "missing_message", "message"),
        ({"message": " \t\u200b\u200e"}, "missing_message", "message"),
        ({"input": []}, "missing_message", "input"),
        ({"message": [text(" ")]}, "missing_message", "message"),
        ({"message": 7}, "invalid_content_part", "message"),
        ({"message": {"type": "text"}}, "invalid_content_part", "message"),
        ({"message": [7]}, "invalid_content_part", "message[0]"),
        ({"message": ["a", {"type": "text", "text": 7}]}, "invalid_content_part", "message[1].text"),
        ({"message": [{}]}, "invalid_content_part", "message[0].type"),
        ({"message": [{"type": "video"}]}, "unsupported_content_type", "message[0].type"),
        ({"message": [{"type": "image_url"}]}, "invalid_image_url", "message[0].image_url"),
        ({"message": [{"type": "image_url", "image_url": {}}]}, "invalid_image_url", "message[0].image_url"),
        ({"message": [image("file:///etc/passwd")]}, "invalid_image_url", "message[0].image_url"),
        ({"message": [image("data:text/html,x")]}, "invalid_image_url", "message[0].image_url"),
        ({"message": [image("http://x" + "a" * 8_185)]}, "invalid_image_url", "message[0].image_url"),
        ({"message": [image("http://x y")]}, "invalid_image_url", "message[0].image_url"),
        ({"attachments": [{**FILE, "content": "not base64!"}]}, "invalid_image_url", "attachments[0].content"),
        ({"attachments": [FILE]}, "invalid_image_url", "attachments[0].content"),
    ],
)
def test_invalid_messages(body: dict[str, object], code: str, param: str) -> None:
    assert refusal(parse_prompt, body) == (400, code, param)


def test_a_text_under_several_names() -> None:
    names = ("system_message", "instructions")
    assert parse_text({}, names) == ""
    assert parse_text({"system_message": None, "instructions": " Be kind. "}, names) == "Be kind."
    assert parse_text({"system_message": "x" * 100_000}, names) == "x" * 100_000
    refused = refusal(parse_text, {"instructions": ["x"]}, names, code="invalid_system_message")
    assert refused == (400, "invalid_system_message", "instructions")


def test_a_conversation() -> None:
    talk = parse_conversation(
        [
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": [text("And"), text("brief."), image(PNG)]},
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "1", "tool_calls": [{}]},
            {"role": "assistant", "content": None, "tool_calls": [{}]},
            {"role": "tool", "content": {"any": "thing"}, "tool_call_id": "x"},
            {"role": "system", "content": ""},
            {"role": "user", "content": [text("Two"), image(PNG)]},
        ],
        "messages",
    )
    assert talk.system == "Be kind.\nAnd\nbrief."
    assert talk.history == ({"role": "user", "content": "One"}, {"role": "assistant", "content": "1"})
    assert talk.prompt == (text("Two"), image(PNG))


CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}
ASKED = {"role": "user", "content": "2 + 2?"}


def test_client_tool_calls_and_results() -> None:
    told = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    talk = parse_conversation([ASKED, CALLED, RESULT], "messages", whole=True)
    assert (talk.history, talk.prompt, talk.results) == ((ASKED, told, RESULT), "", (RESULT,))
    parts = {**RESULT, "content": [text("a"), text("b")]}
    talk = parse_conversation([ASKED, CALLED, RESULT, parts], "messages", whole=True)
    assert talk.results == (RESULT, {**RESULT, "content": "a\nb"})
    spoken = {"role": "assistant", "content": "4", "tool_calls": []}
    talk = parse_conversation([ASKED, CALLED, RESULT, spoken, {"role": "user", "content": "Sure?"}], "m", whole=True)
    assert talk.history == (ASKED, told, RESULT, {"role": "assistant", "content": "4"})
    assert (talk.prompt, talk.results) == ("Sure?", ())


@pytest.mark.parametrize(
    ("entries", "param"),
    [
        ([ASKED, CALLED], "m[1].tool_calls"),
        ([{**CALLED, "tool_calls": "x"}, RESULT], "m[0].tool_calls"),
        ([{**CALLED, "tool_calls": [7]}, RESULT], "m[0].tool_calls"),
        ([{**CALLED, "tool_calls": [{"id": "c1"}]}, RESULT], "m[0].tool_calls"),
        ([{**CALLED, "tool_calls": [{**CALL, "id": 7}]}, RESULT], "m[0].tool_calls"),
        ([{**RESULT, "tool_call_id": ""}], "m[0].tool_call_id"),
        ([{"role": "tool", "content": "4"}], "m[0].tool_call_id"),
        ([{**RESULT, "content": None}], "m[0].content"),
        ([{"role": "function", "content": "4"}], "m[0].role"),
    ],
)
def test_invalid_client_tool_calls(entries: list[object], param: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_conversation(entries, "m", whole=True)
    assert (caught.value.status, caught.value.extra["field"]) == (400, param)


def test_a_history_with_images() -> None:
    entries = [{"role": "user", "content": [image(PNG)]}, {"role": "system", "content": "x"}]
    called: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [{}]}
    assert parse_history([*entries, called, {"role": "user", "content": ""}], "h") == tuple(entries)


def test_too_many_entries_are_refused() -> None:
    entries: list[object] = [{"role": "user", "content": "x"}] * MAX_MESSAGES
    assert len(parse_conversation(entries, "messages").history) == MAX_MESSAGES - 1
    assert refusal(parse_conversation, [*entries, entries[0]], "messages") == (400, None, "messages")
    many = ["x"] * (MAX_PARTS + 1)
    assert refusal(parse_prompt, {"message": many}) == (400, "invalid_content_part", "message")
    assert refusal(parse_prompt, {"message": "x", "attachments": many}) == (400, "invalid_content_part", "attachments")


@pytest.mark.parametrize(
    ("value", "code", "param"),
    [
        (None, None, "messages"),
        ([], None, "messages"),
        ({}, None, "messages"),
        ([7], None, "messages[0]"),
        ([{"content": "x"}], None, "messages[0].role"),
        ([{"role": "robot", "content": "x"}], None, "messages[0].role"),
        ([{"role": "system", "content": ""}], None, "messages"),
        ([{"role": "user", "content": " "}], None, "messages[0].content"),
        ([{"role": "user", "content": [{"type": "file"}]}], "unsupported_content_type", "messages[0].content[0].type"),
    ],
)
def test_invalid_conversations(value: object, code: str | None, param: str) -> None:
    assert refusal(parse_conversation, value, "messages") == (400, code, param)


def test_invalid_histories() -> None:
    assert refusal(parse_history, "x", "h") == (400, None, "h")
    assert refusal(parse_history, [{"role": "tool", "content": "x"}], "h") == (400, None, "h[0].role")
    for lacking in ({"role": "user"}, {"role": "system", "content": None}):
        assert refusal(parse_history, [lacking], "h") == (400, None, "h[0].content")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["text", "image_url", PNG]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "image_url", "url", "role", "content", "contentType"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(value=JSON, attachments=JSON)
@settings(max_examples=50)
def test_anything_is_content_or_a_400(value: object, attachments: object) -> None:
    for call in (
        lambda: parse_prompt({"message": value, "attachments": attachments}),
        lambda: parse_conversation(value, "messages"),
        lambda: parse_history(value, "history"),
    ):
        try:
            call()
        except Refused as refused:
            status = refused.status
        else:
            status = 400
        assert status == 400


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_alone_are_the_question(role: str) -> None:
    found = parse_conversation([{"role": role, "content": "Say"}, {"role": role, "content": "hello."}], "messages")
    assert (found.system, found.history, found.prompt) == ("", (), "Say\nhello.")


def test_refusal_of_an_earlier_answer_is_text() -> None:
    parts = [{"type": "refusal", "refusal": "no"}, {"type": "refusal"}]
    rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": parts}, {"role": "user", "content": "b"}]
    assert parse_conversation(rows, "messages").history[1] == {"role": "assistant", "content": "no\n"}


def test_members_of_an_answer_stay_with_a_client_s_tools() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"s": 1}}
    more = {"reasoning_content": "hm", "name": "x", "note": None}
    answer = {"role": "assistant", "content": None, "tool_calls": [call], **more}
    rows = [{"role": "user", "content": "a"}, answer, {"role": "tool", "tool_call_id": "c1", "content": "4"}]
    kept = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "hm"}
    assert parse_conversation(rows, "messages", whole=True).history[1] == kept


def test_the_apps_of_a_task() -> None:
    assert parse_apps({}) == parse_apps({"apps": None}) == ()
    for apps in (("x",), 32 * ("y" * 255,)):
        assert parse_apps({"apps": [*apps]}) == apps
    for wrong in ([], ["a"] * 33, [""], [7], ["y" * 256], "org.x", {"a": 1}):
        assert refusal(parse_apps, {"apps": wrong}) == (400, None, "apps")


def test_reasoning_between_tags_is_no_part_of_an_answer() -> None:
    user = {"role": "user", "content": "Hi"}
    rows = [user, *({"role": "assistant", "content": text} for text in ("<think>\nhm</think>", "Hello")), user]
    assert [row["content"] for row in parse_conversation(rows, "messages").history] == ["Hi", "Hello"]
    asked = {"role": "user", "content": "<think>hm</think>"}
    assert parse_conversation([asked], "messages").prompt == asked["content"]
