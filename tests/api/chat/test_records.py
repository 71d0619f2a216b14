from svc_proto.api.chat.records import Usage


def test_usage_adds_up() -> None:
    usage = Usage(input_tokens=1, output_tokens=2) + Usage(input_tokens=3, output_tokens=4)
    assert usage == Usage(input_tokens=4, output_tokens=6)
    assert usage.total_tokens == 10
