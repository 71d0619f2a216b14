import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.schema.device_control_routes import DEVICE_CONTROL, check_arguments

LINE = {"start_x": 0, "start_y": "2", "end_x": 3, "end_y": 4}

GOOD: list[tuple[str, str, dict[str, object]]] = [
    ("GET", "/ping", {"anything": ["goes"]}),
    ("GET", "/screen", {"include_bounds": "true"}),
    ("POST", "/diff_screen", {"previous_hash": "ab"}),
    ("POST", "/find_nodes", {}),
    ("POST", "/find_nodes", {"text": "OK", "clickable": True, "limit": "5"}),
    ("POST", "/describe_node", {"node_id": "w0:1"}),
    ("POST", "/tap", {"x": 1, "y": "2", "duration_ms": 50}),
    ("POST", "/tap", {"x": 0, "y": "9" * 19}),
    ("POST", "/tap", {"nodeId": "w0:1"}),
    ("POST", "/tap_text", {"text": 12}),
    ("POST", "/long_press", {"node_id": "w0:1", "duration": 500}),
    ("POST", "/drag", {**LINE, "duration_ms": 500}),
    ("POST", "/drag", {**LINE, "start_x": "0"}),
    ("POST", "/type", {"text": " "}),
    ("POST", "/swipe", {**LINE, "start_x": -1}),
    ("POST", "/swipe", {"direction": "UP"}),
    ("POST", "/scroll", {"direction": "down"}),
    ("POST", "/press_key", {"key": "back"}),
    ("POST", "/wait", {}),
    ("POST", "/open_app", {"package": "com.example.mail"}),
    ("POST", "/clipboard", {"text": ""}),
    ("POST", "/media", {"action": "play"}),
    ("POST", "/send_intent", {"action": "a", "extras": {"k": 1}}),
    ("POST", "/broadcast", {"action": "a"}),
    ("GET", "/events", {"limit": "5", "since": "0"}),
    ("POST", "/events/stream", {"enabled": "false"}),
    ("POST", "/search_contacts", {"query": "Ada"}),
    ("POST", "/call", {"number": "+1 555"}),
    ("POST", "/send_sms", {"to": "+1", "body": "hi"}),
    ("POST", "/share_media", {"text": "hi"}),
    ("POST", "/share_media", {"attachments": [{"media": "t"}]}),
    ("POST", "/send_mms", {"to": "+1", "media_tokens": ["t"]}),
]

BAD: list[tuple[str, str, dict[str, object], str]] = [
    ("GET", "/screen", {"include_bounds": "yes"}, "include_bounds"),
    ("POST", "/diff_screen", {"previous_hash": "  "}, "previous_hash"),
    ("POST", "/find_nodes", {"limit": "1.5"}, "limit"),
    ("POST", "/find_nodes", {"clickable": 1}, "clickable"),
    ("POST", "/describe_node", {"nodeId": {"a": 1}}, "nodeId"),
    ("POST", "/tap", {"x": 1}, "nodeId"),
    ("POST", "/tap", {"x": 1, "y": True}, "nodeId"),
    ("POST", "/tap", {"x": 1, "y": -1}, "nodeId"),
    ("POST", "/tap", {"x": 1, "y": "9" * 20}, "nodeId"),
    ("POST", "/tap", {"x": 1, "y": 2, "duration_ms": 1.5}, "duration_ms"),
    ("POST", "/tap_text", {"text": True}, "text"),
    ("POST", "/long_press", {}, "nodeId"),
    ("POST", "/drag", {**LINE, "start_x": -1}, "start_x"),
    ("POST", "/type", {}, "text"),
    ("POST", "/swipe", {"direction": "sideways"}, "start_x"),
    ("POST", "/scroll", {"direction": 4}, "direction"),
    ("POST", "/press_key", {"key": []}, "key"),
    ("POST", "/wait", {"ms": "soon"}, "ms"),
    ("POST", "/open_app", {"package": ""}, "package"),
    ("POST", "/clipboard", {}, "text"),
    ("POST", "/media", {}, "action"),
    ("POST", "/send_intent", {}, "action"),
    ("POST", "/broadcast", {}, "action"),
    ("GET", "/events", {"since": "x"}, "since"),
    ("POST", "/events/stream", {}, "enabled"),
    ("POST", "/search_contacts", {}, "query"),
    ("POST", "/call", {}, "number"),
    ("POST", "/send_sms", {"to": "+1"}, "body"),
    ("POST", "/share_media", {}, "attachments"),
    ("POST", "/share_media", {"paths": "/tmp/a"}, "paths"),
    ("POST", "/send_mms", {"text": "hi"}, "to"),
]

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
