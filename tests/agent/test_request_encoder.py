import json

import pytest

from svc_proto.agent.request_encoder import EncodedRow, encode_request
from svc_proto.basics import strict_json

ROW = {"type": "function", "function": {"name": "tap", "description": "Tippt auf ä", "parameters": {}}}


@pytest.mark.parametrize("tools", [[], [ROW], [EncodedRow(ROW)], [EncodedRow(ROW)] * 2, [EncodedRow(ROW), ROW]])
@pytest.mark.parametrize("content", ["hello", "ä", "half a pair \ud800"])
def test_the_text_has_the_members_of_the_request(tools: list[object], content: str) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": content}], "tools": tools, "max_tokens": 5}
    assert json.loads(encode_request(request)) == request


def test_a_row_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"model": "m", "tools": [EncodedRow(ROW)]}
    encoded: list[object] = []
    dumps = strict_json.dumps

    def count(value: object) -> str:
        encoded.append(value)
        return dumps(value)

    monkeypatch.setattr(strict_json, "dumps", count)
    assert encode_request(request) == encode_request(request)
    assert encoded == [{"model": "m"}] * 2
