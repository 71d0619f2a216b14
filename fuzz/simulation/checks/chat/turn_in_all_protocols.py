"""One turn in seven protocols: each reports the same turn, and the same rows are stored."""

from __future__ import annotations

from fuzz.simulation.checks.check_context import Audit, header
from fuzz.simulation.checks.support.stream_capture import Events
from fuzz.simulation.checks.support.turn_script import PROTOCOLS, draw_turn, find_differences, request_of


def turn_in_all_protocols(audit: Audit) -> None:
    """Send the same turn by every protocol, and compare the answers and rows with the model of the turn."""
    for _ in range(2):
        turn = draw_turn(audit.rng, audit.word())
        for protocol in PROTOCOLS:
            chat, events = audit.new_chat(), Events()
            path, body, streams = request_of(protocol, chat, turn)
            named = {"x_svc_session_id": chat} if protocol.startswith("completion") else {}
            caller = audit.begin_api("POST", path, body, events if streams else None, **named)
            audit.answer(caller, 120.0)
            found = find_differences(turn, protocol, caller.status, caller.answer.body, events.told)
            audit.same(found, {}, f"{protocol} of {turn}")
            session = header(caller, "x-svc-session-id") or chat
            rows = audit.rows_of(session) if caller.status == 200 else []
            stored = [(row["role"], row["content"], row.get("finish_reason"), row.get("tool_name")) for row in rows]
            audit.same(stored, turn.rows() if rows else [], f"rows of {protocol}")


CHECKS = (turn_in_all_protocols,)
