"""Check of a relay's restart: paired sessions survive; all data in memory are lost."""

from base64 import b64encode

from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.checks.support.paired_device import pair, register, sign_in

GUESSES = 5  # failed authentications until an address is blocked


def restart(context: CheckContext) -> None:
    """Fill the relay's tables, stop or kill it, and check that the new process has the paired sessions only."""
    session, phone = pair(context), pair(context, device_id=context.new_word(), surface="android", form="phone")
    device, disk, spool = phone.shown["device_id"], context.world.home.disk, context.world.home.spool
    files = {*disk.files(spool)}  # left by a relay that was killed while its clock was ahead
    code, guesser = register(context), context.new_host()
    phone.seat.send_envelope("notifications", "notification.posted", {"title": context.new_word()})
    phone.seat.send_envelope("bridge", "bridge.status", {"mark": context.new_word()})
    upload = {
        "content_type": "text/plain",
        "content": b64encode(context.new_word().encode()).decode(),
        "file_name": "a.txt",
    }
    media = context.expect_status(context.request(session.token, "POST", "/media/upload", upload), 200)["token"]
    context.expect_status(context.request_locally("POST", "/bridge/select-active", {"device": device}), 200)
    command = context.start_request_as(session.token, "GET", f"/ping?device={device}")
    phone.seat.answer_next_command({})
    context.expect_status(context.wait_response(command), 200)
    voice = context.expect_status(
        context.request(session.token, "POST", "/voice/output/session", {"provider": "stub"}), 200
    )
    for _ in range(GUESSES):
        guess = sign_in(context, guesser, {"pairing_code": "ZZZZZZ"})
        context.expect_equal(guess.next_message()["type"], "auth.fail", "unknown pairing code")
    context.expect_equal(context.open_socket(guesser).talker.status, 429, "address after too many guesses")

    killed = context.chance(0.5)
    context.restart("relay", kill=killed)
    context.expect_equal(context.open_socket(guesser).opened, True, "whether a blocked address may connect")
    for token in (session.token, phone.token):
        seat = sign_in(context, context.new_host(), {"session_token": token})
        context.expect_equal(seat.next_message()["type"], "auth.ok", "session token")
        seat.disconnect()
    refused = sign_in(context, context.new_host(), {"pairing_code": code})
    context.expect_equal(refused.next_message()["type"], "auth.fail", "pairing code of before the restart")
    context.expect_status(context.request(session.token, "GET", f"/media/{media}"), 404, "not_found")
    context.expect_equal(
        context.expect_status(context.request_locally("GET", "/media/inspect?include_expired=1"), 200)["media"],
        [],
        "media",
    )
    if not killed:
        context.expect_equal({*disk.files(spool)} - files, set(), "files of uploads")
    notifications = context.expect_status(context.request_locally("GET", "/notifications/recent"), 200)["notifications"]
    context.expect_equal(notifications, [], "notifications")
    records = context.expect_status(context.request_locally("GET", "/bridge/activity"), 200)["activity"]
    context.expect_equal([each for each in records if each["device_id"] == device], [], "records of bridge commands")
    devices = context.expect_status(context.request_locally("GET", "/bridge/devices"), 200)
    context.expect_equal(devices["active_device_id"] == device, False, "whether a phone is selected")
    context.expect_refused(session.host, voice["websocket_path"], session.token, 404, "voice session")


CHECKS = (restart,)
