from __future__ import annotations

import pytest

from svc_proto.agent.tool_arguments import parse_arguments
from svc_proto.basics.strict_json import JsonError


@pytest.mark.parametrize(
    ("written", "args", "arguments"),
    [
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ("", {}, "{}"),
        (" null ", {}, "{}"),
        ("None", {}, "{}"),
        ('""', {}, "{}"),
        ("[]", {}, "{}"),
        ('"{\\"a\\": 1}"', {"a": 1}, '{"a": 1}'),
        ('" "', {}, "{}"),
        ('```json\n{"a": 1}\n```', {"a": 1}, '{"a": 1}'),
        ('{"a": NaN, "b": 1, "b": 2}', {"a": None, "b": 2}, '{"a":null,"b":2}'),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}, '{"a":"\ufffd"}'),
    ],
)
def test_arguments(written: str, args: dict[str, object], arguments: str) -> None:
    assert parse_arguments(written) == (args, arguments)


@pytest.mark.parametrize("written", ['{"a": ', "[1]", "5", '"x"', "{,}"])
def test_invalid_arguments(written: str) -> None:
    with pytest.raises(JsonError):
        parse_arguments(written)
