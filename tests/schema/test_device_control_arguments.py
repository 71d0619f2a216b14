import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.schema.device_control_routes import DEVICE_CONTROL, check_arguments
from tests.support.tables import read_table

ROWS = [
    (row["method"], row["path"], json.loads(row["arguments"]), row["refused"])
    for row in read_table("tests/schema/device_control_arguments.tsv")
]
GOOD = [(method, path, arguments) for method, path, arguments, field in ROWS if not field]
BAD = [row for row in ROWS if row[-1]]
WITH_RULES = {key for key, row in DEVICE_CONTROL.items() if row.rules}


@pytest.mark.parametrize(("method", "path", "arguments"), GOOD)
def test_usable_arguments_are_accepted(method: str, path: str, arguments: dict[str, object]) -> None:
    check_arguments(method, path, arguments)


@pytest.mark.parametrize(("method", "path", "arguments", "field"), BAD)
def test_unusable_arguments_are_refused(method: str, path: str, arguments: dict[str, object], field: str) -> None:
    with pytest.raises(Refused) as caught:
        check_arguments(method, path, arguments)
    assert (caught.value.status, caught.value.code, caught.value.extra) == (400, "invalid_field", {"field": field})
    assert field in caught.value.message


def test_every_rule_has_a_good_and_a_bad_example() -> None:
    assert {(method, path) for method, path, _ in GOOD} >= WITH_RULES
    assert {(method, path) for method, path, _, _ in BAD} == WITH_RULES


def test_documentation_of_a_rule() -> None:
    (node,), (text,) = (DEVICE_CONTROL["POST", path].rules for path in ("/describe_node", "/tap_text"))
    assert (node.required, node.words) == (False, "nodeId or node_id")
    assert node.types == {"nodeId": "word", "node_id": "word"}
    assert (text.required, text.words, text.types) == (True, "", {"text": "word"})
    where, span = DEVICE_CONTROL["POST", "/tap"].rules
    assert (where.required, where.words) == (False, "x and y or nodeId")
    assert where.types == {"x": "place", "y": "place", "nodeId": "word"}
    assert (span.required, span.types) == (False, {"duration_ms": "whole"})


@given(
    st.sampled_from(sorted(WITH_RULES)),
    st.dictionaries(
        st.sampled_from(["text", "x", "y", "nodeId", "limit", "enabled", "direction", "attachments", "to", "action"]),
        st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3),
    ),
)
def test_no_other_error_is_raised(route: tuple[str, str], arguments: dict[str, object]) -> None:
    try:
        check_arguments(*route, arguments)
    except Refused as refused:
        assert refused.status == 400  # noqa: PT017 - whether it refuses is not the point
