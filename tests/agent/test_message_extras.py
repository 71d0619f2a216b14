import pytest

from svc_proto.agent.interface import ToolCall
from svc_proto.agent.message_extras import MAX_EXTRA, ExtraMembers, call_row


def collected(*pieces: dict[str, object]) -> dict[str, object]:
    extra = ExtraMembers()
    for piece in pieces:
        extra.add(piece, frozenset(("known",)))
    return extra.members


LARGE = "x" * (MAX_EXTRA - len('large""'))
HELLO, OTHER = {"type": "text", "index": 0}, {"type": "other"}


@pytest.mark.parametrize(
    ("pieces", "members"),
    [
        ([{"known": 1, "a": None, "b": "", "c": [], "d": {}}], {}),
        ([{"signature": "ab"}, {"signature": "cd"}], {"signature": "abcd"}),
        ([{"id": "x"}, {"id": "x"}], {"id": "x"}),
        ([{"n": 1}, {"n": 2}], {"n": 2}),
        ([{"x": {"sig": "a"}}, {"x": {"sig": "b", "n": None}}, {"x": {"n": 1}}], {"x": {"sig": "ab", "n": 1}}),
        (
            [
                {"details": [{**HELLO, "text": "He"}]},
                {"details": [{**HELLO, "text": "llo"}, {**HELLO, "index": 1, "text": "!"}]},
                {"details": [{"index": 1, "signature": "s"}, OTHER, "x"]},
            ],
            {"details": [{**HELLO, "text": "Hello"}, {**HELLO, "index": 1, "text": "!", "signature": "s"}, OTHER, "x"]},
        ),
        ([{"o": {"a": 1}}, {"o": {"a": None}}], {"o": {"a": 1}}),
        ([{"large": LARGE}, {"small": "a"}], {"large": LARGE}),
        ([{"large": LARGE + "x"}, {"small": "a"}], {}),
    ],
)
def test_pieces_are_joined(pieces: list[dict[str, object]], members: dict[str, object]) -> None:
    assert collected(*pieces) == members


def test_deep_members_replace_each_other() -> None:
    def deep(text: str) -> dict[str, object]:
        value: object = text
        for _ in range(30):
            value = {"a": value}
        return {"a": value}

    assert collected(deep("x"), deep("y")) == deep("y")
    extra = {"extra_content": {"s": "x"}, "function": {"strict": True}, "id": "b"}
    call = call_row(ToolCall(id="a", name="tap", args={}, extra=extra), "{}")
    function = {"strict": True, "name": "tap", "arguments": "{}"}
    assert call == {"id": "a", "type": "function", "function": function, "extra_content": {"s": "x"}}
