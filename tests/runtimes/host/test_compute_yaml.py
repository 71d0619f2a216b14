import pytest

from runtimes.failures import HostError
from runtimes.host.compute import YAML_DEPTH, edit_yaml
from svc_proto.facts import FailureKind

CONFIG = """\
# my agent
agent:
  personalities:   # keep
    b: "x"
    a: 'y'

# the model
model: gpt   # old
list: [1, 2]
"""


def test_comments_order_and_quotes_stay() -> None:
    assert (
        edit_yaml(CONFIG, {"model": "new"})
        == """\
# my agent
agent:
  personalities:   # keep
    b: "x"
    a: 'y'

# the model
model: new   # old
list: [1, 2]
"""
    )


@pytest.mark.parametrize(
    ("text", "changes", "edited"),
    [
        ("", {"model": "m"}, "model: m\n"),
        ("# nothing yet", {"model": "m"}, "# nothing yet\nmodel: m\n"),
        ("a: 1\n", {"b": {"c": {"d": "x"}}}, "a: 1\nb:\n  c:\n    d: x\n"),
        ("a: 1\n", {"a": {"b": "x"}}, "a:\n  b: x\n"),
        ("a: 1\n", {}, "a: 1\n"),
        ("a: yes\n", {"b": "yes", "c": "1", "d": ": #"}, 'a: yes\nb: "yes"\nc: "1"\nd: ": #"\n'),
        ("a: 2020-01-01\nb: 0x1F\nc: 1:30\n", {"e": "~"}, 'a: 2020-01-01\nb: 0x1F\nc: 1:30\ne: "~"\n'),
        ("a: 1\n", {"b": 2, "c": True, "d": None}, "a: 1\nb: 2\nc: true\nd:\n"),
        ("a: &x {b: 1}\nc: *x\n", {"d": "e"}, "a: &x {b: 1}\nc: *x\nd: e\n"),
        ("a:\n    b: 1\n    c:\n        d: 2\n", {"a": {"b": "x"}}, "a:\n    b: x\n    c:\n        d: 2\n"),
        ("a:\n  - x\n  - y\n", {"b": "x"}, "a:\n  - x\n  - y\nb: x\n"),
        ("a:\n- x\n- y\n", {"b": "x"}, "a:\n- x\n- y\nb: x\n"),
        ("a:\nb: 1\n", {"c": {"d": "x"}}, "a:\nb: 1\nc:\n  d: x\n"),
        ("a: 1\r\nb: 2\r\n", {"c": "x"}, "a: 1\nb: 2\nc: x\n"),
        ("a: " + "x " * 200 + "x\n", {"b": "y"}, "a: " + "x " * 200 + "x\nb: y\n"),
    ],
)
def test_edits(text: str, changes: dict[str, object], edited: str) -> None:
    assert edit_yaml(text, changes) == edited


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a: [",
            "- 1\n",
            "7\n",
            "a: 1\na: 2\n",
            "a: !!python/name:os.system\n",
            "a: 1\n---\nb: 1\n",
            "a: " + "[" * 99,
        ),
        "other: &x {default: a}\nmodel: *x\n",  # an alias is not changed in two places
    ],
)
def test_texts_that_cannot_be_edited(text: str) -> None:
    deep: dict[str, object] = {"default": "m"}
    for _ in range(YAML_DEPTH):
        deep = {"level": deep}
    for document, changes in ((text, {"model": {"default": "m"}}), ("", deep)):
        with pytest.raises(HostError) as caught:
            edit_yaml(document, changes)
        assert caught.value.failure.kind is FailureKind.INVALID
