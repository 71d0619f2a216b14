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
from tests.fuzz.plant import Patch, Plant

__all__ = ["MCP"]


# --- the relay's `/mcp` ---


def _a_tool_is_performed_after_a_revocation(patch: Patch) -> None:
    patch.setattr(McpServer, "end_of", lambda self, caller: None)
    patch.setattr(mcp_link, "need_bridge", lambda session, now, *, looks=False: session)


def _a_result_is_told_to_another_session(patch: Patch) -> None:
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


def _who_comes_back_hears_an_event_again(patch: Patch) -> None:
    after = ReplayLog._after

    def again(self: ReplayLog, at: int) -> list[tuple[int, bytes]]:
        return after(self, max(self._dropped, at - 1)) if at < len(self._said) else []

    patch.setattr(ReplayLog, "_after", again)


def _who_comes_back_misses_an_event(patch: Patch) -> None:
    tell = ReplayLog.tell

    def later(self: ReplayLog, writer: Any, after: int, *, greet: bool = False) -> Flow[None]:
        return tell(self, writer, after + (after > 0), greet=greet)

    patch.setattr(ReplayLog, "tell", later)


def _a_cancelled_call_is_carried_out(patch: Patch) -> None:
    def cancelled(self: Conversation, identity: Any) -> None:
        """It is told that this is known, and that is all."""

    patch.setattr(Conversation, "_cancelled", cancelled)


def _a_session_that_ended_goes_on_working(patch: Patch) -> None:
    patch.setattr(HttpSession, "close", lambda self: None)


def _updates_go_on_for_who_wants_none(patch: Patch) -> None:
    patch.setattr(Subscriptions, "remove", lambda self, uri: None)


def _a_note_is_lost_to_who_is_away(patch: Patch) -> None:
    put = Notices.put

    def only_if_heard(self: Notices, said: Any) -> None:
        if self.reader is not None and self.told:
            put(self, said)

    patch.setattr(Notices, "put", only_if_heard)


def _a_no_of_its_user_is_a_yes(patch: Patch) -> None:
    question = Conversation.question

    def agreed(self: Conversation, text: str, say: Say) -> Flow[bool]:
        yield from question(self, text, say)
        return True

    patch.setattr(Conversation, "question", agreed)


def _a_session_of_mcp_is_anybodys(patch: Patch) -> None:
    find = HttpSessions.find

    def anybodys(self: HttpSessions, caller: str, identity: bytes | None) -> Any:
        session = None if identity is None else self._sessions.peek(identity.decode())
        return find(self, caller if session is None else session.caller, identity)

    patch.setattr(HttpSessions, "find", anybodys)


# --- what the owner allows ---


def _a_rotated_refresh_token_still_works(patch: Patch) -> None:
    refreshed = Sessions.refreshed

    def any_of_them(self: Sessions, token: str, now: Moment) -> tuple[Session | None, bool]:
        session, _ = refreshed(self, token, now)
        return session, session is not None

    patch.setattr(Sessions, "refreshed", any_of_them)


def _an_access_token_outlives_its_successor(patch: Patch) -> None:
    patch.setattr(Sessions, "_forget_tokens", lambda self, session: None)


def _a_refresh_token_used_twice_ends_nothing(patch: Patch) -> None:
    def unmoved(self: OAuth, session: Session | None, why: str) -> Flow[None]:
        yield from ()

    patch.setattr(OAuth, "_misused", unmoved)


def _a_code_is_good_twice(patch: Patch) -> None:
    trade = OwnerConsents.trade

    def again(
        self: OwnerConsents, secret: str, client: str, redirect: str | None, verifier: str, now: Moment
    ) -> tuple[Consent | None, bool]:
        consent, good = trade(self, secret, client, redirect, verifier, now)
        if consent is not None and good:
            consent.state = ConsentState.ISSUED
        return consent, good

    patch.setattr(OwnerConsents, "trade", again)


def _any_verifier_is_good(patch: Patch) -> None:
    patch.setattr("svc_proto.machines.consent.proves", lambda verifier, challenge: True)


def _a_no_of_the_owner_is_a_yes(patch: Patch) -> None:
    answer = OwnerConsents.answer

    def agreed(self: OwnerConsents, consent: Consent, allowed: Allowed | None, now: Moment) -> None:
        answer(self, consent, allowed or Allowed(consent.question.scope, 600.0), now)

    patch.setattr(OwnerConsents, "answer", agreed)


def _the_owners_second_answer_counts(patch: Patch) -> None:
    answer = OwnerConsents.answer

    def asked(self: OwnerConsents, code: str, now: Moment) -> Consent | None:
        return next((each for each in self._consents.values() if each.code == code), None)

    def anew(self: OwnerConsents, consent: Consent, allowed: Allowed | None, now: Moment) -> None:
        consent.state = ConsentState.ASKED
        answer(self, consent, allowed, now)

    patch.setattr(OwnerConsents, "asked", asked)
    patch.setattr(OwnerConsents, "answer", anew)


def _who_may_only_look_may_act(patch: Patch) -> None:
    patch.setattr(RelayPhones, "may_act", lambda self: True)
    patch.setattr(mcp_link, "need_bridge", lambda session, now, *, looks=False: session)


# --- servers of others ---


def _an_answer_with_another_number_is_taken(patch: Patch) -> None:
    heard = McpClient.heard

    def oldest(self: McpClient, data: bytes | str) -> None:
        before = self.ignored
        heard(self, data)
        members = Members.of(_object(data))
        if self.ignored > before and "result" in members and self._asked:
            identity = next(iter(self._asked))
            heard(self, json.dumps({**members, "jsonrpc": "2.0", "id": identity}))

    patch.setattr(McpClient, "heard", oldest)


