"""Check of one turn in every chat protocol: each report and the rows stored after status 200 are those of the turn."""

from __future__ import annotations

from fuzz.simulation.checks.check_context import CheckContext, header
from fuzz.simulation.checks.support.stream_capture import EventCapture
from fuzz.simulation.checks.support.turn_script import PROTOCOLS, draw_turn, find_differences, request_of


def turn_in_all_protocols(context: CheckContext) -> None:
    """Send each of two turns by every protocol, in a chat each, and compare the answers with the script of the turn.

    After an answer with status 200, the stored rows are compared too.
    """
    for _ in range(2):
        turn = draw_turn(context.rng, context.new_word())
        for protocol in PROTOCOLS:
            chat, events = context.new_chat(), EventCapture()
            path, body, streams = request_of(protocol, chat, turn)
            named = {"x_svc_session_id": chat} if protocol.startswith("completion") else {}
            caller = context.start_api_request("POST", path, body, events if streams else None, **named)
            context.wait_response(caller, 120.0)
            found = find_differences(turn, protocol, caller.status, caller.answer.body, events.told)
            context.expect_equal(found, {}, f"{protocol} of {turn}")
            session = header(caller, "x-svc-session-id") or chat
            rows = context.stored_rows(session) if caller.status == 200 else []
            stored = [(row["role"], row["content"], row.get("finish_reason"), row.get("tool_name")) for row in rows]
            context.expect_equal(stored, turn.rows() if rows else [], f"rows of {protocol}")


CHECKS = (turn_in_all_protocols,)
