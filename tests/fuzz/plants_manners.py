"""Bugs to plant in APIs by other settings, in lists of chats of many sources, and where a store is away."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.about.monitor import Monitor
from svc_proto.agent.builtin import BuiltinAgent
from svc_proto.api import access, turn
from svc_proto.api.access import Cors, KeyGuesses
from svc_proto.api.projections.completions import CompletionProjection
from svc_proto.api.routes import sessions
from svc_proto.api.run import Run
from svc_proto.api.service import Api
from svc_proto.api.store import DeleteChat, ListChats
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.engine.message import Request
from svc_proto.wire.events import Headers
from tests.fuzz.plant import Bed, Real

__all__ = ["MANNERS"]

MANNERS = Bed(Invariant.AS_TOLD)


@MANNERS.around(18, access, "branded_header")
def a_scope_needs_no_key(branded: Real[str | None], headers: Headers, name: str) -> str | None:
    return None if name == access.SESSION_KEY else branded(headers, name)


@MANNERS.around(22, Cors, "fields")
def a_page_is_told_of_another(fields: Real[Any], self: Cors, headers: Headers, *, secure: bool) -> Any:
    told = fields(self, headers, secure=secure)
    swap = b"access-control-allow-origin"
    return tuple((name, self.origins[0].encode() if name == swap else value) for name, value in told)


@MANNERS.instead(22, Cors, "allows")
def a_page_of_the_same_host_may_call(self: Cors, headers: Headers) -> bool:
    origin = headers.get(b"origin")
    hosts = [each.partition("//")[2].partition(":")[0].encode() for each in self.origins]
    return origin is None or "*" in self.origins or origin.partition(b"//")[2].partition(b":")[0] in hosts


@MANNERS.around(1, Monitor, "check")
def the_key_opens_the_monitor(check: Real[None], self: Monitor, request: Request) -> None:
    if b"lodge-key" not in (request.headers.get(b"authorization") or b""):
        check(self, request)


@MANNERS.around(60, Api, "authorize")
def who_is_blocked_may_not_show_the_right_key(authorize: Real[Any], self: Api, policy: Any, request: Request) -> Any:
    now: Moment = self.engine.now
    if policy is access.Access.KEY and request.headers.get(b"authorization"):
        refused = self._guesses.limiter.refusal(request.peer.host, now, "rate_limit_exceeded", "later")
        if refused is not None:
            raise refused
    return authorize(self, policy, request)


@MANNERS.around(50, CompletionProjection, "__init__")
def progress_is_told_in_one_spelling(init: Real[None], self: CompletionProjection, **more: Any) -> None:
    init(self, **{**more, "brand": BRANDS["svc"]})


@MANNERS.around(1, BuiltinAgent, "run")
def the_built_in_agent_counts_only_what_it_was_asked(run: Real[Any], self: BuiltinAgent, asked: Any, host: Any) -> Any:
    return run(self, evolve(asked, history=()), host)


@MANNERS.instead(4, sessions, "ListChats")
def sources_are_all_in_small_letters(**more: Any) -> Any:
    source = more.get("source")
    return ListChats(**{**more, "source": source.lower() if source else source})


@MANNERS.around(4, Api, "query")
def a_page_counts_what_it_shows(query: Real[Any], self: Api, request: Any) -> Any:
    answer = yield from query(self, request)
    if isinstance(request, ListChats) and request.source:
        return evolve(answer, total=len(answer.sessions))
    return answer


@MANNERS.around(61, Api, "query")
def copies_go_with_their_source(query: Real[Any], self: Api, request: Any) -> Any:
    if isinstance(request, DeleteChat):
        page = yield from query(self, ListChats(limit=1_000, include_archived=True))
        for chat in page.sessions:
            if chat.parent_id == request.id:
                yield from query(self, DeleteChat(id=chat.id))
    return (yield from query(self, request))


@MANNERS.around(12, turn, "_store")
def an_answer_that_is_not_stored_is_whole(store: Real[Any], api: Api, *rows: Any) -> Any:
    try:
        yield from store(api, *rows)
    except Refused:
        return


@MANNERS.around(2, Run, "_keep")
def rows_that_were_not_taken_are_forgotten(keep: Real[Any], self: Run, row: Any) -> Any:
    self._unkept.clear()
    return keep(self, row)


@MANNERS.around(2, turn, "_open")
def a_model_is_asked_before_the_question_is_stored(opened: Real[Any], api: Api, order: Any, rows: Any) -> Any:
    try:
        return (yield from opened(api, order, rows))
    except Refused:
        return ()


MANNERS.put(18, "any_name_will_do", access, "names_this_network", lambda authority, names=(): b"evil" not in authority)
MANNERS.put(34, "the_right_key_forgives_nothing", KeyGuesses, "right", lambda self, request, now: None)
