from typing import Any

import pytest

from svc_proto.agent.tools.arguments import check_arguments
from svc_proto.agent.tools.tool import schema
from svc_proto.basics.errors import ToolError

SCHEMA = schema(
    ("text",),
    text={"type": "string"},
    n={"type": "integer", "minimum": 0, "maximum": 9},
    free={"type": "integer"},
    on={"type": "boolean"},
    kind={"type": "string", "enum": ["a", "b"]},
    rows={"type": "array", "items": {"type": "integer"}},
    raw={"type": "array"},
    extras={"type": "object"},
    any={},
)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, {}),
        ({"unknown": 1, "n": None}, {}),
        ({"text": 5}, {"text": "5"}),
        *((given, {"n": 3}) for given in ({"n": 3}, {"n": " 3 "}, {"n": 3.0})),
        ({"n": 0}, {"n": 0}),
        ({"n": 9}, {"n": 9}),
        ({"free": "1" * 19}, {"free": int("1" * 19)}),
        ({"free": "-12"}, {"free": -12}),
        ({"on": True}, {"on": True}),
        ({"on": "false"}, {"on": False}),
        ({"kind": "b"}, {"kind": "b"}),
        ({"rows": [1, "2"]}, {"rows": [1, 2]}),
        ({"raw": [1, "2", None]}, {"raw": [1, "2", None]}),
        ({"extras": {"a": 1}}, {"extras": {"a": 1}}),
        ({"any": [None]}, {"any": [None]}),
    ],
)
def test_taken(given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert check_arguments(SCHEMA, {"text": "x", **given}) == {"text": "x", **taken}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"text": None}, "the argument text is missing"),
        ({"text": True}, "the argument text must be a string"),
        ({"text": []}, "the argument text must be a string"),
        *((given, "the argument n must be a whole number") for given in ({"n": "x"}, {"n": "1" * 20}, {"n": 1.5})),
        ({"n": True}, "the argument n must be a whole number"),
        ({"n": -1}, "the argument n must be at least 0"),
        ({"n": 10}, "the argument n must be at most 9"),
        ({"on": 1}, "the argument on must be true or false"),
        ({"on": "yes"}, "the argument on must be true or false"),
        ({"kind": "c"}, "the argument kind must be one of a, b"),
        ({"rows": 1}, "the argument rows must be an array"),
        ({"rows": [1, "x"]}, "the argument rows[1] must be a whole number"),
        ({"extras": []}, "the argument extras must be an object"),
    ],
)
def test_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError) as refused:
        check_arguments(SCHEMA, {"text": "x", **given})
    assert str(refused.value) == problem
