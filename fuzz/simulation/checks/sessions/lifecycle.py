"""Check of a paired session's end: all that it opened ends soon, and a restart does not revive it (wire core 4)."""

from typing import Any

from fuzz.simulation.checks.check_context import CheckContext, header
from fuzz.simulation.checks.support.paired_device import PairedDevice, listed, pair, sign_in
from tests.support.sim_http import RequestClient

ENDS_WITHIN = 2.0  # s from the end of a session to the end of all its sockets and calls
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ROUTES: tuple[tuple[str, str, object], ...] = (
    ("GET", "/sessions", None), ("GET", "/notifications/recent", None), ("GET", "/media/none", None),
    ("POST", "/type", {"text": "a"}), ("POST", "/clipboard/inbox", {}), ("POST", "/media/upload", {}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
)  # fmt: skip


def session_end(context: CheckContext) -> None:
    """End a session with open sockets and calls, in one of several ways, and check that all of them end.

    After a restart of the relay, the session must still be refused.
    """
    session, other = pair(context), pair(context)
    phone = pair(context, device_id=context.new_word(), surface="android", form="phone")
    session.seat.send_envelope("terminal", "terminal.attach", {"session_name": "t"}, "t")
    shell = session.seat.next_message()["payload"]["pid"]
    voice_session = context.expect_status(
        context.request(session.token, "POST", "/voice/output/session", {"provider": "stub"}), 200
    )
    bearer = f"Bearer {session.token}"
    voice = context.open_socket(session.host, voice_session["websocket_path"], authorization=bearer)
    context.expect_equal(voice.next_message()["type"], "voice.session.ready", "voice session")
    stream = _open_mcp_stream(context, session)
    command = context.start_request_as(session.token, "GET", f"/ping?device={phone.shown['device_id']}")
    phone.seat.next_message()

    _end(context, session, other)
    for connection, name in ((session.seat, "client socket"), (voice, "voice socket"), (stream, "MCP stream")):
        context.wait_closed(connection, ENDS_WITHIN, f"the {name} outlives its session")
    codes = (session.seat.talker.close_code, voice.talker.close_code)
    context.expect_equal(codes, (1008, 1008), "close codes of sockets whose session has ended")
    context.expect_equal(session.seat.heard[-1]["payload"]["error"], "session_ended", "last message to the client")
    context.expect_status(
        context.wait_response(command, ENDS_WITHIN), 401, "unauthorized", "a command that waits for a phone"
    )
    context.sleep(4.0)
    context.expect_equal(shell in context.child_processes, False, "whether the shell of a session runs that has ended")

    _check_refused(context, session)
    context.restart("relay", kill=context.chance(0.5))
    _check_refused(context, session)
    context.expect_equal(session.prefix in listed(context), False, "whether a session is listed that has ended")
    for one in (other, phone):
        context.expect_status(context.request(one.token, "GET", "/sessions"), 200, about="another session")


def _open_mcp_stream(context: CheckContext, session: PairedDevice) -> RequestClient:
    params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    opened = context.request(session.token, "POST", "/mcp", body, **MCP)
    context.expect_status(opened, 200)
    identity = header(opened, "mcp-session-id")
    stream = context.start_request_as(session.token, "GET", "/mcp", **MCP, mcp_session_id=identity)
    context.wait_until(lambda: stream.head is not None, why="an MCP stream does not open")
    return stream


def _end(context: CheckContext, session: PairedDevice, other: PairedDevice) -> None:
    """End a session: revoked by the operator, by itself or by another session, or expired."""
    path = f"/sessions/{session.prefix}"
    match context.rng.randrange(3):
        case 0:
            context.expect_status(context.request_locally("DELETE", path), 200)
        case 1:
            by = context.pick((session, other))
            context.expect_status(context.request(by.token, "DELETE", path), 200)
        case _:
            context.expect_status(context.request_locally("PATCH", path, {"ttl_seconds": 5}), 200)
            context.sleep(5.0)


def _check_refused(context: CheckContext, session: PairedDevice) -> None:
    for method, path, body in ROUTES:
        context.expect_status(
            context.request(session.token, method, path, body), 401, about=f"{method} {path} of an ended session"
        )
    seat = sign_in(context, context.new_host(), {"session_token": session.token})
    context.expect_equal(seat.next_message()["type"], "auth.fail", "token of an ended session")
    seat.expect_close(1000, "a socket with the token of an ended session")


CHECKS = (session_end,)
