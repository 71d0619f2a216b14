from svc_proto.phone.backend import CommandRefused, CommandReply


def test_the_reply_of_a_refusal() -> None:
    assert CommandRefused(404, "gone").to_reply() == CommandReply(404, {"error": "gone"})
    assert CommandRefused(500, "no", "broken").to_reply() == CommandReply(500, {"error": "no", "error_code": "broken"})
    on_400 = {"error": "no", "error_code": "broken", "code": "broken", "status": "failed"}
    assert CommandRefused(400, "no", "broken", status="failed").to_reply() == CommandReply(400, on_400)
