from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent import message_shapes

IMAGE = {"type": "image_url", "image_url": {"url": "data:,x"}}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: Any, *ids: str, **more: object) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "tap", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {}), **more}


def result(identity: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def parts(*texts: object) -> list[object]:
    return [{"type": "text", "text": text} if isinstance(text, str) else text for text in texts]


def test_images_extras_and_reasoning() -> None:
    rows = [user("a"), user(parts("Look", IMAGE, {"type": "text"}))]
    assert (message_shapes.has_images(rows), message_shapes.has_images(rows[:1])) == (True, False)
    assert message_shapes.without_images(rows) == [user("a"), user(f"Look\n{message_shapes.IMAGE_NOT_TAKEN}\n")]
    plain = said("x", "a")
    call = {**plain["tool_calls"][0], "extra": 1, "function": {"name": "tap", "arguments": "{}", "strict": True}}
    odd = {**plain, "reasoning_content": "hm", "tool_calls": [call, {"id": "b"}]}
    assert message_shapes.strip_extras([odd, user("a")]) == [
        {**plain, "tool_calls": [*plain["tool_calls"], {"id": "b"}]},
        user("a"),
    ]
    assert message_shapes.has_extras([odd]) is True
    assert message_shapes.has_extras([plain, user("a"), result("a")]) is False
    rows = [user("a"), said("x"), said("y", reasoning="hm")]
    assert message_shapes.with_reasoning(rows, "reasoning") == [user("a"), {**said("x"), "reasoning": ""}, rows[2]]


def test_calls_and_results_become_text() -> None:
    rows = [user("a"), said("I look.", "a"), result("a", "42"), said("", "b"), result("b"), said("So.")]
    assert message_shapes.without_tool_rows(rows) == [
        user("a"),
        {"role": "assistant", "content": "I look.\n[Called the tool tap with {}]"},
        user("[Result of a tool]\n42"),
        {"role": "assistant", "content": "[Called the tool tap with {}]"},
        user("[Result of a tool]\nok"),
        said("So."),
    ]


@given(st.text())
def test_short_ids(identity: str) -> None:
    short = message_shapes.short_id(identity)
    assert len(short) == 9
    assert short.isascii()
    assert short.isalnum()
    assert message_shapes.short_id(short) == short


def test_ids_are_shortened_alike() -> None:
    rows = [user("a"), said("", "call_1", "abcdefgh1"), result("call_1"), result("abcdefgh1")]
    _, answer, first, second = message_shapes.shorten_ids(rows)
    ids = [call["id"] for call in answer["tool_calls"]]  # type: ignore[attr-defined]  # a list
    assert ids == [first["tool_call_id"], second["tool_call_id"]] == [message_shapes.short_id("call_1"), "abcdefgh1"]


@pytest.mark.parametrize(
    ("rows", "folded"),
    [
        ([system("S"), user("a"), said("x"), user("b")], [user("S\n\na"), said("x"), user("b")]),
        ([system("S"), system("T"), user(parts("a", IMAGE))], [user(parts("S\n\nT", "a", IMAGE))]),
        ([user("a"), system("S")], [user("a"), user("S")]),
    ],
)
def test_system_messages_are_folded(rows: list[Any], folded: list[Any]) -> None:
    assert message_shapes.fold_system(rows) == folded


@pytest.mark.parametrize(
    ("rows", "alternating"),
    [
        ([system("S"), user("a"), user("b")], [system("S"), user("a\n\nb")]),
        ([user("a"), said("x"), said("y"), user("b")], [user("a"), said("x\n\ny"), user("b")]),
        ([system("S"), said("x"), user("b")], [system("S"), user(message_shapes.EMPTY_USER), said("x"), user("b")]),
        ([said("x")], [user(message_shapes.EMPTY_USER), said("x")]),
        ([user("a"), said("", "c"), result("c"), said("x")], [user("a"), said("", "c"), result("c"), said("x")]),
        ([user(""), user(parts("b", IMAGE))], [user(parts("b", IMAGE))]),
        ([user("a"), said(None), said("y"), system("S")], [user("a"), said("y"), user("S")]),
        ([system("S"), system("T")], [system("S"), system("T")]),
        ([user(parts(IMAGE)), user(None)], [user(parts(IMAGE))]),
    ],
)
def test_roles_alternate(rows: list[Any], alternating: list[Any]) -> None:
    assert message_shapes.alternate_roles(rows) == alternating
