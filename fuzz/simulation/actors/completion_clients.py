"""Programs that request completions: single requests, or two with one idempotency key; some do not wait."""

import json
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler, Told, no_further_checks
from fuzz.simulation.actors.chat_clients import BEHAVIORS, ChatClients
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import RepeatCompletion, RequestCompletion, Step
from svc_proto.wire.sse import EventStreamDecoder
from tests.support.sim_http import RequestClient

GIVEN_UP = 20.0  # s from the last disconnect to the end of the model call
REPEATED = ("plain", "refuse")
BROKEN = ("refuse", "break", "lose", "nonsense", "hang")  # faults of the model that a question's first word selects


@define(eq=False)
class _CompletionQuestion:
    """Question of a completion, and all its callers."""

    text: str
    sent: float
    key: str = ""
    callers: list[RequestClient] = field(factory=list)
    left: list[RequestClient] = field(factory=list)  # callers that did not wait
    answers: dict[str, str] = field(factory=dict)  # by id
    kept: bool = False  # whether it was answered well, so that its key returns that answer (wire api 2.3)
    again: float = 0.0  # s after the answer at which the request is repeated

    @property
    def is_plain(self) -> bool:
        return not self.text.startswith(BROKEN)


class CompletionClients:
    """Handler of the steps in which programs request completions; checks the answers and cancellations."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self.handlers: dict[type[Step], StepHandler] = {
            RequestCompletion: self._complete,
            RepeatCompletion: self._repeat,
        }

    def _complete(self, step: RequestCompletion) -> None:
        manner = BEHAVIORS[step.manner % len(BEHAVIORS)]
        question = _CompletionQuestion(f"{manner}: asked {self.chats.number()}", self.world.sim.now)
        if step.callers % 4 == 3:
            self._send_completion(question, stream=True, leave=step.seconds if step.callers % 8 == 7 else 0.0)
            return
        if step.callers % 4 < 2:
            question.key = f"key {question.text}"
        self._send_completion(question, leave=step.seconds if step.callers % 8 < 5 else 0.0)
        if question.key:
            self.world.sim.after(step.seconds / 4, lambda: self._send_completion(question))

    def _repeat(self, step: RepeatCompletion) -> None:
        """Send a request, and repeat it with its key after the answer.

        The repetition must reach the model if the first request failed, else not; after a fault this is not checked.
        """
        manner = REPEATED[step.manner % len(REPEATED)]
        question = _CompletionQuestion(f"{manner}: asked {self.chats.number()}", self.world.sim.now)
        question.key = f"key {question.text}"
        question.again = 0.1 + step.seconds
        self._send_completion(question)

    def _ask_again(self, question: _CompletionQuestion, outages: int) -> None:
        sent = self.world.sim.now
        failed = not question.kept

        def done(caller: RequestClient) -> None:
            self.world.count("asked again with one key")
            asked = self.world.upstream.newest.get(question.text, sent) >= sent
            known = (
                caller.status in (200, 500, 502)
                and outages == self.world.outages
                and self.world.is_fault_free_since(sent)
            )
            if known and question.text not in self.world.upstream.forsaken and asked is not failed:
                so = "and the model was asked again" if asked else "after it had failed, and the model was not asked"
                violated(Invariant.ONE_ANSWER, f"{question.text!r} was asked again with one key, {so}")

        self._send_completion(question, told=done)

    def _send_completion(
        self, question: _CompletionQuestion, *, stream: bool = False, leave: float = 0.0, told: Told = no_further_checks
    ) -> None:
        def done(caller: RequestClient) -> None:
            if caller.status == 200 and stream:
                self._streamed(question, caller)
            elif caller.status:
                self._answered(question, caller)
                told(caller)
                again, question.again = question.again, 0.0
                if again:
                    outages = self.world.outages
                    self.world.sim.after(again, lambda: self._ask_again(question, outages))

        headers = {"idempotency-key": question.key} if question.key else {}
        body = {"model": "sim", "messages": [{"role": "user", "content": question.text}], "stream": stream}
        caller = self.chats.request("POST", "/v1/chat/completions", body, done, headers=headers)
        question.callers.append(caller)
        self.chats.reading.setdefault(question.text, caller)
        if leave:
            self.world.sim.after(leave, lambda: self._disconnect(question, caller))

    def _disconnect(self, question: _CompletionQuestion, caller: RequestClient) -> None:
        if caller.is_closed:
            return
        question.left.append(caller)
        caller.disconnect(reset=True)
        if all(each.is_closed for each in question.callers):
            since = self.world.sim.now
            self.world.sim.after(GIVEN_UP, lambda: self._check_given_up(question, since))

    def _check_given_up(self, question: _CompletionQuestion, since: float) -> None:
        waits = [caller for caller in question.callers if not caller.is_closed]
        if not waits and self.world.is_fault_free_since(since) and question.text in self.world.upstream.questions:
            violated(Invariant.CANCELLED, f"the model still answers {question.text!r} after its client left")

    def _answered(self, question: _CompletionQuestion, caller: RequestClient) -> None:
        answer = caller.answer.json
        if caller.status == 200:
            self.world.count("completions")
            content, reason = answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"]
            question.kept = question.kept or reason == "stop"
            self._check(question, content, reason)
            if question.answers.setdefault(answer["id"], content) != content:
                violated(Invariant.OWN_BYTES, f"{question.text!r} has two answers: {content!r:.60} and another")
            if len(question.answers) > 1 and question.key and self._is_well(question):
                violated(Invariant.ONE_ANSWER, f"{question.text!r} was asked with one key, and run twice")
        elif caller.status not in (408, 429, 503) and self._is_well(question):
            violated(Invariant.STREAM, f"{question.text!r} got {caller.status} {caller.answer.body!r:.200}")

    def _streamed(self, question: _CompletionQuestion, caller: RequestClient) -> None:
        events = EventStreamDecoder().receive_data(caller.answer.body)
        said: list[dict[str, Any]] = [json.loads(event.data) for event in events if event.data != "[DONE]"]
        choices = [chunk["choices"][0] for chunk in said if chunk.get("choices")]
        reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        if len({chunk["id"] for chunk in said if "id" in chunk}) > 1 or len(reasons) != 1:
            violated(Invariant.STREAM, f"the stream of {question.text!r} ended with {said[-2:]}")
        if not caller.answer.body.endswith(b"data: [DONE]\n\n"):
            violated(Invariant.STREAM, f"the stream of {question.text!r} ended with {caller.answer.body[-80:]!r}")
        self._check(question, "".join(choice["delta"].get("content") or "" for choice in choices), reasons[0])

    def _check(self, question: _CompletionQuestion, content: str, reason: str) -> None:
        whole = content.strip() == f"You said {question.text}"
        if reason == "stop" and question.text.startswith("plain:") and not whole:
            violated(Invariant.OWN_BYTES, f"{question.text!r} was answered {content!r:.100}")
        if reason != "stop" and self._is_well(question):
            violated(Invariant.STREAM, f"{question.text!r} ended with {reason}")

    def _is_well(self, question: _CompletionQuestion) -> bool:
        forsaken = question.text in self.world.upstream.forsaken
        return question.is_plain and not forsaken and self.world.is_fault_free_since(question.sent)
