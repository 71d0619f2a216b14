"""Bugs to plant in what an agent does with servers of MCP, in questions by MCP, and in who guesses the API's key."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fuzz.invariants import Invariant
from svc_proto.agent.mcp_config import ServerConfig
from svc_proto.agent.tools import mcp
from svc_proto.api.service import Api
from svc_proto.basics.entropy import sha256_hex
from svc_proto.engine.message import Request, Stranger
from svc_proto.mcp.answers import Answers
from svc_proto.mcp.conversation import Conversation
from svc_proto.mcp.updates import Listening
from svc_proto.peers.mcp_stdio import StdioCarrier
from svc_proto.schema.mcp_messages import RequestId
from svc_proto.schema.members import Members
from tests.fuzz.plant import Patch, Plant

__all__ = ["SERVERS"]


def _a_tool_in_other_words_is_the_same(patch: Patch) -> None:
    def lax(config: ServerConfig, row: Members) -> str:
        return sha256_hex(f"{config.name} {row.get('name')}")[:12]

    patch.setattr(mcp, "_edition", lax)


def _a_server_is_not_told_that_nobody_waits(patch: Patch) -> None:
    send = StdioCarrier.send

    def lax(self: StdioCarrier, text: bytes, identity: RequestId | None) -> None:
        if b"notifications/cancelled" not in text:
            send(self, text, identity)

    patch.setattr(StdioCarrier, "send", lax)


def _a_yes_by_mcp_is_good_again(patch: Patch) -> None:
    def lax(self: Answers, state: str, name: str, arguments: Mapping[str, object]) -> bool:
        return self._pending.peek(state) == (name, arguments)

    patch.setattr(Answers, "was_asked", lax)


def _a_session_of_mcp_begins_what_waits_when_it_ends(patch: Patch) -> None:
    def lax(self: Conversation) -> None:
        if self._subscriptions is not None:
            self._subscriptions.close()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.drop()

    patch.setattr(Conversation, "close", lax)


def _who_listens_no_more_keeps_his_place(patch: Patch) -> None:
    patch.setattr(Listening, "_close", lambda self: self._subscriptions.close())


def _any_answer_forgives_wrong_keys(patch: Patch) -> None:
    authorize = Api.authorize

    def lax(self: Api, access: Enum, request: Request) -> Stranger | str | None:
        caller = authorize(self, access, request)
        self._guesses.right(request, self.engine.now)
        return caller

    patch.setattr(Api, "authorize", lax)


TOLD = (Invariant.AS_TOLD,)
SERVERS = (
    Plant(_a_tool_in_other_words_is_the_same, 9, TOLD),
    Plant(_a_server_is_not_told_that_nobody_waits, 6, TOLD),
    Plant(_a_yes_by_mcp_is_good_again, 1, TOLD),
    Plant(_a_session_of_mcp_begins_what_waits_when_it_ends, 98, TOLD),
    Plant(_who_listens_no_more_keeps_his_place, 14, TOLD),
    Plant(_any_answer_forgives_wrong_keys, 1, TOLD),
)
