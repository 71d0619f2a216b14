"""The chat runs of a voice session on the API server, in the turn and in the background.

`AgentMode` owns an `ApiRuns`, which passes the events of runs to the mode's conversation. A requested run that is
stopped before it has an id is read for at most `RUN_ID_TIMEOUT` longer, and stopped if the id arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from attrs import evolve

from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.confirmations import Confirmation
from svc_proto.schema.chat_events import AssistantDelta
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.authority import authority_headers
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.voice.agent.api_run import ApiRun, spoken_error
from svc_proto.voice.principal import Principal
from svc_proto.voice.realtime.actions import AnswerApproval, FetchApproval, LogEvent, StartRun
from svc_proto.voice.realtime.native_conversation import NativeConversation
from svc_proto.voice.realtime.rendered_conversation import RenderedConversation
from svc_proto.voice.realtime.run_events import ChatSessionBound, VoiceRunEvent
from svc_proto.voice.service import VoiceServices
from svc_proto.voice.session import error_message_of

__all__ = ["ApiRuns", "api_target", "may_enter_chats"]

RUN_ID_TIMEOUT = 10.0  # s for a stopped run to get its id


def api_target(voice: VoiceServices, principal: Principal) -> Flow[ApiClient]:
    """Return a client of the API server with the bearer token for this principal, if there is one."""
    bearer = yield from voice.api_credential(principal)
    url, extra = voice.config.webapi_url.rstrip("/"), authority_headers(principal.name, principal.withheld())
    return ApiClient("the API server", url, bearer or "", extra=extra)


def may_enter_chats(principal: Principal) -> bool:
    """Report whether the principal may read and continue chats that it did not begin."""
    return "chat" not in principal.withheld()


class ApiRuns:
    """The chat runs of one voice session, by call id.

    Their events and ends are passed to the conversation `talk`, then `carry_out` is called to perform its actions. It
    is not called for a piece of an answer that `talk.drafts` has accepted.
    """

    def __init__(
        self,
        voice: VoiceServices,
        principal: Principal,
        talk: NativeConversation | RenderedConversation,
        carry_out: Callable[[], None],
    ) -> None:
        self._voice = voice
        self._engine = voice.engine
        self._principal = principal
        self._talk = talk
        self._carry_out = carry_out
        self._word = (principal.brand or voice.config.brand).name
        self._runs: dict[str, ApiRun] = {}  # by call id
        self._begun: dict[str, None] = {}  # chats that this voice session began

    def start(self, order: StartRun, system: str) -> None:
        """Start a run; `system` has notes for the agent.

        If this voice session did not begin the named chat session, and the principal may not enter it, the run gets a
        new one.
        """
        call_id = order.call_id
        if order.session_id not in (None, *self._begun) and not may_enter_chats(self._principal):
            order = evolve(order, session_id=None)
        on_event, drafts = partial(self._on_run_event, call_id), partial(self._talk.drafts, call_id)
        self._runs[call_id] = run = ApiRun(self._engine, order, on_event, word=self._word, system=system, drafts=drafts)
        run.task = self._engine.spawn(
            self._perform(run),
            on_done=lambda _: self._ended(call_id, run),
            on_error=lambda error: self._failed(call_id, run, error),
        )

    def stop(self, call_id: str) -> None:
        """Stop a run on the API server. Of it only the creation of its chat session may still be reported."""
        run = self._runs.pop(call_id, None)
        if run is None:
            return
        if run.stop():
            run.detach()
        else:
            self._engine.spawn(self._give_up(run))

    def detach(self, call_id: str) -> None:
        """Stop reading a run, which continues."""
        run = self._runs.pop(call_id, None)
        if run is not None:
            run.detach()

    def end_all(self, end: Callable[[ApiRuns, str], None]) -> None:
        """Call `end`, which is `ApiRuns.stop` or `ApiRuns.detach`, for each run."""
        for call_id in list(self._runs):
            end(self, call_id)

    def ask_about(self, order: FetchApproval) -> None:
        """Query whether the run waits for an approval; if so, pass a confirmation request to the conversation."""
        self._engine.spawn(self._fetch_approval(order))

    def approve(self, order: AnswerApproval) -> None:
        """Send the user's answer to the API server, and pass the outcome to the conversation."""
        self._engine.spawn(self._approve(order))

    # --- flows ---

    def _on_run_event(self, call_id: str, event: VoiceRunEvent) -> None:
        if isinstance(event, ChatSessionBound):
            self._begun[event.session_id] = None
        if not (isinstance(event, AssistantDelta) and self._talk.drafts(call_id, event.delta)):
            self._talk.run_event(call_id, event)
            self._carry_out()

    def _perform(self, run: ApiRun) -> Flow[None]:
        yield from run.perform((yield from api_target(self._voice, self._principal)))

    def _ended(self, call_id: str, run: ApiRun) -> None:
        if self._forget(call_id, run):
            self._talk.run_ended(call_id)
            self._carry_out()

    def _failed(self, call_id: str, run: ApiRun, error: Exception) -> None:
        code = None
        if isinstance(error, ServiceCallError):
            message = spoken_error(error)
            if error.fault in (ServiceFault.UNAUTHORIZED, ServiceFault.FORBIDDEN):
                code = f"{self._word}_broker_auth_failed"
        else:
            message = error_message_of(self._engine, error)
        if self._forget(call_id, run):
            self._talk.run_failed(call_id, message, error_code=code)
            self._carry_out()

    def _fetch_approval(self, order: FetchApproval) -> Flow[None]:
        """Request the run's status and report a confirmation request if it waits (wire api 6.2); a failure means no."""
        api = yield from api_target(self._voice, self._principal)
        with suppress(ServiceCallError):
            answer = yield from api.success(api.post_run(self._engine, order.run_id))
            if answer.members.get("status") == "waiting_for_approval":
                self._on_run_event(order.call_id, Confirmation(order.tool_call_id, order.message))

    def _approve(self, order: AnswerApproval) -> Flow[None]:
        """Send `POST /v1/runs/{run_id}/approval` and pass the outcome to the conversation.

        404 and 409 mean that the request is no longer open; any other failure is also logged.
        """
        api = yield from api_target(self._voice, self._principal)
        answer, told = {"choice": order.choice, "call_id": order.confirmation_id}, None
        try:
            yield from api.success(api.post_run(self._engine, order.run_id, "approval", answer))
            told = order.answer
        except ServiceCallError as error:
            if error.fault not in (ServiceFault.NOT_FOUND, ServiceFault.CONFLICT):
                self._talk.out.append(
                    LogEvent("voice.realtime_agent.approval_failed", {"message": spoken_error(error)})
                )
        self._talk.approved(order.call_id, order.confirmation_id, told)
        self._carry_out()

    def _give_up(self, run: ApiRun) -> Flow[None]:
        yield from sleep(self._engine, RUN_ID_TIMEOUT)
        run.detach()

    def _forget(self, call_id: str, run: ApiRun) -> bool:
        """Remove a run that is over; return False if it was stopped or detached before."""
        wanted = self._runs.get(call_id) is run
        if wanted:
            del self._runs[call_id]
        return wanted
