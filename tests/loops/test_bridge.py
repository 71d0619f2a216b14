"""Tests of commands to a phone: their answers, and failures of the caller or the phone."""

from __future__ import annotations

import json
import random

from clients.phone.emulator import EmulatedPhone
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneCommand
from tests.loops.clients import PendingResponse, WebSocketTestClient
from tests.loops.environment import Environment, bearer

NOISE = random.Random(7).randbytes(1_000_000).hex()


def call(
    world: Environment, token: str, method: str = "GET", path: str = "/ping", body: object = None
) -> PendingResponse:
    """Send a command to the phone on a connection of its own; return the pending response."""
    return world.client().begin(method, path, body, headers=bearer(token))


def activity(world: Environment) -> list[dict[str, object]]:
    """Return the records of the relay's activity log, newest first."""
    records: list[dict[str, object]] = world.http("GET", "/bridge/activity").json["activity"]
    return records


def test_the_reference_phone_answers(relayed: Environment) -> None:
    phone = relayed.phone()
    answer = relayed.http("GET", "/ping", headers=bearer(phone.token))
    assert (answer.status, answer.json["pong"]) == (200, True)
    (record,) = activity(relayed)
    assert (record["method"], record["path"], record["decision"]) == ("GET", "/ping", "executed")
    assert relayed.http("GET", "/bridge/status").json["bridge"]["device_control_supported"] is True
    assert phone.stop() == 0


def test_a_phone_that_disconnects_with_pending_commands(relayed: Environment) -> None:
    for leave in ("close", "abort", "close_write"):
        phone = relayed.fake_phone()
        calls = [call(relayed, phone.token) for _ in range(3)]
        for _ in calls:
            phone.command()
        if leave == "close":
            phone.close()
        else:
            getattr(phone.wire, leave)()
        for calling in calls:
            answer = calling.finish()
            assert (answer.status, answer.code) == (502, "phone_disconnected")
        assert activity(relayed)[0]["decision"] == "error"
        assert relayed.http("GET", "/ping", headers=bearer(phone.token)).status == 503


def test_a_caller_that_half_closes_is_answered(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    calling = call(relayed, phone.token)
    calling.wire.close_write()
    phone.respond(phone.command()["request_id"], {"fine": True})
    assert calling.finish().json == {"fine": True}


# --- sizes ---


def test_big_answers_for_a_slow_reader(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    pages, result = 10, {"text": "z" * 2_000_000}
    slow = relayed.connect()
    slow.pause()
    request = f"GET /screen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {phone.token}\r\n\r\n".encode()
    slow.send(request * pages)
    given = answer_what_is_asked(phone, result)
    # The kernel buffers some megabytes, the relay holds one answer, and requests the next one only after that is sent.
    assert 1 <= given < pages
    expected = json.dumps(result, separators=(",", ":")).encode()
    for page in range(pages):
        if page >= given:
            phone.respond(phone.command()["request_id"], result)
        assert b"200 OK" in slow.read_until(b"\r\n\r\n")
        for at in range(0, len(expected), 50_000):
            wanted = expected[at : at + 50_000]
            assert slow.read_exactly(len(wanted)) == wanted


def answer_what_is_asked(phone: WebSocketTestClient, result: object) -> int:
    """Answer bridge commands until none has come for ten round trips; return their number."""
    phone.respond(phone.command()["request_id"], result)
    given, quiet = 1, 0
    while quiet < 10:
        quiet += 1
        phone.send_envelope("system", "ping", {"ts": quiet}, "anything?")
        while (message := phone.receive_message())["type"] != "pong":
            phone.respond(message["payload"]["request_id"], result)
            given, quiet = given + 1, 0
    return given


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


# --- time ---


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
