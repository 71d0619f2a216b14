from svc_proto.agent.tools.tool import schema


def test_schemas() -> None:
    assert schema() == {"type": "object", "properties": {}, "additionalProperties": False}
    found = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert schema(("a",), a={"type": "string"}) == {**found, "required": ["a"]}
