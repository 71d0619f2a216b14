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
from tests.fuzz.plant import Patch, Plant

__all__ = ["TURNS"]


def _a_copy_of_a_copy_looks_for_its_own_copies(patch: Patch) -> None:
    def title(self: Any, title: str) -> Flow[str]:
        return title_of_copy(title, (yield from self._api.query(ListTitles(base=title))))

    patch.setattr(sessions._Sessions, "_title_of_copy", title)


def _copies_are_counted(patch: Patch) -> None:
    def count(title: str, taken: Iterable[str]) -> str:
        return f"{stem_of(title)} #{sum(stem_of(other) == stem_of(title) for other in taken) + 1}"[:100]

    patch.setattr(sessions, "title_of_copy", count)


def _a_long_title_is_cut_and_no_more_asked_about(patch: Patch) -> None:
    def title(self: Any, title: str) -> Flow[str]:
        return title_of_copy(title, (yield from self._api.query(ListTitles(base=stem_of(title)))))

    patch.setattr(sessions._Sessions, "_title_of_copy", title)


def _nothing_is_kept_of_a_turn_that_is_cut_behind_tools(patch: Patch) -> None:
    last_rows = Run.last_rows

    def less(self: Run, *, finish: str) -> tuple[Any, ...]:
        return () if finish == "interrupted" and self._calls > 1 else last_rows(self, finish=finish)

    patch.setattr(Run, "last_rows", less)


def _a_turn_that_is_cut_has_used_no_tokens(patch: Patch) -> None:
    ending = Run.ending

    def free(self: Run, *, finish: str, **more: Any) -> Any:
        ended = ending(self, finish=finish, **more)
        return evolve(ended, usage=Usage()) if finish == "interrupted" else ended

    patch.setattr(Run, "ending", free)


def _a_call_without_a_result_is_left_out(patch: Patch) -> None:
    def answers(results: Mapping[str, str] | None) -> Iterable[Any]:
        rows = [(call_id, content) for call_id, content in (results or {}).items() if content != history.INTERRUPTED]
        return [{"role": "tool", "tool_call_id": call_id, "content": content} for call_id, content in rows]

    patch.setattr(history, "_answers", answers)


def _a_question_survives_its_run(patch: Patch) -> None:
    patch.setattr(
        Run, "questions", property(lambda self: [asked for asked, _ in self._asked.values()] or self.asked_once)
    )
    approve = Run.approve

    def keep(self: Any, asked: Any) -> Any:
        self.asked_once = [asked]
        return approve(self, asked)

    patch.setattr(Run, "asked_once", [], raising=False)
    patch.setattr(Run, "approve", keep)


def _a_turn_that_waits_is_running(patch: Patch) -> None:
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


def _one_more_may_wait(patch: Patch) -> None:
    init = ChatRuns.__init__

    def more(self: ChatRuns, cap: int, *, max_queued: int = 1_000, max_ended: int = 1_000) -> None:
        init(self, cap, max_queued=max_queued + 1, max_ended=max_ended)

    patch.setattr(ChatRuns, "__init__", more)


def _the_newest_makes_room(patch: Patch) -> None:
    put = ExpiringMap.put

    def newest(self: Any, key: Any, value: Any, expires_at: float | None) -> Any:
        if key in self or len(self) < self._cap:
            return put(self, key, value, expires_at)
        last = [*self._entries][-1]
        dropped = last, self._entries.pop(last).value
        put(self, key, value, expires_at)
        return dropped

    patch.setattr(ExpiringMap, "put", newest)


def _a_failure_answers_for_its_key(patch: Patch) -> None:
    find = Keyed.find

    def lax(self: Keyed) -> Run | None:
        entry = self._entries.get(self.name, self._engine.now.mono) if self.name else None
        return entry.run if entry is not None and entry.fingerprint == self._mark else find(self)

    patch.setattr(Keyed, "find", lax)


def _half_a_turn_is_given_to_a_model(patch: Patch) -> None:
    def newest(messages: list[Any]) -> tuple[Any, ...]:
        kept: list[Any] = []
        size = 0
        for message in reversed(messages):
            size += len(str(message["content"]))
            if size > history.MAX_TEXT:
                break
            kept.append(message)
        return tuple(reversed(kept))

    patch.setattr(history, "_newest", newest)


def _a_long_result_is_cut_without_a_word(patch: Patch) -> None:
    patch.setattr(toolbox, "CUT", "")


def _the_newest_session_of_mcp_makes_room(patch: Patch) -> None:
    def make_room(self: HttpSessions, among: list[HttpSession], refused: Any) -> None:
        self.end(among[-1])

    patch.setattr(HttpSessions, "_make_room", make_room)


def _a_conflict_is_final(patch: Patch) -> None:
    patch.setattr(upstream, "RETRIED", (408, 425, 429))


def _when_to_come_again_is_not_heard(patch: Patch) -> None:
    patch.setattr(upstream, "_retry_after", lambda answer: None)


def _what_a_server_does_not_take_is_sent_again(patch: Patch) -> None:
    retold = upstream._retold

    def only_once(asked: Mapping[str, object], unwanted: str) -> dict[str, object]:
        return {**retold(asked, unwanted), **({"tools": asked["tools"]} if unwanted == "tools" else {})}

    patch.setattr(upstream, "_retold", only_once)


def _pauses_are_all_of_one_length(patch: Patch) -> None:
    asked = upstream.ask_model

    def steady(engine: Any, route: Any, request: Any, host: Any, limits: Any, **more: Any) -> Any:
        return asked(engine, route, request, host, evolve(limits, first_pause=4.0), **more)

    patch.setattr(loop, "ask_model", steady)


def _a_server_that_broke_off_is_asked_anew(patch: Patch) -> None:
    attempt = upstream._attempt

    def anew(*args: Any) -> Any:
        answer = yield from attempt(*args)
        return evolve(answer, again=True) if isinstance(answer, upstream.AnswerProblem) else answer

    patch.setattr(upstream, "_attempt", anew)


TOLD = (Invariant.AS_TOLD,)
TURNS = (
    Plant(_a_copy_of_a_copy_looks_for_its_own_copies, 1, TOLD),
    Plant(_copies_are_counted, 1, TOLD),
    Plant(_a_long_title_is_cut_and_no_more_asked_about, 60, TOLD),
    Plant(_nothing_is_kept_of_a_turn_that_is_cut_behind_tools, 1, (*TOLD, Invariant.STORED)),
    Plant(_a_turn_that_is_cut_has_used_no_tokens, 1, TOLD),
    Plant(_a_call_without_a_result_is_left_out, 1, (*TOLD, Invariant.HISTORY)),
    Plant(_a_question_survives_its_run, 20, TOLD),
    Plant(_a_turn_that_waits_is_running, 1, TOLD),
    Plant(_one_more_may_wait, 2, TOLD),
    Plant(_the_newest_makes_room, 2, (*TOLD, Invariant.MEDIA_LIFE)),
    Plant(_a_failure_answers_for_its_key, 41, TOLD),
    Plant(_half_a_turn_is_given_to_a_model, 21, TOLD),
    Plant(_a_long_result_is_cut_without_a_word, 2, TOLD),
    Plant(_the_newest_session_of_mcp_makes_room, 9, TOLD),
    Plant(_a_conflict_is_final, 8, TOLD),
    Plant(_when_to_come_again_is_not_heard, 8, TOLD),
    Plant(_what_a_server_does_not_take_is_sent_again, 8, TOLD),
    Plant(_pauses_are_all_of_one_length, 8, TOLD),
    Plant(_a_server_that_broke_off_is_asked_anew, 8, TOLD),
)
