"""Methods for approvals and questions. The agent requests no secrets; an answer with one is reported as expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.machines.approvals import LASTING, LASTING_TEXT, parse_approval
from svc_proto.schema.gateway_rpc import RpcCall
from svc_proto.service_clients.authority import MANAGE

if TYPE_CHECKING:
    from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
    from svc_proto.api.gateway.live_session import LiveGateway

__all__ = ["methods"]

NEVER_ASKED = ("sudo.respond", "secret.respond", "terminal.read.respond")


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for answers to questions by name."""

    def approve(connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        session = yield from gateway.find(connection, call)
        answer, turn = parse_approval(call.params), session.turn
        if turn is None:
            return {"resolved": 0, "status": "expired"}
        authority = gateway.api.authority(connection.request)
        if answer.choice in LASTING and not authority.holds(MANAGE):
            raise Refused(403, "grant_required", LASTING_TEXT)
        answered = turn.answer(answer.choice, call_id=answer.call_id or "", everything=answer.everything)
        if answer.choice in LASTING:
            for event in answered:
                gateway.api.ledger.approval(authority.name, session.id, event.pattern)
        return {"resolved": len(answered), **({} if answered else {"status": "expired"})}

    def clarify(connection: GatewayConnection, call: RpcCall) -> Result:
        """Answer a question by its request id, in any live session.

        The status is `expired` if no present turn has the question, or its run is being stopped.
        """
        request_id, text = call.text("request_id"), call.text("answer")
        turns = [session.turn for session in gateway.sessions.values()]
        answered = any(turn.answer_question(request_id, text) for turn in turns if turn is not None)
        return {"status": "ok" if answered else "expired"}

    return {
        "approval.respond": approve,
        "clarify.respond": clarify,
        **dict.fromkeys(NEVER_ASKED, _answer_too_late),
    }


def _answer_too_late(connection: GatewayConnection, call: RpcCall) -> Result:
    return {"status": "expired"}
