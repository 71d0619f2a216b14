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
from tests.fuzz.plant import Bed, Real

__all__ = ["SERVERS"]

SERVERS = Bed(Invariant.AS_TOLD)


@SERVERS.instead(9, mcp, "_edition")
def a_tool_in_other_words_is_the_same(config: ServerConfig, row: Members) -> str:
    return sha256_hex(f"{config.name} {row.get('name')}")[:12]


@SERVERS.around(6, StdioCarrier, "send")
def a_server_is_not_told_that_nobody_waits(
    send: Real[None], self: StdioCarrier, text: bytes, identity: RequestId | None
) -> None:
    if b"notifications/cancelled" not in text:
        send(self, text, identity)


@SERVERS.instead(1, Answers, "was_asked")
def a_yes_by_mcp_is_good_again(self: Answers, state: str, name: str, arguments: Mapping[str, object]) -> bool:
    return self._pending.peek(state) == (name, arguments)


@SERVERS.instead(98, Conversation, "close")
def a_session_of_mcp_begins_what_waits_when_it_ends(self: Conversation) -> None:
    if self._subscriptions is not None:
        self._subscriptions.close()
    calls, self._calls = self._calls, {}
    for call in calls.values():
        call.drop()


@SERVERS.around(1, Api, "authorize")
def any_answer_forgives_wrong_keys(
    authorize: Real[Stranger | str | None], self: Api, access: Enum, request: Request
) -> Stranger | str | None:
    caller = authorize(self, access, request)
    self._guesses.right(request, self.engine.now)
    return caller


SERVERS.put(14, "who_listens_no_more_keeps_his_place", Listening, "_close", lambda self: self._subscriptions.close())
