"""Restart of a relay: paired sessions survive; everything that was kept in memory is gone."""

from __future__ import annotations

from base64 import b64encode

from fuzz.simulation.checks.check_context import Audit
from fuzz.simulation.checks.support.paired_device import pair, register, sign_in

GUESSES = 5  # failed authentications until an address is blocked


def restart(audit: Audit) -> None:
    """Leave something in each table of the relay, stop or kill the relay, and look at what a new process knows."""
    session, phone = pair(audit), pair(audit, device_id=audit.word(), surface="android", form="phone")
    device, disk, spool = phone.shown["device_id"], audit.world.home.disk, audit.world.home.spool
    files = {*disk.files(spool)}  # left by a relay that was killed while its clock was ahead
    code, guesser = register(audit), audit.host()
    phone.seat.say("notifications", "notification.posted", {"title": audit.word()})
    phone.seat.say("bridge", "bridge.status", {"mark": audit.word()})
    upload = {"content_type": "text/plain", "content": b64encode(audit.word().encode()).decode(), "file_name": "a.txt"}
    media = audit.right(audit.ask(session.token, "POST", "/media/upload", upload), 200)["token"]
    audit.right(audit.ask_here("POST", "/bridge/select-active", {"device": device}), 200)
    command = audit.begin_as(session.token, "GET", f"/ping?device={device}")
    phone.seat.obey({})
    audit.right(audit.answer(command), 200)
    voice = audit.right(audit.ask(session.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
    for _ in range(GUESSES):
        guess = sign_in(audit, guesser, {"pairing_code": "ZZZZZZ"})
        audit.same(guess.take()["type"], "auth.fail", "unknown pairing code")
    audit.same(audit.sit(guesser).talker.status, 429, "address after too many guesses")

    killed = audit.chance(0.5)
    audit.restart("relay", kill=killed)
    audit.same(audit.sit(guesser).opened, True, "whether a blocked address may connect")
    for token in (session.token, phone.token):
        seat = sign_in(audit, audit.host(), {"session_token": token})
        audit.same(seat.take()["type"], "auth.ok", "session token")
        seat.hang_up()
    refused = sign_in(audit, audit.host(), {"pairing_code": code})
    audit.same(refused.take()["type"], "auth.fail", "pairing code of before the restart")
    audit.right(audit.ask(session.token, "GET", f"/media/{media}"), 404, "not_found")
    audit.same(audit.right(audit.ask_here("GET", "/media/inspect?include_expired=1"), 200)["media"], [], "media")
    if not killed:
        audit.same({*disk.files(spool)} - files, set(), "files of uploads")
    notifications = audit.right(audit.ask_here("GET", "/notifications/recent"), 200)["notifications"]
    audit.same(notifications, [], "notifications")
    records = audit.right(audit.ask_here("GET", "/bridge/activity"), 200)["activity"]
    audit.same([each for each in records if each["device_id"] == device], [], "records of bridge commands")
    devices = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)
    audit.same(devices["active_device_id"] == device, False, "whether a phone is selected")
    audit.turned_away(session.host, voice["websocket_path"], session.token, 404, "voice session")


CHECKS = (restart,)
