from clients.phone.emulator import EmulatedPhone
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandRefused, CommandReply, PhoneBackend, PhoneCommand, UploadReply

NOW = Moment(100.0, 1_795_310_560.0)


def test_emulator_is_a_backend() -> None:
    backend: PhoneBackend = EmulatedPhone(name="Simulated")
    assert backend.execute(PhoneCommand("GET", "/ping", {}), NOW) == CommandReply(
        200, {"pong": True, "ts": 1_795_310_560_000}
    )
    assert isinstance(backend.execute(PhoneCommand("GET", "/screenshot", {}), NOW), UploadReply)
    assert isinstance(backend.status(NOW)["battery"], int)


# --- refusal ----------------------------------------------------------------------------------------------------------


def test_the_reply_of_a_refusal() -> None:
    assert CommandRefused(404, "gone").to_reply() == CommandReply(404, {"error": "gone"})
    assert CommandRefused(500, "no", "broken").to_reply() == CommandReply(500, {"error": "no", "error_code": "broken"})
    on_400 = {"error": "no", "error_code": "broken", "code": "broken", "status": "failed"}
    assert CommandRefused(400, "no", "broken", status="failed").to_reply() == CommandReply(400, on_400)
