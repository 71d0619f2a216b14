"""Bugs to plant in what the API answers, tells, keeps and asks, and in how agents use the phone."""

from __future__ import annotations

from collections.abc import Mapping
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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["ANSWERS"]

ANSWERS = Bed(Invariant.AS_TOLD)


@ANSWERS.plant(13, Invariant.ONE_END, Invariant.STREAM)
def silence_is_told_after_three_quarters_of_a_minute(patch: Patch) -> None:
    patch.setattr(subscriber, "KEEPALIVE_EVERY", 45.0)


@ANSWERS.around(3, Run, "tell")
def a_turn_counts_the_tokens_of_its_last_round(tell: Real[None], self: Run, event: TurnEvent) -> None:
    if isinstance(event, ModelAnswered):
        self._usage = Usage()
    tell(self, event)


@ANSWERS.plant(3)
def an_answer_that_is_too_long_has_ended_well(patch: Patch) -> None:
    reason = chunks.finish_reason

    def ended_well(ended: TurnEnded) -> str:
        told = reason(ended)
        return "stop" if told == "length" else told

    patch.setattr(chunks, "finish_reason", ended_well)
    patch.setattr(completions, "finish_reason", ended_well)


@ANSWERS.around(13, run_events.RunProjection, "_finished")
def a_failed_tool_of_a_run_has_done_well(finished: Real[str], self: Any, event: Any, ts: str) -> str:
    return finished(self, event, ts).replace('"error":true', '"error":false')


@ANSWERS.around(8, Approvals, "_meant")
def a_no_is_for_the_newest_question(
    meant: Real[list[Approval]], self: Approvals, answer: Answer, now: float
) -> list[Approval]:
    found = meant(self, answer, now)
    return found if answer.call_id is not None or answer.everything else self._pending[-1:]


@ANSWERS.instead(10, ApprovalMemory, "_write")
def always_is_until_the_next_start(self: ApprovalMemory, pattern: str) -> Flow[None]:
    yield from ()


@ANSWERS.plant(16)
def what_is_allowed_in_one_chat_is_allowed_in_all(patch: Patch) -> None:
    remember = ApprovalMemory._remember
    patch.setattr(ApprovalMemory, "_remember", lambda self, session_id, pattern: remember(self, "", pattern))
    remembers = ApprovalMemory.remembers
    patch.setattr(ApprovalMemory, "remembers", lambda self, session_id, pattern: remembers(self, "", pattern))


@ANSWERS.instead(5, HttpSessions, "find", Invariant.AS_TOLD, Invariant.OWN_ANSWER)
def any_caller_goes_on_in_a_session_of_mcp(self: HttpSessions, caller: str, identity: bytes | None) -> HttpSession:
    session = None if identity is None else self._sessions.peek(identity.decode("latin-1"))
    if session is None:
        raise Refused(400 if identity is None else 404, "session_not_found", "there is no such session")
    self._use(session)
    return session


@ANSWERS.around(5, HttpSessions, "_use", Invariant.AS_TOLD, Invariant.RECOVERY)
def a_session_of_mcp_that_is_used_grows_old(use: Real[None], self: HttpSessions, session: HttpSession) -> None:
    if session.identity not in self._sessions:
        use(self, session)


@ANSWERS.around(2, Api, "_end_holder")
def a_key_that_was_replaced_keeps_its_sessions_of_mcp(end: Real[None], self: Api, holder: str, why: str) -> None:
    mcp, self._mcp = self._mcp, None if holder == MAIN else self._mcp
    end(self, holder, why)
    self._mcp = mcp


@ANSWERS.around(2, Runs, "begin")
def a_run_is_nobodys(begin: Real[Run], self: Runs, *args: Any, **more: Any) -> Run:
    return begin(self, *args, **{**more, "holder": ""})


@ANSWERS.plant(6)
def a_short_swipe_is_a_long_one(patch: Patch) -> None:
    patch.setitem(phone.SWIPE_PART, "short", phone.SWIPE_PART["long"])


@ANSWERS.around(6, phone_answer, "_failure")
def what_a_phone_says_is_final_is_not(failure: Real[str], answer: Any) -> str:
    body = {name: value for name, value in Members.of(answer.body).items() if name not in ("final", "instruction")}
    return failure(evolve(answer, body=Members(body)))


@ANSWERS.around(3, Responses, "drop")
def a_response_that_is_deleted_can_be_continued(
    drop: Real[Flow[bool]], self: Responses, response_id: str
) -> Flow[bool]:
    session = self._sessions.get(response_id)
    dropped = yield from drop(self, response_id)
    if session is not None:
        self._sessions[response_id] = session
    return dropped


@ANSWERS.around(8, ModelAgent, "__init__")
def the_model_is_asked_three_times(init: Real[None], self: ModelAgent, *args: Any) -> None:
    *others, limits = args
    init(self, *others, evolve(limits, attempts=3))


@ANSWERS.around(23, content, "_image_part")
def a_picture_is_shown_in_any_detail(
    part: Real[Mapping[str, object]], value: object, place: str
) -> Mapping[str, object]:
    shown = part(value, place)
    image = shown["image_url"]
    assert isinstance(image, dict)
    return {**shown, "image_url": {"url": image["url"]}}


@ANSWERS.instead(58, completions, "read_model_options")
def the_larger_limit_counts(body: Mapping[str, object]) -> ModelOptions:
    given = [value for name in LIMITS if isinstance(value := body.get(name), int)]
    return evolve(read_model_options(body), max_tokens=max(given, default=None))


@ANSWERS.around(13, completions, "_derived")
def a_conversation_is_known_by_its_first_words(derived: Real[str], talk: Any) -> str:
    return derived(evolve(talk, system=""))


@ANSWERS.around(52, settings.AgentSettings, "prompt_for")
def who_is_unknown_has_no_personality(prompt: Real[str], self: settings.AgentSettings, personality: object) -> str:
    named = isinstance(personality, str) and personality not in ("", "default", "none")
    return "" if named and personality not in self.personalities else prompt(self, personality)


@ANSWERS.plant(1, Invariant.AS_TOLD, Invariant.STREAM)
def a_turn_that_was_cut_off_is_complete(patch: Patch) -> None:
    def completed(self: TurnEnded) -> bool:
        return self.finish in ("stop", "tool_calls", "interrupted") and self.error is None

    patch.setattr(TurnEnded, "completed", property(completed))


ANSWERS.put(3, "a_screen_comes_with_its_bounds", phone_answer, "_lean", lambda screen, bounds: screen)
ANSWERS.put(0, "one_row_too_many_is_kept", responses, "TRUNCATED", responses.TRUNCATED + 1)
ANSWERS.put(34, "a_file_of_a_skill_may_have_a_byte_less", skills, "MAX_FILE", skills.MAX_FILE - 1)
ANSWERS.put(5, "a_key_goes_to_every_host", settings, "origin_of", lambda url: ("", ""))
