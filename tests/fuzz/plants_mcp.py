"""Bugs to plant in MCP, both ways: whose an answer is, what an allowance is worth, what a server of others may do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.agent.mcp_config import ServerConfig
from svc_proto.agent.mcp_server import ConfiguredServer
from svc_proto.agent.tools import mcp as tools
from svc_proto.agent.tools.tool import Returned, Tool
from svc_proto.api.mcp_agent import EVERY, _Agent, _Told
from svc_proto.api.run import Run
from svc_proto.api.runs import Runs
from svc_proto.api.turn import TurnOrder
from svc_proto.basics.errors import ToolError
from svc_proto.basics.moment import Moment
from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.consent import Allowed, Consent, ConsentState, OwnerConsents
from svc_proto.machines.session import Session
from svc_proto.machines.sessions import Sessions
from svc_proto.mcp.call import Said, Say
from svc_proto.mcp.conversation import Conversation
from svc_proto.mcp.http import McpServer
from svc_proto.mcp.http_sessions import HttpSession, HttpSessions
from svc_proto.mcp.http_stream import Notices, ReplayLog
from svc_proto.mcp.updates import Subscriptions
from svc_proto.peers.mcp import McpClient, McpFailed
from svc_proto.relay import mcp_link
from svc_proto.relay.mcp_link import RelayPhones
from svc_proto.relay.oauth import OAuth
from svc_proto.schema.mcp_messages import RpcRequest
from svc_proto.schema.members import Members
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["MCP"]

MCP = Bed[Invariant]()


# --- the relay's `/mcp` ---


@MCP.plant(48, Invariant.LIVE_GRANT, quick=True)
def a_tool_is_performed_after_a_revocation(patch: Patch) -> None:
    patch.setattr(McpServer, "end_of", lambda self, caller: None)
    patch.setattr(mcp_link, "need_bridge", lambda session, now, *, looks=False: session)


@MCP.plant(111, Invariant.OWN_ANSWER, quick=True)
def a_result_is_told_to_another_session(patch: Patch) -> None:
    ask, over = Conversation.ask, Conversation.over
    all_of_them: dict[Conversation, None] = {}

    def asked(self: Conversation, request: RpcRequest, say: Say) -> None:
        all_of_them[self] = None
        ask(self, request, say)

    def confused(self: Conversation, identity: Any, say: Say, said: Said) -> None:
        other = next((each for each in all_of_them if each is not self and identity in each._calls), None)
        if other is not None:
            theirs = other._calls[identity]
            say, theirs._say = theirs._say, say
        over(self, identity, say, said)

    patch.setattr(Conversation, "ask", asked)
    patch.setattr(Conversation, "over", confused)


@MCP.around(2, ReplayLog, "_after", Invariant.STREAM, Invariant.ONE_ANSWER)
def who_comes_back_hears_an_event_again(
    after: Real[list[tuple[int, bytes]]], self: ReplayLog, at: int
) -> list[tuple[int, bytes]]:
    return after(self, max(self._dropped, at - 1)) if at < len(self._said) else []


@MCP.around(222, ReplayLog, "tell", Invariant.STREAM, Invariant.IN_TIME)
def who_comes_back_misses_an_event(
    tell: Real[Flow[None]], self: ReplayLog, writer: Any, after: int, *, greet: bool = False
) -> Flow[None]:
    return tell(self, writer, after + (after > 0), greet=greet)


@MCP.instead(176, Conversation, "_cancelled", Invariant.CANCELLED)
def a_cancelled_call_is_carried_out(self: Conversation, identity: Any) -> None:
    """It is told that this is known, and that is all."""


@MCP.plant(212, Invariant.AFTER_END, Invariant.CANCELLED, Invariant.LIVE_GRANT)
def a_session_that_ended_goes_on_working(patch: Patch) -> None:
    patch.setattr(HttpSession, "close", lambda self: None)


@MCP.around(167, Notices, "put", Invariant.IN_TIME)
def a_note_is_lost_to_who_is_away(put: Real[None], self: Notices, said: Any) -> None:
    if self.reader is not None and self.told:
        put(self, said)


@MCP.around(191, Conversation, "question", Invariant.CONFIRMED)
def a_no_of_its_user_is_a_yes(question: Real[Flow[bool]], self: Conversation, text: str, say: Say) -> Flow[bool]:
    yield from question(self, text, say)
    return True


@MCP.around(191, HttpSessions, "find", Invariant.DOORS)
def a_session_of_mcp_is_anybodys(find: Real[Any], self: HttpSessions, caller: str, identity: bytes | None) -> Any:
    session = None if identity is None else self._sessions.peek(identity.decode())
    return find(self, caller if session is None else session.caller, identity)


# --- what the owner allows ---


@MCP.around(74, Sessions, "refreshed", Invariant.TOKENS_ONCE, quick=True)
def a_rotated_refresh_token_still_works(
    refreshed: Real[tuple[Session | None, bool]], self: Sessions, token: str, now: Moment
) -> tuple[Session | None, bool]:
    session, _ = refreshed(self, token, now)
    return session, session is not None


@MCP.plant(247, Invariant.TOKENS_ONCE)
def an_access_token_outlives_its_successor(patch: Patch) -> None:
    patch.setattr(Sessions, "_forget_tokens", lambda self, session: None)


@MCP.instead(129, OAuth, "_misused", Invariant.TOKENS_ONCE)
def a_refresh_token_used_twice_ends_nothing(self: OAuth, session: Session | None, why: str) -> Flow[None]:
    yield from ()


@MCP.around(24, OwnerConsents, "trade", Invariant.TOKENS_ONCE)
def a_code_is_good_twice(
    trade: Real[tuple[Consent | None, bool]],
    self: OwnerConsents,
    secret: str,
    client: str,
    redirect: str | None,
    verifier: str,
    now: Moment,
) -> tuple[Consent | None, bool]:
    consent, good = trade(self, secret, client, redirect, verifier, now)
    if consent is not None and good:
        consent.state = ConsentState.ISSUED
    return consent, good


@MCP.plant(24, Invariant.TOKENS_ONCE)
def any_verifier_is_good(patch: Patch) -> None:
    patch.setattr("svc_proto.machines.consent.proves", lambda verifier, challenge: True)


@MCP.around(265, OwnerConsents, "answer", Invariant.CONSENT, quick=True)
def a_no_of_the_owner_is_a_yes(
    answer: Real[None], self: OwnerConsents, consent: Consent, allowed: Allowed | None, now: Moment
) -> None:
    answer(self, consent, allowed or Allowed(consent.question.scope, 600.0), now)


@MCP.plant(14, Invariant.CONSENT)
def the_owners_second_answer_counts(patch: Patch) -> None:
    answer = OwnerConsents.answer

    def asked(self: OwnerConsents, code: str, now: Moment) -> Consent | None:
        return next((each for each in self._consents.values() if each.code == code), None)

    def anew(self: OwnerConsents, consent: Consent, allowed: Allowed | None, now: Moment) -> None:
        consent.state = ConsentState.ASKED
        answer(self, consent, allowed, now)

    patch.setattr(OwnerConsents, "asked", asked)
    patch.setattr(OwnerConsents, "answer", anew)


@MCP.plant(147, Invariant.LOOKS_ONLY, quick=True)
def who_may_only_look_may_act(patch: Patch) -> None:
    patch.setattr(RelayPhones, "may_act", lambda self: True)
    patch.setattr(mcp_link, "need_bridge", lambda session, now, *, looks=False: session)


# --- servers of others ---


@MCP.around(129, McpClient, "heard", Invariant.OWN_ANSWER)
def an_answer_with_another_number_is_taken(heard: Real[None], self: McpClient, data: bytes | str) -> None:
    before = self.ignored
    heard(self, data)
    members = Members.of(_object(data))
    if self.ignored > before and "result" in members and self._asked:
        identity = next(iter(self._asked))
        heard(self, json.dumps({**members, "jsonrpc": "2.0", "id": identity}))


def _object(data: bytes | str) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


@MCP.around(102, tools, "_tool", Invariant.CONFIRMED)
def what_a_server_says_of_its_tools_is_believed(
    make: Real[Tool | None], config: ServerConfig, raw: str, row: Members, run: tools.Run
) -> Tool | None:
    return make(evolve(config, trust=True), raw, row, run)


@MCP.around(50, ConfiguredServer, "call", Invariant.NO_BUG)
def a_lost_server_takes_its_call_for_a_bug(
    call: Real[Flow[Returned]], self: ConfiguredServer, name: str, arguments: Mapping[str, object]
) -> Flow[Returned]:
    try:
        return (yield from call(self, name, arguments))
    except ToolError as failed:
        if "signal" in str(failed) or "exited" in str(failed):
            raise RuntimeError(str(failed)) from None
        raise


@MCP.around(6, ConfiguredServer, "_ask", Invariant.ONE_ANSWER)
def a_call_of_a_lost_server_is_made_again(
    ask: Real[Flow[Returned]], self: ConfiguredServer, name: str, arguments: Mapping[str, object]
) -> Flow[Returned]:
    try:
        return (yield from ask(self, name, arguments))
    except McpFailed:
        yield from sleep(self._engine, 3.0)
        return (yield from ask(self, name, arguments))


@MCP.around(173, McpClient, "ask", Invariant.ONE_END)
def who_waits_for_a_lost_server_waits_on(
    ask: Real[Flow[Members]], self: McpClient, method: str, params: Mapping[str, object], *, within: float
) -> Flow[Members]:
    return ask(self, method, params, within=within if method != "tools/call" else 100 * within)


# --- the API's `/mcp` ---


@MCP.around(49, Runs, "_start", Invariant.CANCELLED)
def a_turn_that_nobody_wants_goes_on(start: Real[Run], self: Runs, order: TurnOrder, holder: str) -> Run:
    return start(self, evolve(order, stops_alone=False), holder)


@MCP.instead(111, _Told, "_round", Invariant.STREAM)
def words_are_told_as_they_come_and_once_more(self: _Told) -> None:
    pieces, self._pieces = self._pieces, self._pieces[-1:]
    if pieces:
        self._timer.set(self._engine.now.mono + EVERY)
        self._telling("".join(pieces))
    if len(pieces) == 1:
        self._pieces = []


@MCP.around(67, _Agent, "_messages", Invariant.STORED)
def a_chat_is_read_without_its_last_message(read: Real[Flow[str]], self: _Agent, session: str) -> Flow[str]:
    told = json.loads((yield from read(self, session)))
    return json.dumps({**told, "messages": told["messages"][1:]})


MCP.put(72, "updates_go_on_for_who_wants_none", Subscriptions, "remove", lambda self, uri: None, Invariant.OWN_BYTES)
