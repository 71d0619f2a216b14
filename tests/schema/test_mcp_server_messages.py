"""Messages of MCP servers: what clients accept beside JSON-RPC to the letter, and responses in unreadable texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.mcp_messages import RpcNotification, RpcRequest, RpcResponse
from svc_proto.schema.mcp_server_messages import (
    MAX_EDGE,
    MalformedResponse,
    find_malformed_response,
    read_server_messages,
)

RESULT: dict[str, object] = {"content": []}
FOUND = RpcResponse(3, JsonObject(RESULT))
NO_OBJECT = MalformedResponse(3, "its result is no object")


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ([{"jsonrpc": "2.0", "id": 3, "result": RESULT}, {"id": f"{14 * '0'}3", "result": RESULT}], [FOUND]),
        ([{"id": 3.0, "result": RESULT, "error": None}, {"id": 3, "result": RESULT, "error": {}}], [FOUND]),
        ([{"id": f"3{15 * '0'}", "result": RESULT}], [RpcResponse(f"3{15 * '0'}", JsonObject(RESULT))]),
        ([{"id": 3, "error": {"message": "no"}}], [RpcResponse(3, JsonObject(), "no")]),
        ([{"id": 3, "error": "no", "result": None}], [RpcResponse(3, JsonObject(), "no")]),
        ([{"id": 3, "error": {}}], [RpcResponse(3, JsonObject(), "")]),
        ([{"id": "x", "result": RESULT}], [RpcResponse("x", JsonObject(RESULT))]),
        ([{"id": None, "error": {"message": "parse error"}}], [MalformedResponse(None, "it refuses: parse error")]),
        ([{"id": 3, "result": None}, {"id": 3, "result": "text"}, {"id": 3, "result": [1]}], [NO_OBJECT]),
        ([{"id": 3}, {"id": 3, "error": None}], [MalformedResponse(3, "it has neither a result nor an error")]),
        ([{"id": 3.5, "result": RESULT}, {"id": True, "result": RESULT}, [], "text", None], []),
        ([{"id": "p", "method": "ping", "params": {"a": 1}}], [RpcRequest("p", "ping", JsonObject(a=1))]),
        ([{"id": None, "method": "x", "params": [1]}], [RpcNotification("x", JsonObject())]),
        ([[{"method": "x"}, 7, {"id": 3, "result": RESULT}]], [RpcNotification("x", JsonObject()), FOUND]),
    ],
)
def test_messages_of_a_server(values: list[object], messages: list[object]) -> None:
    for value in values:
        assert read_server_messages(value) == messages


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{"text":"cut', 3),
        ('\ufeff {"id": "3" , "error": {', 3),
        (b'[{"id":3,"result":{"id":9}', 3),
        (b'{"result":{"rows":[{"id":1},{"id":2}' + b" " * MAX_EDGE + b',"id":3,}', 3),
        (b'  "id": 3,', 3),
        (b'{"result":{', None),
    ],
)
def test_response_in_an_unreadable_text(text: bytes | str, identity: int | None) -> None:
    assert find_malformed_response(text, "cut") == MalformedResponse(identity, "cut")


@pytest.mark.parametrize(
    "text",
    [
        *(b"Server starting...", b"{not json}", b"{", b"", b'INFO sent {"id":3,"result":{}}'),
        *(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"id":3,', b'  "jsonrpc": "2.0",'),
        b'  "result": {',
    ],
)
def test_text_without_a_response(text: bytes) -> None:
    assert find_malformed_response(text, "cut") is None


@given(st.binary(), st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner)))
def test_no_text_and_no_value_is_a_bug(data: bytes, value: object) -> None:
    find_malformed_response(data, "cut")
    read_server_messages([value, {"id": value, "method": value, "result": value, "error": value}])
