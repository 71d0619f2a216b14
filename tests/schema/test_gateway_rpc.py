import pytest

from svc_proto.schema.gateway_rpc import event_line, parse_call
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError


@pytest.mark.parametrize(
    ("line", "code", "identity"),
    [
        ('{"id": true, "method": "x"}', INVALID_REQUEST, None),
        ('{"id": 3}', INVALID_REQUEST, 3),
        ('{"id": "a", "method": "x", "params": []}', INVALID_PARAMS, "a"),
    ],
)
def test_malformed_calls_name_the_call_where_they_can(line: str, code: int, identity: object) -> None:
    with pytest.raises(RpcError) as caught:
        parse_call(line)
    assert (caught.value.code, caught.value.identity) == (code, identity)


def test_parameters_are_read_by_type() -> None:
    call = parse_call(b'{"id": 1, "method": "x", "params": {"session_id": 7, "text": "", "n": 1}}')
    assert (call.session_id, call.text("text"), call.notification) == ("7", "", False)
    with pytest.raises(RpcError):
        call.text("n")
    with pytest.raises(RpcError):
        _ = parse_call('{"method": "x"}').session_id


def test_events_leave_out_what_they_lack() -> None:
    assert event_line("a") == b'{"jsonrpc":"2.0","method":"event","params":{"type":"a"}}'
    assert b'"session_id":"s","payload":{}' in event_line("a", "s", {})
