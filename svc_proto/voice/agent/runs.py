"""The chat run of a voice session: at most one is listened to; one that is being stopped may linger.

Whoever carries out the broker's orders holds one of these. What it finds out comes back by `RunListener`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.machines.broker_orders import Approve, AskAboutApproval, StartRun
from svc_proto.machines.confirmations import Question
from svc_proto.machines.run_story import ApprovalAsked, RunEvent
from svc_proto.voice.agent.chat_run import (
    ApiTarget,
    ChatRun,
    RunOrder,
    RunTrouble,
    answer_question,
    is_asking,
)

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import Voice

__all__ = ["RunHolder", "RunListener", "api_target"]

NAMED_WITHIN = 10.0  # s for a run that is to be stopped to get its name


class RunListener(Protocol):
    """Who is told. `call_id` is that of the order."""

    def run_event(self, call_id: str, event: RunEvent) -> None:
        """The run tells something."""
        ...

    def run_ended(self, call_id: str) -> None:
        """It has ended well."""
        ...

    def run_failed(self, call_id: str, message: str, error_code: str | None) -> None:
        """It has not."""
        ...

    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """An answer was taken; None: nothing is asked any more."""
        ...

    def approval_failed(self, call_id: str, confirmation_id: str, message: str) -> None:
        """An answer did not get there."""
        ...


def api_target(voice: Voice, principal: Principal) -> Flow[ApiTarget]:
    """The API server as somebody may use it."""
    bearer = yield from voice.api_credential(principal)
    return ApiTarget(voice.config.webapi_url.rstrip("/"), bearer)


class RunHolder:
    """See the module."""

    def __init__(self, voice: Voice, principal: Principal, listener: RunListener) -> None:
        self._voice = voice
        self._engine = voice.engine
        self._principal = principal
        self._listener = listener
        self._word = voice.config.brand.name
        self._run: ChatRun | None = None
        self._task: Task | None = None

    def start(self, order: StartRun, system: str) -> None:
        """Begin a run."""
        listener, call_id = self._listener, order.call_id
        wanted = RunOrder(
            text=order.text, word=self._word, session_id=order.session_id, profile=order.profile, system=system
        )
        self._task = self._engine.spawn(
            self._perform(wanted, call_id),
            name="voice run",
            on_done=lambda _: listener.run_ended(call_id),
            on_error=lambda error: self._failed(call_id, error),
        )

    def stop(self) -> None:
        """Stop it on the API server. Nothing more is told of it."""
        run, task = self._forget()
        if run is None or run.stop():  # None: it was not asked for yet
            _cancel(task)
        else:
            self._engine.spawn(self._give_up(task), name="unnamed run")

    def leave(self) -> None:
        """Listen no more; it goes on."""
        _cancel(self._forget()[1])

    def ask_about(self, order: AskAboutApproval) -> None:
        """Find out whether a tool waits for an approval."""
        self._engine.spawn(self._ask_about(order), name="approval asked")

    def approve(self, order: Approve) -> None:
        """Pass an answer on."""
        self._engine.spawn(self._approve(order), name="approval")

    # --- flows ---

    def _perform(self, order: RunOrder, call_id: str) -> Flow[None]:
        target = yield from api_target(self._voice, self._principal)
        self._run = run = ChatRun(self._engine, target, order, lambda event: self._listener.run_event(call_id, event))
        yield from run.perform()

    def _failed(self, call_id: str, error: Exception) -> None:
        if isinstance(error, RunTrouble):
            code = f"{self._word}_broker_auth_failed" if error.auth else None
            self._listener.run_failed(call_id, str(error), code)
        else:
            reference = self._engine.bug(error)
            self._listener.run_failed(call_id, f"internal error, reference {reference}", None)

    def _ask_about(self, order: AskAboutApproval) -> Flow[None]:
        target = yield from api_target(self._voice, self._principal)
        if (yield from is_asking(self._engine, target, order.run_id)):
            self._listener.run_event(order.call_id, ApprovalAsked(Question(order.tool_call_id, order.message)))

    def _approve(self, order: Approve) -> Flow[None]:
        target = yield from api_target(self._voice, self._principal)
        try:
            taken = yield from answer_question(self._engine, target, order.run_id, order.choice)
        except RunTrouble as trouble:
            self._listener.approval_failed(order.call_id, order.confirmation_id, str(trouble))
        else:
            self._listener.approved(order.call_id, order.confirmation_id, order.answer if taken else None)

    def _give_up(self, task: Task | None) -> Flow[None]:
        yield from sleep(self._engine, NAMED_WITHIN)
        _cancel(task)

    def _forget(self) -> tuple[ChatRun | None, Task | None]:
        run, task = self._run, self._task
        self._run = self._task = None
        return run, task


def _cancel(task: Task | None) -> None:
    if task is not None:
        task.cancel()
