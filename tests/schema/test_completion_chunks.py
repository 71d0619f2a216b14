import pytest

from svc_proto.schema.completion_chunks import chunk_text_fast, content_as_text


def test_chunks_with_text_only() -> None:
    choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": None, "message": None}
    assert chunk_text_fast({"id": "c", "choices": [choice, {"delta": {"content": "other"}}], "usage": None}) == "Hi"


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": []},
        {"choices": {"delta": {"content": "Hi"}}},
        {"choices": ["Hi"]},
        {"choices": [{"delta": "Hi"}]},
        {"choices": [{"delta": {}}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"content": "Hi", "role": "assistant"}}]},
        {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]},
        {"choices": [{"delta": {"content": "Hi"}, "message": {}}]},
        {"choices": [{"delta": {"content": "Hi"}}], "error": "no"},
        {"choices": [{"delta": {"content": "Hi"}}], "usage": {"prompt_tokens": 1}},
    ],
)
def test_other_chunks(chunk: dict[str, object]) -> None:
    assert chunk_text_fast(chunk) == ""


def test_text_in_content_parts() -> None:
    given: list[object] = ["a", "", None, 5, []]
    assert [content_as_text(value) for value in given] == ["a", "", "", "", ""]
    assert content_as_text([{"text": "a"}, 7, {"type": "image"}, {"text": [{"text": "b"}]}]) == "ab"
