"""Tests of commands to a phone: their answers, and failures of the caller or the phone."""

import random

from clients.phone.emulator import EmulatedPhone
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneCommand
from tests.loops.clients import PendingResponse
from tests.loops.environment import Environment, bearer

NOISE = random.Random(7).randbytes(1_000_000).hex()


def call(
    world: Environment, token: str, method: str = "GET", path: str = "/ping", body: object = None
) -> PendingResponse:
    """Send a command to the phone on a connection of its own; return the pending response."""
    return world.client().begin(method, path, body, headers=bearer(token))


def test_the_reference_phone_answers(relayed: Environment) -> None:
    phone = relayed.phone()
    answer = relayed.http("GET", "/ping", headers=bearer(phone.token))
    assert (answer.status, answer.json["pong"]) == (200, True)
    (record,) = relayed.http("GET", "/bridge/activity").json["activity"]
    assert (record["method"], record["path"], record["decision"]) == ("GET", "/ping", "executed")
    assert relayed.http("GET", "/bridge/status").json["bridge"]["device_control_supported"] is True
    assert phone.stop() == 0


def test_a_phone_that_reads_nothing_is_dropped_before_memory_is(relayed: Environment) -> None:
    phone = relayed.fake_phone(deflate=False)
    phone.wire.pause()
    body = {"text": "z" * 1_500_000}
    calls = [call(relayed, phone.token, "POST", "/type", body) for _ in range(24)]
    answers = [calling.finish() for calling in calls]
    assert {answer.status for answer in answers} <= {502, 503}
    assert {answer.code for answer in answers} <= {"phone_disconnected", "send_failed", "phone_not_connected"}
    assert "phone_disconnected" in {answer.code for answer in answers}
    assert relayed.http("GET", "/health").json["clients"] == 0


def test_both_sides_send_much_at_once(relayed: Environment) -> None:
    phone = relayed.phone(backend=Verbose())
    body = {"text": NOISE}
    calls = [call(relayed, phone.token, "POST", "/type", body) for _ in range(2)]
    assert [calling.finish().status for calling in calls] == [200] * 2
    assert phone.count("offline") == 0


class Verbose(EmulatedPhone):
    """Emulated phone that answers every command with two megabytes that do not compress."""

    def execute(self, command: PhoneCommand, now: Moment) -> CommandReply:
        return CommandReply(200, {"text": NOISE})
