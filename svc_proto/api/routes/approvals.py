"""Routes of standing approvals: those for a chat and those for good, with the principal that gave each, if recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.api.access import ApiAccess
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.ports import ClientPort, SettingsPort
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import optional, text
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.facts import Failure
from svc_proto.machines.agent_changes import APPROVAL, AgentChange

if TYPE_CHECKING:
    from svc_proto.api.openapi.change_types import ApprovalEndedJson, StandingApprovalJson, StandingApprovalsJson

__all__ = ["routes"]


class ApprovalsPort(SettingsPort, ClientPort, Protocol):
    """Members of the API server that the routes of approvals use."""

    ledger: ChangeLedger


def routes(api: ApprovalsPort) -> list[Route]:
    """Return the routes that list and end standing approvals."""
    view = _ApprovalRoutes(api)
    return [
        Route(method="GET", pattern="/api/approvals", access=ApiAccess.MAIN_KEY, handler=view.list_all),
        Route(method="DELETE", pattern="/api/approvals", access=ApiAccess.MAIN_KEY, handler=view.end),
    ]


class _ApprovalRoutes:
    def __init__(self, api: ApprovalsPort) -> None:
        self._api = api

    def list_all(self, request: Request) -> Flow[JsonResponse[StandingApprovalsJson]]:
        """Return the standing approvals, without those of a chat that are also for good.

        Principal and time are null if the record of changes lacks the approval.
        """
        found = yield from self._standing()
        given = yield from self._api.ledger.find("")
        return json_response(200, {"approvals": [_row(chat, pattern, given) for chat, pattern in found]})

    def end(self, request: Request) -> Flow[JsonResponse[ApprovalEndedJson]]:
        """End the standing approval of `pattern` for the chat `session_id`; without a chat, the one for good.

        Without a chat, the same approvals of all chats end too. Raises `Refused` 404 if `list_all` does not list the
        approval, 503 if the approvals cannot be read or this one cannot be removed.
        """
        body = request.json_object()
        pattern, chat = text(body.get("pattern"), "pattern"), optional(body, "session_id", text) or ""
        if (chat, pattern) not in (yield from self._standing()):
            raise Refused(404, "not_found", "there is no such approval")
        problem = yield from self._api.parts.approvals.end(chat, pattern)
        if problem:
            raise Refused(503, "store_unavailable", problem)
        self._api.record_audit("approval ended", request, approval=pattern.partition(" ")[0])
        return json_response(200, {"ok": True})

    def _standing(self) -> Flow[list[tuple[str, str]]]:
        found = yield from self._api.parts.approvals.standing()
        if isinstance(found, Failure):
            raise Refused(503, "store_unavailable", "the approvals cannot be read")
        return found


def _row(chat: str, pattern: str, given: list[AgentChange]) -> StandingApprovalJson:
    by = [each for each in given if each.kind == APPROVAL and each.after == pattern and chat in ("", each.target)]
    return {
        "session_id": chat or None,
        "pattern": pattern,
        "principal": by[-1].principal if by else None,
        "at": by[-1].at if by else None,
    }
