from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.api.chat.records import Message
from svc_proto.api.runs.history import MAX_IMAGES, MAX_TEXT, build_history


def row(role: str, content: Any = "", *, calls: tuple[str, ...] = (), answers: str | None = None) -> Message:
    row = Message(id="m", session_id="s", role=role, content=content, timestamp=0.0, tool_call_id=answers)
    return evolve(row, tool_calls=tuple(map(wanted, calls)))


def wanted(call: str) -> dict[str, object]:
    return {"id": call, "type": "function", "function": {"name": "t", "arguments": "{}"}}


def result(call: str, content: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call, "content": content}


INTERRUPTED = "interrupted: this call was cut off, and nothing is known of its result"


def test_a_whole_conversation() -> None:
    image = ({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},)
    rows = [
        row("user", "Hi"),
        row("assistant", "Look.", calls=("a", "b")),
        row("tool", "B", answers="b"),
        row("tool", "A", answers="a"),
        row("assistant", "Done."),
        row("user", image),
        row("system", "note"),
    ]
    assert build_history(rows) == (
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Look.", "tool_calls": [wanted("a"), wanted("b")]},
        result("a", "A"),
        result("b", "B"),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": list(image)},
        {"role": "system", "content": "note"},
    )


def test_interrupted_calls_get_a_result() -> None:
    rows = [row("user", "Hi"), row("assistant", calls=("a", "b")), row("tool", "A", answers="a"), row("user", "Again")]
    assert build_history(rows)[2:4] == (result("a", "A"), result("b", INTERRUPTED))
    assert build_history(rows[:2])[-2:] == (result("a", INTERRUPTED), result("b", INTERRUPTED))


def test_invalid_rows_are_omitted() -> None:
    rows = [
        row("tool", "no call", answers="a"),  # the call is before the window
        row("user", "Hi"),
        row("user", "Hi?"),
        row("assistant", ""),
        row("assistant", "x", calls=("a",)),
        row("tool", "other", answers="zzz"),
        row("tool", "none"),
        row("tool", ({"type": "text", "text": "odd"},), answers="a"),
    ]
    assert build_history(rows) == (
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": "Hi?"},
        {"role": "assistant", "content": "x", "tool_calls": [wanted("a")]},
        result("a", INTERRUPTED),
    )
    assert build_history([]) == ()


def test_of_a_long_history_the_newest_whole_turns_are_given() -> None:
    half = "x" * (MAX_TEXT // 2)
    rows = [
        row("user", "first"),
        row("assistant", half + "y" * 1000),
        row("user", "second"),
        row("assistant", "", calls=("a",)),
        row("tool", half[:-1000], answers="a"),
        row("assistant", "done"),
    ]
    assert [message["content"] for message in build_history(rows)] == ["second", "", half[:-1000], "done"]
    assert len(build_history(rows[:4])) == 5  # all messages fit
    assert [len(build_history([row("user", "x" * size)])) for size in (MAX_TEXT, MAX_TEXT + 1)] == [1, 0]
    assert build_history([row("user", "x"), row("assistant", "y" * MAX_TEXT)]) == ()


def test_old_images_are_named_only() -> None:
    def shown(size: int) -> tuple[dict[str, object], ...]:
        return ({"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "d" * size}})

    rows = [row("user", shown(100)), row("user", shown(MAX_IMAGES)), row("user", "Hi")]
    old, new, _ = build_history(rows)
    assert new["content"] == list(shown(MAX_IMAGES))
    texts = ("Look", "[an image that was sent earlier]")
    assert old["content"] == [{"type": "text", "text": text} for text in texts]


ROWS = st.builds(
    row,
    st.sampled_from(["user", "assistant", "tool"]),
    st.text(max_size=3),
    calls=st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple),
    answers=st.sampled_from([None, "a", "b", "c"]),
)


@given(rows=st.lists(ROWS, max_size=12))
@settings(max_examples=50)
def test_every_call_is_followed_by_one_result(rows: list[Message]) -> None:
    open_calls: list[str] = []
    for message in build_history(rows):
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            continue
        assert not open_calls
        open_calls = [call["id"] for call in message.get("tool_calls", [])]  # type: ignore[attr-defined]  # a list
    assert not open_calls
