"""Bugs to plant in what the API answers, tells, keeps and asks, and in how agents use the phone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from fuzz.invariants import Invariant
from svc_proto.agent import skills
from svc_proto.agent.approvals import ApprovalMemory
from svc_proto.agent.contract import ModelAnswered, TurnEvent
from svc_proto.agent.loop import ModelAgent
from svc_proto.agent.tools import phone, phone_answer
from svc_proto.api import content, settings, subscriber
from svc_proto.api.access import MAIN
from svc_proto.api.model_options import LIMITS, ModelOptions, read_model_options
from svc_proto.api.projections import completions as chunks
from svc_proto.api.projections import runs as run_events
from svc_proto.api.projections.story import TurnEnded
from svc_proto.api.responses import Responses
from svc_proto.api.routes import completions, responses
from svc_proto.api.rows import Usage
from svc_proto.api.run import Run
from svc_proto.api.runs import Runs
from svc_proto.api.service import Api
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.machines.approvals import Answer, Approval, Approvals
from svc_proto.mcp.http_sessions import HttpSession, HttpSessions
from svc_proto.schema.members import Members
from tests.fuzz.plant import Patch, Plant

__all__ = ["ANSWERS"]


def _silence_is_told_after_three_quarters_of_a_minute(patch: Patch) -> None:
    patch.setattr(subscriber, "KEEPALIVE_EVERY", 45.0)


def _a_turn_counts_the_tokens_of_its_last_round(patch: Patch) -> None:
    tell = Run.tell

    def forget(self: Run, event: TurnEvent) -> None:
        if isinstance(event, ModelAnswered):
            self._usage = Usage()
        tell(self, event)

    patch.setattr(Run, "tell", forget)


def _an_answer_that_is_too_long_has_ended_well(patch: Patch) -> None:
    reason = chunks.finish_reason

    def ended_well(ended: TurnEnded) -> str:
        told = reason(ended)
        return "stop" if told == "length" else told

    patch.setattr(chunks, "finish_reason", ended_well)
    patch.setattr(completions, "finish_reason", ended_well)


def _a_failed_tool_of_a_run_has_done_well(patch: Patch) -> None:
    finished = run_events.RunProjection._finished

    def well(self: Any, event: Any, ts: str) -> str:
        return finished(self, event, ts).replace('"error":true', '"error":false')

    patch.setattr(run_events.RunProjection, "_finished", well)


def _a_no_is_for_the_newest_question(patch: Patch) -> None:
    meant = Approvals._meant

    def newest(self: Approvals, answer: Answer, now: float) -> list[Approval]:
        found = meant(self, answer, now)
        return found if answer.call_id is not None or answer.everything else self._pending[-1:]

    patch.setattr(Approvals, "_meant", newest)


def _always_is_until_the_next_start(patch: Patch) -> None:
    def forget(self: ApprovalMemory, pattern: str) -> Flow[None]:
        yield from ()

    patch.setattr(ApprovalMemory, "_write", forget)


def _what_is_allowed_in_one_chat_is_allowed_in_all(patch: Patch) -> None:
    remember = ApprovalMemory._remember
    patch.setattr(ApprovalMemory, "_remember", lambda self, session_id, pattern: remember(self, "", pattern))
    remembers = ApprovalMemory.remembers
    patch.setattr(ApprovalMemory, "remembers", lambda self, session_id, pattern: remembers(self, "", pattern))


def _any_caller_goes_on_in_a_session_of_mcp(patch: Patch) -> None:
    def find(self: HttpSessions, caller: str, identity: bytes | None) -> HttpSession:
        session = None if identity is None else self._sessions.peek(identity.decode("latin-1"))
        if session is None:
            raise Refused(400 if identity is None else 404, "session_not_found", "there is no such session")
        self._use(session)
        return session

    patch.setattr(HttpSessions, "find", find)


def _a_session_of_mcp_that_is_used_grows_old(patch: Patch) -> None:
    use = HttpSessions._use

    def once(self: HttpSessions, session: HttpSession) -> None:
        if session.identity not in self._sessions:
            use(self, session)

    patch.setattr(HttpSessions, "_use", once)


def _a_key_that_was_replaced_keeps_its_sessions_of_mcp(patch: Patch) -> None:
    end = Api._end_holder

    def keep(self: Api, holder: str, why: str) -> None:
        mcp, self._mcp = self._mcp, None if holder == MAIN else self._mcp
        end(self, holder, why)
        self._mcp = mcp

    patch.setattr(Api, "_end_holder", keep)


def _a_run_is_nobodys(patch: Patch) -> None:
    begin = Runs.begin
    patch.setattr(Runs, "begin", lambda self, *args, **more: begin(self, *args, **{**more, "holder": ""}))


def _a_screen_comes_with_its_bounds(patch: Patch) -> None:
    patch.setattr(phone_answer, "_lean", lambda screen, bounds: screen)


def _a_short_swipe_is_a_long_one(patch: Patch) -> None:
    patch.setitem(phone.SWIPE_PART, "short", phone.SWIPE_PART["long"])


def _what_a_phone_says_is_final_is_not(patch: Patch) -> None:
    failure = phone_answer._failure

    def lax(answer: Any) -> str:
        body = {name: value for name, value in Members.of(answer.body).items() if name not in ("final", "instruction")}
        return failure(evolve(answer, body=Members(body)))

    patch.setattr(phone_answer, "_failure", lax)


def _a_response_that_is_deleted_can_be_continued(patch: Patch) -> None:
    drop = Responses.drop

    def keep(self: Responses, response_id: str) -> Flow[bool]:
        session = self._sessions.get(response_id)
        dropped = yield from drop(self, response_id)
        if session is not None:
            self._sessions[response_id] = session
        return dropped

    patch.setattr(Responses, "drop", keep)


def _the_model_is_asked_three_times(patch: Patch) -> None:
    init: Callable[..., None] = ModelAgent.__init__

    def less(self: ModelAgent, *args: Any) -> None:
        *others, limits = args
        init(self, *others, evolve(limits, attempts=3))

    patch.setattr(ModelAgent, "__init__", less)


def _one_row_too_many_is_kept(patch: Patch) -> None:
    patch.setattr(responses, "TRUNCATED", responses.TRUNCATED + 1)


def _a_picture_is_shown_in_any_detail(patch: Patch) -> None:
    part = content._image_part

    def plain(value: object, place: str) -> Mapping[str, object]:
        shown = part(value, place)
        image = shown["image_url"]
        assert isinstance(image, dict)
        return {**shown, "image_url": {"url": image["url"]}}

    patch.setattr(content, "_image_part", plain)


def _the_larger_limit_counts(patch: Patch) -> None:
    def larger(body: Mapping[str, object]) -> ModelOptions:
        given = [value for name in LIMITS if isinstance(value := body.get(name), int)]
        return evolve(read_model_options(body), max_tokens=max(given, default=None))

    patch.setattr(completions, "read_model_options", larger)


def _a_file_of_a_skill_may_have_a_byte_less(patch: Patch) -> None:
    patch.setattr(skills, "MAX_FILE", skills.MAX_FILE - 1)


def _a_key_goes_to_every_host(patch: Patch) -> None:
    patch.setattr(settings, "origin_of", lambda url: ("", ""))


def _a_conversation_is_known_by_its_first_words(patch: Patch) -> None:
    derived = completions._derived
    patch.setattr(completions, "_derived", lambda talk: derived(evolve(talk, system="")))


def _who_is_unknown_has_no_personality(patch: Patch) -> None:
    prompt = settings.AgentSettings.prompt_for

    def none(self: settings.AgentSettings, personality: object) -> str:
        named = isinstance(personality, str) and personality not in ("", "default", "none")
        return "" if named and personality not in self.personalities else prompt(self, personality)

    patch.setattr(settings.AgentSettings, "prompt_for", none)


def _a_turn_that_was_cut_off_is_complete(patch: Patch) -> None:
    def completed(self: TurnEnded) -> bool:
        return self.finish in ("stop", "tool_calls", "interrupted") and self.error is None

    patch.setattr(TurnEnded, "completed", property(completed))


ANSWERS = (
    Plant(_silence_is_told_after_three_quarters_of_a_minute, 13, (Invariant.ONE_END, Invariant.STREAM)),
    Plant(_a_turn_counts_the_tokens_of_its_last_round, 3, (Invariant.AS_TOLD,)),
    Plant(_an_answer_that_is_too_long_has_ended_well, 3, (Invariant.AS_TOLD,)),
    Plant(_a_failed_tool_of_a_run_has_done_well, 13, (Invariant.AS_TOLD,)),
    Plant(_a_no_is_for_the_newest_question, 8, (Invariant.AS_TOLD,)),
    Plant(_always_is_until_the_next_start, 10, (Invariant.AS_TOLD,)),
    Plant(_what_is_allowed_in_one_chat_is_allowed_in_all, 16, (Invariant.AS_TOLD,)),
    Plant(_any_caller_goes_on_in_a_session_of_mcp, 5, (Invariant.AS_TOLD, Invariant.OWN_ANSWER)),
    Plant(_a_session_of_mcp_that_is_used_grows_old, 5, (Invariant.AS_TOLD, Invariant.RECOVERY)),
    Plant(_a_key_that_was_replaced_keeps_its_sessions_of_mcp, 2, (Invariant.AS_TOLD,)),
    Plant(_a_run_is_nobodys, 2, (Invariant.AS_TOLD,)),
    Plant(_a_screen_comes_with_its_bounds, 3, (Invariant.AS_TOLD,)),
    Plant(_a_short_swipe_is_a_long_one, 6, (Invariant.AS_TOLD,)),
    Plant(_what_a_phone_says_is_final_is_not, 6, (Invariant.AS_TOLD,)),
    Plant(_a_response_that_is_deleted_can_be_continued, 3, (Invariant.AS_TOLD,)),
    Plant(_the_model_is_asked_three_times, 8, (Invariant.AS_TOLD,)),
    Plant(_one_row_too_many_is_kept, 0, (Invariant.AS_TOLD,)),
    Plant(_a_picture_is_shown_in_any_detail, 23, (Invariant.AS_TOLD,)),
    Plant(_the_larger_limit_counts, 58, (Invariant.AS_TOLD,)),
    Plant(_a_file_of_a_skill_may_have_a_byte_less, 34, (Invariant.AS_TOLD,)),
    Plant(_a_key_goes_to_every_host, 5, (Invariant.AS_TOLD,)),
    Plant(_a_conversation_is_known_by_its_first_words, 13, (Invariant.AS_TOLD,)),
    Plant(_who_is_unknown_has_no_personality, 52, (Invariant.AS_TOLD,)),
    Plant(_a_turn_that_was_cut_off_is_complete, 1, (Invariant.AS_TOLD, Invariant.STREAM)),
)
