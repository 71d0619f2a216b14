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
from tests.fuzz.plant import Patch, Plant

__all__ = ["MANNERS"]


def _a_scope_needs_no_key(patch: Patch) -> None:
    branded = access.branded_header

    def lax(headers: Headers, name: str) -> str | None:
        return None if name == access.SESSION_KEY else branded(headers, name)

    patch.setattr(access, "branded_header", lax)


def _any_name_will_do(patch: Patch) -> None:
    patch.setattr(access, "names_this_network", lambda authority, names=(): b"evil" not in authority)


def _a_page_is_told_of_another(patch: Patch) -> None:
    fields = Cors.fields

    def first(self: Cors, headers: Headers, *, secure: bool) -> Any:
        told = fields(self, headers, secure=secure)
        swap = b"access-control-allow-origin"
        return tuple((name, self.origins[0].encode() if name == swap else value) for name, value in told)

    patch.setattr(Cors, "fields", first)


def _a_page_of_the_same_host_may_call(patch: Patch) -> None:
    def lax(self: Cors, headers: Headers) -> bool:
        origin = headers.get(b"origin")
        hosts = [each.partition("//")[2].partition(":")[0].encode() for each in self.origins]
        return origin is None or "*" in self.origins or origin.partition(b"//")[2].partition(b":")[0] in hosts

    patch.setattr(Cors, "allows", lax)


def _the_key_opens_the_monitor(patch: Patch) -> None:
    check = Monitor.check

    def lax(self: Monitor, request: Request) -> None:
        if b"lodge-key" not in (request.headers.get(b"authorization") or b""):
            check(self, request)

    patch.setattr(Monitor, "check", lax)


def _the_right_key_forgives_nothing(patch: Patch) -> None:
    patch.setattr(KeyGuesses, "right", lambda self, request, now: None)


def _who_is_blocked_may_not_show_the_right_key(patch: Patch) -> None:
    authorize = Api.authorize

    def strict(self: Api, policy: Any, request: Request) -> Any:
        now: Moment = self.engine.now
        if policy is access.Access.KEY and request.headers.get(b"authorization"):
            refused = self._guesses.limiter.refusal(request.peer.host, now, "rate_limit_exceeded", "later")
            if refused is not None:
                raise refused
        return authorize(self, policy, request)

    patch.setattr(Api, "authorize", strict)


def _progress_is_told_in_one_spelling(patch: Patch) -> None:
    init = CompletionProjection.__init__

    def always(self: CompletionProjection, **more: Any) -> None:
        init(self, **{**more, "brand": BRANDS["svc"]})

    patch.setattr(CompletionProjection, "__init__", always)


def _the_built_in_agent_counts_only_what_it_was_asked(patch: Patch) -> None:
    answer = BuiltinAgent.run
    patch.setattr(BuiltinAgent, "run", lambda self, turn, host: answer(self, evolve(turn, history=()), host))


def _sources_are_all_in_small_letters(patch: Patch) -> None:
    def named(**more: Any) -> Any:
        source = more.get("source")
        return ListChats(**{**more, "source": source.lower() if source else source})

    patch.setattr(sessions, "ListChats", named)


def _a_page_counts_what_it_shows(patch: Patch) -> None:
    query = Api.query

    def count(self: Api, request: Any) -> Any:
        answer = yield from query(self, request)
        if isinstance(request, ListChats) and request.source:
            return evolve(answer, total=len(answer.sessions))
        return answer

    patch.setattr(Api, "query", count)


def _copies_go_with_their_source(patch: Patch) -> None:
    query = Api.query

    def also(self: Api, request: Any) -> Any:
        if isinstance(request, DeleteChat):
            page = yield from query(self, ListChats(limit=1_000, include_archived=True))
            for chat in page.sessions:
                if chat.parent_id == request.id:
                    yield from query(self, DeleteChat(id=chat.id))
        return (yield from query(self, request))

    patch.setattr(Api, "query", also)


def _an_answer_that_is_not_stored_is_whole(patch: Patch) -> None:
    store = turn._store

    def lax(api: Api, *rows: Any) -> Any:
        try:
            yield from store(api, *rows)
        except Refused:
            return

    patch.setattr(turn, "_store", lax)


def _rows_that_were_not_taken_are_forgotten(patch: Patch) -> None:
    keep = Run._keep

    def forget(self: Run, row: Any) -> Any:
        self._unkept.clear()
        return keep(self, row)

    patch.setattr(Run, "_keep", forget)


def _a_model_is_asked_before_the_question_is_stored(patch: Patch) -> None:
    opened = turn._open

    def lax(api: Api, order: Any, rows: Any) -> Any:
        try:
            return (yield from opened(api, order, rows))
        except Refused:
            return ()

    patch.setattr(turn, "_open", lax)


TOLD = (Invariant.AS_TOLD,)
MANNERS = (
    Plant(_a_scope_needs_no_key, 18, TOLD),
    Plant(_any_name_will_do, 18, TOLD),
    Plant(_a_page_is_told_of_another, 22, TOLD),
    Plant(_a_page_of_the_same_host_may_call, 22, TOLD),
    Plant(_the_key_opens_the_monitor, 1, TOLD),
    Plant(_the_right_key_forgives_nothing, 34, TOLD),
    Plant(_who_is_blocked_may_not_show_the_right_key, 60, TOLD),
    Plant(_progress_is_told_in_one_spelling, 50, TOLD),
    Plant(_the_built_in_agent_counts_only_what_it_was_asked, 1, TOLD),
    Plant(_sources_are_all_in_small_letters, 4, TOLD),
    Plant(_a_page_counts_what_it_shows, 4, TOLD),
    Plant(_copies_go_with_their_source, 61, TOLD),
    Plant(_an_answer_that_is_not_stored_is_whole, 12, TOLD),
    Plant(_rows_that_were_not_taken_are_forgotten, 2, TOLD),
    Plant(_a_model_is_asked_before_the_question_is_stored, 2, TOLD),
)
