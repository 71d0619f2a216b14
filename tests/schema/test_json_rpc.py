import pytest

from svc_proto.schema import json_rpc


@pytest.mark.parametrize(("text", "code"), [(b"{", -32700), (b"\xff", -32700), (b"[{}]", -32600), (b"null", -32600)])
def test_texts_that_are_no_object(text: bytes, code: int) -> None:
    with pytest.raises(json_rpc.RpcError) as refused:
        json_rpc.parse_object(text)
    assert (refused.value.code, refused.value.identity) == (code, None)


def test_written_messages() -> None:
    assert json_rpc.write_result(1.5, {"a": 1}) == b'{"jsonrpc":"2.0","id":1.5,"result":{"a":1}}'
    assert json_rpc.write_result_text(2, '{"a":1}') == b'{"jsonrpc":"2.0","id":2,"result":{"a":1}}'
    assert json_rpc.write_notification("m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert json_rpc.write_request("r", "m", {}) == b'{"jsonrpc":"2.0","id":"r","method":"m","params":{}}'
    assert (
        json_rpc.write_error(json_rpc.RpcError(5, "t"))
        == b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"t"}}'
    )
    told = json_rpc.write_error(json_rpc.RpcError(5, "t", data={}, identity=0), 7)
    assert told == b'{"jsonrpc":"2.0","id":0,"error":{"code":5,"message":"t","data":{}}}'
