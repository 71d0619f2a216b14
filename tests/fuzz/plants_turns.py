"""Bugs to plant in what is kept of turns that are cut, in copies, in what is full, and where a model's server fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.agent import loop, toolbox, upstream
from svc_proto.api import history
from svc_proto.api.idempotency import Keyed
from svc_proto.api.routes import sessions
from svc_proto.api.rows import Usage
from svc_proto.api.run import Run
from svc_proto.api.store import ListTitles
from svc_proto.api.titles import stem_of, title_of_copy
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.engine.flow import Flow
from svc_proto.machines.chatrun import ChatRun, ChatRuns, RunState, RunTrigger
from svc_proto.mcp.http_sessions import HttpSession, HttpSessions
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["TURNS"]

TURNS = Bed(Invariant.AS_TOLD)


@TURNS.instead(1, sessions._Sessions, "_title_of_copy")
def a_copy_of_a_copy_looks_for_its_own_copies(self: Any, title: str) -> Flow[str]:
    return title_of_copy(title, (yield from self._api.query(ListTitles(base=title))))


@TURNS.instead(1, sessions, "title_of_copy")
def copies_are_counted(title: str, taken: Iterable[str]) -> str:
    return f"{stem_of(title)} #{sum(stem_of(other) == stem_of(title) for other in taken) + 1}"[:100]


@TURNS.instead(60, sessions._Sessions, "_title_of_copy")
def a_long_title_is_cut_and_no_more_asked_about(self: Any, title: str) -> Flow[str]:
    return title_of_copy(title, (yield from self._api.query(ListTitles(base=stem_of(title)))))


@TURNS.around(1, Run, "last_rows", Invariant.AS_TOLD, Invariant.STORED)
def nothing_is_kept_of_a_turn_that_is_cut_behind_tools(
    last_rows: Real[tuple[Any, ...]], self: Run, *, finish: str
) -> tuple[Any, ...]:
    return () if finish == "interrupted" and self._calls > 1 else last_rows(self, finish=finish)


@TURNS.around(1, Run, "ending")
def a_turn_that_is_cut_has_used_no_tokens(ending: Real[Any], self: Run, *, finish: str, **more: Any) -> Any:
    ended = ending(self, finish=finish, **more)
    return evolve(ended, usage=Usage()) if finish == "interrupted" else ended


@TURNS.instead(1, history, "_answers", Invariant.AS_TOLD, Invariant.HISTORY)
def a_call_without_a_result_is_left_out(results: Mapping[str, str] | None) -> Iterable[Any]:
    rows = [(call_id, content) for call_id, content in (results or {}).items() if content != history.INTERRUPTED]
    return [{"role": "tool", "tool_call_id": call_id, "content": content} for call_id, content in rows]


@TURNS.plant(20)
def a_question_survives_its_run(patch: Patch) -> None:
    patch.setattr(
        Run, "questions", property(lambda self: [asked for asked, _ in self._asked.values()] or self.asked_once)
    )
    approve = Run.approve

    def keep(self: Any, asked: Any) -> Any:
        self.asked_once = [asked]
        return approve(self, asked)

    patch.setattr(Run, "asked_once", [], raising=False)
    patch.setattr(Run, "approve", keep)


@TURNS.plant(1)
def a_turn_that_waits_is_running(patch: Patch) -> None:
    enter = ChatRuns.enter

    def early(self: ChatRuns, *args: Any, **more: Any) -> ChatRun:
        made = enter(self, *args, **more)
        made.state = RunState.RUNNING
        return made

    def start(self: ChatRun, trigger: RunTrigger, now: Any) -> None:
        if trigger is not RunTrigger.START:
            step(self, trigger, now)

    step = ChatRun.step
    patch.setattr(ChatRun, "step", start)
    patch.setattr(ChatRuns, "enter", early)
    patch.setattr(Run, "placed", _placed)


def _placed(self: Run) -> Flow[bool]:
    while self.record.id in self._api.runs.registry._waiting:
        yield from self._wait(self._turn)
    return not self.stopping


@TURNS.around(2, ChatRuns, "__init__")
def one_more_may_wait(
    init: Real[None], self: ChatRuns, cap: int, *, max_queued: int = 1_000, max_ended: int = 1_000
) -> None:
    init(self, cap, max_queued=max_queued + 1, max_ended=max_ended)


@TURNS.around(2, ExpiringMap, "put", Invariant.AS_TOLD, Invariant.MEDIA_LIFE)
def the_newest_makes_room(put: Real[Any], self: Any, key: Any, value: Any, expires_at: float | None) -> Any:
    if key in self or len(self) < self._cap:
        return put(self, key, value, expires_at)
    last = [*self._entries][-1]
    dropped = last, self._entries.pop(last).value
    put(self, key, value, expires_at)
    return dropped


@TURNS.around(41, Keyed, "find")
def a_failure_answers_for_its_key(find: Real[Run | None], self: Keyed) -> Run | None:
    entry = self._entries.get(self.name, self._engine.now.mono) if self.name else None
    return entry.run if entry is not None and entry.fingerprint == self._mark else find(self)


@TURNS.instead(21, history, "_newest")
def half_a_turn_is_given_to_a_model(messages: list[Any]) -> tuple[Any, ...]:
    kept: list[Any] = []
    size = 0
    for message in reversed(messages):
        size += len(str(message["content"]))
        if size > history.MAX_TEXT:
            break
        kept.append(message)
    return tuple(reversed(kept))


@TURNS.instead(9, HttpSessions, "_make_room")
def the_newest_session_of_mcp_makes_room(self: HttpSessions, among: list[HttpSession], refused: Any) -> None:
    self.end(among[-1])


@TURNS.around(8, upstream, "_retold")
def what_a_server_does_not_take_is_sent_again(
    retold: Real[dict[str, object]], asked: Mapping[str, object], unwanted: str
) -> dict[str, object]:
    return {**retold(asked, unwanted), **({"tools": asked["tools"]} if unwanted == "tools" else {})}


@TURNS.around(8, loop, "ask_model")
def pauses_are_all_of_one_length(
    ask: Real[Any], engine: Any, route: Any, request: Any, host: Any, limits: Any, **more: Any
) -> Any:
    return ask(engine, route, request, host, evolve(limits, first_pause=4.0), **more)


@TURNS.around(8, upstream, "_attempt")
def a_server_that_broke_off_is_asked_anew(attempt: Real[Any], *args: Any) -> Any:
    answer = yield from attempt(*args)
    return evolve(answer, again=True) if isinstance(answer, upstream.AnswerProblem) else answer


TURNS.put(2, "a_long_result_is_cut_without_a_word", toolbox, "CUT", "")
TURNS.put(8, "a_conflict_is_final", upstream, "RETRIED", (408, 425, 429))
TURNS.put(8, "when_to_come_again_is_not_heard", upstream, "_retry_after", lambda answer: None)