def _object(data: bytes | str) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _what_a_server_says_of_its_tools_is_believed(patch: Patch) -> None:
    make = tools._tool

    def trusting(config: ServerConfig, raw: str, row: Members, run: tools.Run) -> Tool | None:
        return make(evolve(config, trust=True), raw, row, run)

    patch.setattr(tools, "_tool", trusting)


def _a_lost_server_takes_its_call_for_a_bug(patch: Patch) -> None:
    call = ConfiguredServer.call

    def careless(self: ConfiguredServer, name: str, arguments: Mapping[str, object]) -> Flow[Returned]:
        try:
            return (yield from call(self, name, arguments))
        except ToolError as failed:
            if "signal" in str(failed) or "exited" in str(failed):
                raise RuntimeError(str(failed)) from None
            raise

    patch.setattr(ConfiguredServer, "call", careless)


def _a_call_of_a_lost_server_is_made_again(patch: Patch) -> None:
    ask = ConfiguredServer._ask

    def stubborn(self: ConfiguredServer, name: str, arguments: Mapping[str, object]) -> Flow[Returned]:
        try:
            return (yield from ask(self, name, arguments))
        except McpFailed:
            yield from sleep(self._engine, 3.0)
            return (yield from ask(self, name, arguments))

    patch.setattr(ConfiguredServer, "_ask", stubborn)


def _who_waits_for_a_lost_server_waits_on(patch: Patch) -> None:
    ask = McpClient.ask

    def patient(self: McpClient, method: str, params: Mapping[str, object], *, within: float) -> Flow[Members]:
        return ask(self, method, params, within=within if method != "tools/call" else 100 * within)

    patch.setattr(McpClient, "ask", patient)


# --- the API's `/mcp` ---


def _a_turn_that_nobody_wants_goes_on(patch: Patch) -> None:
    start = Runs._start

    def alone(self: Runs, order: TurnOrder, holder: str) -> Run:
        return start(self, evolve(order, stops_alone=False), holder)

    patch.setattr(Runs, "_start", alone)


def _words_are_told_as_they_come_and_once_more(patch: Patch) -> None:
    def twice(self: _Told) -> None:
        pieces, self._pieces = self._pieces, self._pieces[-1:]
        if pieces:
            self._timer.set(self._engine.now.mono + EVERY)
            self._telling("".join(pieces))
        if len(pieces) == 1:
            self._pieces = []

    patch.setattr(_Told, "_round", twice)


def _a_chat_is_read_without_its_last_message(patch: Patch) -> None:
    read = _Agent._messages

    def short(self: _Agent, session: str) -> Flow[str]:
        told = json.loads((yield from read(self, session)))
        return json.dumps({**told, "messages": told["messages"][1:]})

    patch.setattr(_Agent, "_messages", short)


MCP = (
    Plant(_a_tool_is_performed_after_a_revocation, 48, (Invariant.LIVE_GRANT,), quick=True),
    Plant(_a_result_is_told_to_another_session, 111, (Invariant.OWN_ANSWER,), quick=True),
    Plant(_who_comes_back_hears_an_event_again, 2, (Invariant.STREAM, Invariant.ONE_ANSWER)),
    Plant(_who_comes_back_misses_an_event, 222, (Invariant.STREAM, Invariant.IN_TIME)),
    Plant(_a_cancelled_call_is_carried_out, 176, (Invariant.CANCELLED,)),
    Plant(_a_session_that_ended_goes_on_working, 212, (Invariant.AFTER_END, Invariant.CANCELLED, Invariant.LIVE_GRANT)),
    Plant(_updates_go_on_for_who_wants_none, 72, (Invariant.OWN_BYTES,)),
    Plant(_a_note_is_lost_to_who_is_away, 167, (Invariant.IN_TIME,)),
    Plant(_a_no_of_its_user_is_a_yes, 191, (Invariant.CONFIRMED,)),
    Plant(_a_session_of_mcp_is_anybodys, 191, (Invariant.DOORS,)),
    Plant(_a_rotated_refresh_token_still_works, 74, (Invariant.TOKENS_ONCE,), quick=True),
    Plant(_an_access_token_outlives_its_successor, 247, (Invariant.TOKENS_ONCE,)),
    Plant(_a_refresh_token_used_twice_ends_nothing, 129, (Invariant.TOKENS_ONCE,)),
    Plant(_a_code_is_good_twice, 24, (Invariant.TOKENS_ONCE,)),
    Plant(_any_verifier_is_good, 24, (Invariant.TOKENS_ONCE,)),
    Plant(_a_no_of_the_owner_is_a_yes, 265, (Invariant.CONSENT,), quick=True),
    Plant(_the_owners_second_answer_counts, 14, (Invariant.CONSENT,)),
    Plant(_who_may_only_look_may_act, 147, (Invariant.LOOKS_ONLY,), quick=True),
    Plant(_an_answer_with_another_number_is_taken, 129, (Invariant.OWN_ANSWER,)),
    Plant(_what_a_server_says_of_its_tools_is_believed, 102, (Invariant.CONFIRMED,)),
    Plant(_a_lost_server_takes_its_call_for_a_bug, 50, (Invariant.NO_BUG,)),
    Plant(_a_call_of_a_lost_server_is_made_again, 6, (Invariant.ONE_ANSWER,)),
    Plant(_who_waits_for_a_lost_server_waits_on, 173, (Invariant.ONE_END,)),
    Plant(_a_turn_that_nobody_wants_goes_on, 49, (Invariant.CANCELLED,)),
    Plant(_words_are_told_as_they_come_and_once_more, 111, (Invariant.STREAM,)),
    Plant(_a_chat_is_read_without_its_last_message, 67, (Invariant.STORED,)),
)
