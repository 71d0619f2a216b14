"""Scripted phone backend, and a gate around it with accessibility, overlay and capture granted."""

from collections.abc import Mapping
from typing import Any

from attrs import Factory, define

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand, UploadReply
from svc_proto.phone.safety.confirmation import AwaitingConfirmation
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.permissions import SystemPermissions
from svc_proto.phone.safety.route_rules import GATES

NOW = Moment(1_000.0, 1_800_000_000.0)
BANK = "com.chase.sig.android"
OK = CommandReply(200, {"ok": True})
DENIED = {
    "error_code": "user_denied",
    "status": "blocked",
    "android_result": "user_denied",
    "reason": "confirmation_denied_or_timeout",
    "final": True,
}
PICTURE = UploadReply("screen.png", "image/png", b"\x89PNG")
SENDABLE: dict[str, dict[str, object]] = {  # the smallest valid body of each route that needs a confirmation
    "/call": {"number": "+1"},
    "/send_sms": {"to": "+1", "body": "x"},
    "/share_media": {"text": "x"},
    "/send_mms": {"to": "+1", "text": "x"},
}
ASKING = list(SENDABLE)
ACTING = [row.path for row in GATES.values() if row.wakes_screen]
ALL_ROUTES = list(GATES)  # the 34 of the specification, self-foreground in both spellings
FREE = {"/ping"}
MASTERLESS = {"/current_app", "/return_to_svc", "/return_to_hermes"}


def later(seconds: float) -> Moment:
    return NOW.at(NOW.mono + seconds)


def command(path: str, request_id: str = "r1", /, **body: object) -> PhoneCommand:
    """Return a command; the default arguments are those that the route requires."""
    return PhoneCommand("POST", path, body or SENDABLE.get(path, {}), request_id)


@define
class ScriptedBackend:
    """Phone backend that records the commands, and returns or raises what `answers` has for their paths, else `OK`."""

    build: str = "sideload"
    consents: SystemPermissions = Factory(
        lambda: SystemPermissions(accessibility=True, screen_capture=True, overlay=True)
    )
    foreground: str = "com.example.mail"
    texts: dict[str, str] = Factory(dict)
    answers: dict[str, CommandResponse | Exception] = Factory(dict)
    asked: list[PhoneCommand] = Factory(list)
    uploads: list[tuple[str, str]] = Factory(list)
    base_status: dict[str, object] = Factory(lambda: {"battery": 64})
    fault: Exception | None = None  # raised by `status` and `on_uploaded`
    usable: bool = True  # whether waking the phone succeeds
    behind: str | None = None  # the app behind a dismissed lock
    woken: int = 0

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        self.asked.append(command)
        answer = self.answers.get(command.path, OK)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def on_uploaded(self, token: str, scheme: str) -> CommandReply:
        if self.fault is not None:
            raise self.fault
        self.uploads.append((token, scheme))
        return CommandReply(200, {"media": f"MEDIA:{scheme}://{token}"})

    def status(self, now: Moment) -> Mapping[str, object]:
        if self.fault is not None:
            raise self.fault
        return self.base_status

    def text_of(self, node_id: str) -> str | None:
        return self.texts.get(node_id)

    def wake(self, now: Moment) -> bool:
        self.woken += 1
        if self.usable and self.behind is not None:
            self.foreground = self.behind
        return self.usable


def gate_of(backend: ScriptedBackend, *, flavor: str = "sideload", master: bool = True, **options: Any) -> SafetyGate:
    """Return a gate with accessibility, overlay permission and capture consent, and by default the master toggle on."""
    gate = SafetyGate(backend, flavor=flavor, wake=backend.wake, **options)
    gate.set_accessibility(True)
    gate.set_overlay_permission(True, NOW)
    gate.set_capture_consent(True)
    if master:
        gate.set_master(True, NOW)
    return gate


def gated(*, flavor: str = "sideload", master: bool = True, **options: Any) -> tuple[ScriptedBackend, SafetyGate]:
    """Return a backend and the gate around it."""
    backend = ScriptedBackend()
    return backend, gate_of(backend, flavor=flavor, master=master, **options)


def refused(gate: SafetyGate, backend: ScriptedBackend, asked: PhoneCommand) -> CommandReply:
    reply = gate.execute(asked, NOW)
    assert isinstance(reply, CommandReply)
    assert backend.asked == []
    return reply


def check_gate(gate: SafetyGate, asked: PhoneCommand) -> str:
    awaiting = gate.execute(asked, NOW)
    assert isinstance(awaiting, AwaitingConfirmation)
    return awaiting.confirmation_id
