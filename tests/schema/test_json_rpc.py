import pytest

from svc_proto.schema.json_rpc import (
    RpcError,
    parse_object,
    write_error,
    write_notification,
    write_request,
    write_result,
    write_result_text,
)


@pytest.mark.parametrize(("text", "code"), [(b"{", -32700), (b"\xff", -32700), (b"[{}]", -32600), (b"null", -32600)])
def test_texts_that_are_no_object(text: bytes, code: int) -> None:
    with pytest.raises(RpcError) as refused:
        parse_object(text)
    assert (refused.value.code, refused.value.identity) == (code, None)


def test_written_messages() -> None:
    assert write_result(1.5, {"a": 1}) == b'{"jsonrpc":"2.0","id":1.5,"result":{"a":1}}'
    assert write_result_text(2, '{"a":1}') == b'{"jsonrpc":"2.0","id":2,"result":{"a":1}}'
    assert write_notification("m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert write_request("r", "m", {}) == b'{"jsonrpc":"2.0","id":"r","method":"m","params":{}}'
    assert write_error(RpcError(5, "t")) == b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"t"}}'
    told = write_error(RpcError(5, "t", data={}, identity=0), 7)
    assert told == b'{"jsonrpc":"2.0","id":0,"error":{"code":5,"message":"t","data":{}}}'
