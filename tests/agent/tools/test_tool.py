from svc_proto.agent.tools.tool import schema


def test_schemas() -> None:
    assert schema() == {"type": "object", "properties": {}, "additionalProperties": False}
    assert schema(("a",), a={"type": "string"}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
