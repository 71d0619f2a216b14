import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.mcp_messages import RpcRequest, RpcResponse, meta_of, parse_mcp_message, progress_token_of
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer


@pytest.mark.parametrize(
    ("lines", "code", "identity"),
    [
        ([b"{", b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}'], -32700, None),
        ([b"[]", b'{"jsonrpc":"2.0","id":null,"method":"ping"}'], -32600, None),
        ([b'{"jsonrpc":"2.0","id":true,"method":"ping"}'], -32600, None),
        ([b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', b'{"jsonrpc":"2.0","result":{}}'], -32600, None),
        ([b'{"id":7,"method":"ping"}'], -32600, 7),
        ([b'{"jsonrpc":"2.0","id":"a"}', b'{"jsonrpc":"2.0","id":"a","method":5}'], -32600, "a"),
        ([b'{"jsonrpc":"2.0","id":"a","method":5,"result":{}}'], -32600, "a"),
        ([b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}'], -32602, "a"),
    ],
)
def test_invalid_messages(lines: list[bytes], code: int, identity: object) -> None:
    for line in lines:
        peer = McpStdioHarness(ToyMcpServer().offer())
        (answer,) = peer.bytes(line + b"\n")
        assert (answer["error"]["code"], answer["id"]) == (code, identity)
        assert peer.request("ping") == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["jsonrpc", "id", "method", "params", "name", "arguments", "_meta", "uri", "result", "error"]
                ),
                inner,
            )
        ),
    )
)
def test_no_message_is_a_bug(value: Any) -> None:
    peer = McpStdioHarness(ToyMcpServer().offer())
    peer.open()
    for members in (value, {"jsonrpc": "2.0", **value} if isinstance(value, dict) else value):
        for method in ("tools/call", "prompts/get", "resources/read", "initialize", "notifications/cancelled"):
            with_method = {"method": method, "id": 1, **members} if isinstance(members, dict) else members
            for answer in peer.bytes(json.dumps(with_method).encode() + b"\n"):
                assert answer.get("error", {}).get("code") != -32603


@pytest.mark.parametrize(
    ("outcome", "result", "error"),
    [
        (b'"result":{"a":1}', {"a": 1}, None),
        (b'"result":7', {}, None),
        (b'"error":{"code":-32000,"message":"no"}', {}, "no"),
        (b'"result":{"a":1},"error":{"code":-32000}', {}, ""),
        (b'"error":"no"', {}, ""),
    ],
)
def test_an_answer(outcome: bytes, result: dict[str, object], error: str | None) -> None:
    assert parse_mcp_message(b'{"jsonrpc":"2.0","id":7,%s}' % outcome) == RpcResponse(7, JsonObject(result), error)


def test_meta_and_progress_token() -> None:
    assert meta_of(JsonObject(_meta={"a": 1}, name="x")) == {"a": 1}
    assert [meta_of(JsonObject(said)) for said in ({}, {"_meta": None}, {"_meta": ["a"]})] == [{}, {}, {}]
    for shown, token in ((7, 7), ("x", "x"), (None, None), (True, None), (["x"], None)):
        assert progress_token_of(JsonObject(_meta={"progressToken": shown})) == token
    assert progress_token_of(JsonObject()) is None
    assert progress_token_of(JsonObject(_meta="x")) is progress_token_of(JsonObject(_meta={})) is None


def test_params_that_are_null_count_as_none() -> None:
    for members in (b"", b',"params":null'):
        assert parse_mcp_message(b'{"jsonrpc":"2.0","id":7,"method":"ping"%s}' % members) == RpcRequest(
            7, "ping", JsonObject()
        )
