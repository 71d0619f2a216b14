"""Methods for questions. The agent asks for approvals only; answers to any other question are too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.engine.flow import Flow
from svc_proto.machines.approvals import parse_approval
from svc_proto.schema.gateway_rpc import RpcCall

if TYPE_CHECKING:
    from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
    from svc_proto.api.gateway.service import ApiGateway

__all__ = ["methods"]

NEVER_ASKED = ("clarify.respond", "sudo.respond", "secret.respond", "terminal.read.respond")


def methods(gateway: ApiGateway) -> dict[str, Method]:
    """Return the gateway's methods for answers to questions by name."""

    def approve(connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        session = yield from gateway.find(connection, call)
        answer, turn = parse_approval(call.params), session.turn
        resolved = 0
        if turn is not None:
            resolved = turn.answer(answer.choice, call_id=answer.call_id or "", everything=answer.everything)
        return {"resolved": resolved, **({} if resolved else {"status": "expired"})}

    return {
        "approval.respond": approve,
        **dict.fromkeys(NEVER_ASKED, _answer_too_late),
    }


def _answer_too_late(connection: GatewayConnection, call: RpcCall) -> Result:
    return {"status": "expired"}
