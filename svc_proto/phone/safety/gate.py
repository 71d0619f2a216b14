"""Safety gates of the phone around a phone backend (spec "Bridge safety gates", wire bridge 5.2).

The order of the gates is the spec's, where other phones differ: free routes; store build; master toggle; accessibility;
screen-capture consent; app in front; target app; unknown route; lock screen, which may cover another app. Last, if no
gate refuses, the user confirms a command that needs it. After an Allow all gates are checked again, since the state may
have changed.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TypeAlias

from attrs import evolve

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import (
    CommandRefused,
    CommandReply,
    CommandResponse,
    DelayedReply,
    PhoneCommand,
    UploadReply,
)
from svc_proto.phone.safety import route_rules
from svc_proto.phone.safety.activity_log import ActivityLog
from svc_proto.phone.safety.blocklist import Blocklist
from svc_proto.phone.safety.bounds import DEFAULT_IDLE_MINUTES, DEFAULT_TIMEOUT
from svc_proto.phone.safety.confirmation import (
    AwaitingConfirmation,
    ConfirmationRequest,
    ConfirmationTrigger,
    SafetyConfirmation,
    TrustedActions,
    clamp_timeout,
)
from svc_proto.phone.safety.destructive_verbs import DestructiveVerbs
from svc_proto.phone.safety.gate_interface import GuardedBackend, TargetTextSource
from svc_proto.phone.safety.master_toggle import MasterToggle
from svc_proto.phone.safety.permissions import SystemPermissions
from svc_proto.phone.safety.status_report import with_gate_status
from svc_proto.phone.safety.unattended import UnattendedAccess
from svc_proto.phone.safety.view import ACCESSIBILITY_HINT, NOTIFICATION, ConfirmationView, SafetyView, StatusChip

__all__ = ["MAX_WAITING", "Answer", "SafetyGate"]

MAX_WAITING = 16  # overlays open at once; a further one is refused with 503
MAX_UPLOADS = 64  # screenshots whose upload the log waits for; the oldest stays pending there

_LOST = CommandReply(503, {"error": "the connection to the relay was lost"})  # only the log contains this reply

Answer: TypeAlias = tuple[str, CommandResponse]
"""A request id and the answer to that command."""


class SafetyGate:
    """Safety gates of one phone; `flavor` is its build, `sideload` or `googlePlay`.

    The lists `blocklist`, `verbs` and `trust` belong to the user. `idle_minutes` is clamped to 5..120,
    `confirmation_timeout` to 10..60 s. `wake` turns the display on and dismisses a lock without credential; it returns
    whether the phone is usable now, and is called for unattended access alone. `consents` are the system's own, if it
    stores them: until they have notification access, which the status only reports, the backend's value is used. All
    state is volatile except the three lists and `log`, which the owner may store.
    """

    def __init__(
        self,
        backend: GuardedBackend,
        *,
        flavor: str = "sideload",
        blocklist: Blocklist | None = None,
        verbs: DestructiveVerbs | None = None,
        trust: TrustedActions | None = None,
        idle_minutes: int = DEFAULT_IDLE_MINUTES,
        confirmation_timeout: float = DEFAULT_TIMEOUT,
        wake: Callable[[Moment], bool] | None = None,
        consents: SystemPermissions | None = None,
    ) -> None:
        self.blocklist = Blocklist() if blocklist is None else blocklist
        self.verbs = DestructiveVerbs() if verbs is None else verbs
        self.trust = TrustedActions() if trust is None else trust
        self.log = ActivityLog()
        self._backend = backend
        self._pressed = backend.texts_pressed if isinstance(backend, TargetTextSource) else None
        self._flavor = flavor
        self._sideload = flavor == "sideload"
        self._master = MasterToggle(idle_minutes=idle_minutes)
        self._timeout = clamp_timeout(confirmation_timeout)
        self._unattended = UnattendedAccess(wake)
        self._consents = SystemPermissions() if consents is None else consents
        self._show_chip = False
        # by confirmation id; the text is the log id
        self._waiting: OrderedDict[str, tuple[str, SafetyConfirmation]] = OrderedDict()
        self._uploads: OrderedDict[str, None] = OrderedDict()  # log ids, oldest first
        self._ready: list[Answer] = []
        self._ready_at = 0.0  # when (monotonic seconds) the first of them was made
        self._count = 0

    # --- commands -------------------------------------------------------------------------------------------------

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse | AwaitingConfirmation:
        """Check a command and execute it, unless a gate refuses it or the user must confirm it first.

        While a command with a request id waits for the user, its repetition opens no second confirmation, and another
        command with its request id is refused. Also refused are invalid arguments of a route that is always confirmed,
        and a command that needs a confirmation while none can be shown or `MAX_WAITING` are open.
        """
        self._tick(now)
        self._master.command(now)
        for confirmation_id, (_, waiting) in self._waiting.items():
            if command.request_id and waiting.command.request_id == command.request_id:
                if waiting.command == command:
                    return AwaitingConfirmation(confirmation_id)
                return CommandReply(400, {"error": "request_id: another command with it waits for the user"})
        log_id = self.log.begin(command, now)
        refusal = self._refusal(command, now)
        if refusal is not None:
            return self._logged(log_id, refusal)
        try:
            question = self._question(command)
        except CommandRefused as unusable:
            return self._logged(log_id, unusable.to_reply())
        if question is None:
            return self._logged(log_id, self._backend.execute(command, now))
        return self._request_confirmation(log_id, command, question, now)

    def decide(self, confirmation_id: str, *, allow: bool, remember: bool = False, now: Moment) -> Answer | None:
        """Apply the user's answer; return request id and answer of the command, or None if the id is not open.

        After an Allow the gates are checked again before the execution. On an Allow, `remember` trusts the verb or
        action from now on.
        """
        self._tick(now)
        if confirmation_id not in self._waiting:
            return None
        log_id, confirmation = self._waiting.pop(confirmation_id)
        command, question = confirmation.command, confirmation.question
        if not allow:
            confirmation.step(ConfirmationTrigger.DENY)
            return command.request_id, self._logged(log_id, route_rules.denied_reply(question))
        confirmation.step(ConfirmationTrigger.ALLOW)
        if remember:
            self.trust.remember(question)
        return command.request_id, self._logged(log_id, self._after_allow(confirmation, now))

    def advance(self, now: Moment) -> list[Answer]:
        """Apply deadlines; return request ids and answers of the commands that were given up since the last call."""
        self._tick(now)
        answers, self._ready = self._ready, []
        return answers

    def next_deadline(self) -> float | None:
        """Return when (monotonic seconds) `advance` is due; None if no deadline is set."""
        if self._ready:
            return self._ready_at
        deadlines = [confirmation.deadline for _, confirmation in self._waiting.values()]
        idle = self._master.next_deadline()
        if idle is not None:
            deadlines.append(idle)
        return min(deadlines, default=None)

    def connection_lost(self) -> None:
        """Withdraw the commands that wait for the user, and log unfinished uploads as failed: no answer can be sent."""
        for log_id, _ in self._withdraw(ConfirmationTrigger.WITHDRAW):
            self.log.finish(log_id, _LOST)
        for log_id in self._uploads:
            self.log.finish(log_id, _LOST)
        self._uploads.clear()
        self._ready.clear()

    def forget(self, request_id: str) -> bool:
        """Withdraw a command whose caller is gone; return whether it waited for the user."""
        for key, (log_id, confirmation) in self._waiting.items():
            if confirmation.command.request_id == request_id:
                del self._waiting[key]
                confirmation.step(ConfirmationTrigger.WITHDRAW)
                self.log.finish(log_id, _LOST)
                return True
        return False

    def process_died(self) -> None:
        """Reset at the end of the app: "state is not persisted" holds for the toggle, the consent and overlays."""
        self._master.process_death()
        self._consents.end_capture_session()
        self.connection_lost()

    def on_uploaded(self, token: str, scheme: str, *, request_id: str | None = None) -> CommandReply:
        """Return the reply to a command whose file is uploaded, and log it if the log still waits for that upload.

        `request_id` None stands for the oldest upload for which the log waits.
        """
        reply = self._backend.on_uploaded(token, scheme)
        log_id = next(iter(self._uploads), None) if request_id is None else request_id
        if log_id is not None and log_id in self._uploads:
            del self._uploads[log_id]
            self.log.finish(log_id, reply, thumbnail_token=token)
        return reply

    def upload_failed(self, request_id: str, reply: CommandReply) -> None:
        """Log a failed upload for which the log still waits; `reply` is the answer that the caller receives."""
        if request_id in self._uploads:
            del self._uploads[request_id]
            self.log.finish(request_id, reply)

    def confirmations(self) -> list[SafetyConfirmation]:
        """Return the open overlays, oldest first."""
        return [confirmation for _, confirmation in self._waiting.values()]

    def status(self, now: Moment) -> dict[str, object]:
        """Return the backend's status with the members of the gates (wire bridge 1.3)."""
        self._tick(now)
        return with_gate_status(
            self._backend.status(now),
            now,
            sideload=self._sideload,
            master=self._master,
            consents=self._consents,
            unattended=self._unattended.enabled,
            blocked=len(self.blocklist),
            verbs=len(self.verbs),
        )

    # --- the user's controls ----------------------------------------------------------------------------------------

    def set_master(self, on: bool, now: Moment) -> bool:
        """Turn Device Control on or off; return whether it is on.

        It cannot be turned on without accessibility or on a store build.
        """
        self._tick(now)
        if on:
            return self._master.turn_on(now, accessible=self._sideload and self._consents.accessibility)
        if self._master.turn_off():
            self._went_off(now)
        return False

    def set_accessibility(self, granted: bool) -> None:
        """Set whether the accessibility service is bound; the master toggle does not change (wire bridge 5.1)."""
        self._consents.accessibility = granted

    def set_capture_consent(self, granted: bool) -> None:
        """Set the consent to screen capture; it ends with the master toggle."""
        self._consents.screen_capture = granted

    def set_overlay_permission(self, granted: bool, now: Moment) -> None:
        """Set the permission to draw over apps; without it the open overlays are denied."""
        self._tick(now)
        self._consents.overlay = granted
        self._tick(now)

    def set_unattended(self, enabled: bool) -> None:
        """Set unattended access, which wakes the phone for commands of routes with `wakes_screen`."""
        self._unattended.enabled = enabled

    def set_status_overlay(self, shown: bool) -> None:
        """Set whether the user wants the status chip."""
        self._show_chip = shown

    # --- display for the user ---------------------------------------------------------------------------------------

    @property
    def is_armed(self) -> bool:
        """Report whether the master toggle is on."""
        return self._master.is_armed

    @property
    def unattended(self) -> bool:
        """Report whether unattended access is on."""
        return self._unattended.enabled

    @property
    def banner(self) -> bool:
        """Report whether the in-app banner is shown: while master toggle and unattended access are both on."""
        return self._master.is_armed and self._unattended.enabled

    def chip(self, *, in_background: bool) -> bool:
        """Report whether the status chip is shown: only while the master toggle is on and another app is in front.

        The user must have chosen the chip, or unattended access must be on.
        """
        return self._master.is_armed and in_background and (self._show_chip or self._unattended.enabled)

    def view(self, now: Moment, *, in_background: bool = True) -> SafetyView:
        """Return the state of all gates; `in_background`: another app than the client is in front."""
        self._tick(now)
        chip = StatusChip.HIDDEN
        if self.chip(in_background=in_background):
            chip = StatusChip.FORCED if self._unattended.enabled else StatusChip.SHOWN
        return SafetyView(
            flavor=self._flavor,
            master=self._master.state,
            turned_off_by=self._master.turned_off_by,
            hint=ACCESSIBILITY_HINT if self._sideload and not self._consents.accessibility else None,
            auto_disable_minutes=self._master.idle_minutes,
            auto_disable_at_ms=self._master.auto_disable_at_ms(now),
            accessibility_granted=self._consents.accessibility,
            screen_capture_granted=self._consents.screen_capture,
            overlay_granted=self._consents.overlay,
            notification_listener_granted=self._consents.notification_listener,
            unattended=self._unattended.enabled,
            notification=NOTIFICATION if self._master.is_armed else None,
            chip=chip,
            banner=self.banner,
            confirmation_timeout=self._timeout,
            blocklist=self.blocklist.packages,
            verbs=self.verbs.verbs,
            trusted_verbs=self.trust.verbs,
            trusted_actions=self.trust.actions,
            overlays=tuple(ConfirmationView.of(confirmation, now) for confirmation in self.confirmations()),
            activity=tuple(self.log.entries()),
        )

    # --- checks -----------------------------------------------------------------------------------------------------

    def _refusal(self, command: PhoneCommand, now: Moment) -> CommandReply | None:
        row = route_rules.GATES.get(command.path)
        if row is not None and (row.is_free if self._sideload else row.is_probe):
            return None
        if not self._sideload:
            return route_rules.SIDELOAD_ONLY
        if not self._master.is_armed and (row is None or row.needs_master):
            return route_rules.MASTER_OFF
        if not self._consents.accessibility:
            return route_rules.ACCESSIBILITY_MISSING
        if command.path == "/screenshot" and not self._consents.screen_capture:
            return route_rules.CAPTURE_NOT_ALLOWED
        refusal = self._blocked(command)
        if refusal is not None:
            return refusal
        if row is None:
            return route_rules.UNKNOWN_ROUTE
        if not row.wakes_screen or not self._unattended.wakes:
            return None
        # The app behind a dismissed lock is not the one that was checked above.
        return self._blocked(command) if self._unattended.make_ready(now) else route_rules.KEYGUARD_BLOCKED

    def _blocked(self, command: PhoneCommand) -> CommandReply | None:
        for package in (self._backend.foreground, *route_rules.target_packages(command)):
            if package in self.blocklist:
                return route_rules.blocked_reply(command, package)
        return None

    def _texts(self, command: PhoneCommand) -> tuple[str, ...]:
        return route_rules.inspected_texts(command, self._backend.text_of, self._pressed)

    def _question(self, command: PhoneCommand) -> ConfirmationRequest | None:
        if command.path in route_rules.ALWAYS_ASK:
            question = route_rules.confirmation_request_of(command)
            return None if self.trust.covers(question) else question
        for text in self._texts(command):
            for verb in self.verbs.matches(text):  # a trusted verb does not cover another one beside it
                question = route_rules.confirmation_request_for(command, verb, text)
                if not self.trust.covers(question):
                    return question
        return None

    def _request_confirmation(
        self, log_id: str, command: PhoneCommand, question: ConfirmationRequest, now: Moment
    ) -> CommandResponse | AwaitingConfirmation:
        if len(self._waiting) >= MAX_WAITING:
            return self._logged(log_id, CommandReply(503, {"error": "too many commands wait for the user"}))
        self._count += 1
        confirmation = SafetyConfirmation(
            confirmation_id=f"c{self._count}",
            command=command,
            question=question,
            context=self._context(command),
            deadline=now.mono + self._timeout,
        )
        if not self._consents.overlay:
            confirmation.step(ConfirmationTrigger.CANNOT_SHOW)
            return self._logged(log_id, route_rules.denied_reply(question))
        confirmation.step(ConfirmationTrigger.ASK)
        self._waiting[confirmation.confirmation_id] = log_id, confirmation
        return AwaitingConfirmation(confirmation.confirmation_id)

    def _after_allow(self, confirmation: SafetyConfirmation, now: Moment) -> CommandResponse:
        command = confirmation.command
        refusal = self._refusal(command, now)
        if refusal is not None:
            return refusal
        if self._context(command) != confirmation.context:
            return route_rules.SCREEN_CHANGED
        return _confirmed(self._backend.execute(command, now))

    def _context(self, command: PhoneCommand) -> tuple[str, ...]:
        """Return what must be unchanged when the user allows a command: the app in front and the texts of the target.

        It is empty for the routes that are always confirmed, which do not depend on the screen.
        """
        if command.path in route_rules.ALWAYS_ASK:
            return ()
        return self._backend.foreground, *self._texts(command)

    # --- time and bookkeeping ---------------------------------------------------------------------------------------

    def _tick(self, now: Moment) -> None:
        due = [key for key, (_, confirmation) in self._waiting.items() if confirmation.due(now)]
        for key in due:
            log_id, confirmation = self._waiting.pop(key)
            confirmation.step(ConfirmationTrigger.TIME_OUT)
            self._answer_later(log_id, confirmation, route_rules.denied_reply(confirmation.question), now)
        if self._master.advance(now):
            self._went_off(now)
        if self._waiting and not self._consents.overlay:  # the system may withdraw it without a notice
            for log_id, confirmation in self._withdraw(ConfirmationTrigger.CANNOT_SHOW):
                self._answer_later(log_id, confirmation, route_rules.denied_reply(confirmation.question), now)

    def _went_off(self, now: Moment) -> None:
        self._consents.end_capture_session()
        for log_id, confirmation in self._withdraw(ConfirmationTrigger.WITHDRAW):
            self._answer_later(log_id, confirmation, route_rules.MASTER_OFF, now)

    def _withdraw(self, trigger: ConfirmationTrigger) -> Iterator[tuple[str, SafetyConfirmation]]:
        while self._waiting:
            _, (log_id, confirmation) = self._waiting.popitem(last=False)
            confirmation.step(trigger)
            yield log_id, confirmation

    def _answer_later(self, log_id: str, confirmation: SafetyConfirmation, reply: CommandReply, now: Moment) -> None:
        if not self._ready:
            self._ready_at = now.mono
        self._ready.append((confirmation.command.request_id, self._logged(log_id, reply)))

    def _logged(self, log_id: str, response: CommandResponse) -> CommandResponse:
        if isinstance(response, UploadReply):
            self._uploads[log_id] = None
            if len(self._uploads) > MAX_UPLOADS:
                self._uploads.popitem(last=False)
        else:
            self.log.finish(log_id, response.reply if isinstance(response, DelayedReply) else response)
        return response


def _confirmed(response: CommandResponse) -> CommandResponse:
    """Add `confirmed` to the result of a command that passed an overlay (wire bridge 4.3), except for an upload."""
    if isinstance(response, UploadReply):
        return response
    if isinstance(response, DelayedReply):
        return evolve(response, reply=_confirmed_reply(response.reply))
    return _confirmed_reply(response)


def _confirmed_reply(reply: CommandReply) -> CommandReply:
    return evolve(reply, result={**reply.result, "confirmed": True})
