from svc_proto.agent.interface import ModelEndpoint


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(ModelEndpoint(base_url="http://h", model="m", api_key="secret"))
