"""Rules of the safety gates: routes, inspected arguments, and the replies of refusals (wire bridge 5.2, 5.5).

Routes are checked by path alone: the phone backend refuses a method that a path does not support.
"""

from collections.abc import Callable, Mapping, Sequence

from svc_proto.basics import strict_json
from svc_proto.phone.arguments import CommandArguments, scalar_text
from svc_proto.phone.backend import CommandRefused, CommandReply, PhoneCommand
from svc_proto.phone.outgoing_actions import READERS
from svc_proto.phone.safety.confirmation import ConfirmationRequest
from svc_proto.phone.safety.view import ACCESSIBILITY_HINT
from svc_proto.schema.device_control import ControlRoute, ScreenGesture
from svc_proto.schema.device_control_routes import DEVICE_CONTROL

__all__ = [
    "ACCESSIBILITY_MISSING",
    "ALWAYS_ASK",
    "CAPTURE_NOT_ALLOWED",
    "DENIED_ERROR",
    "GATES",
    "KEYGUARD_BLOCKED",
    "MASTER_OFF",
    "SCREEN_CHANGED",
    "SIDELOAD_ONLY",
    "UNKNOWN_ROUTE",
    "blocked_reply",
    "confirmation_request_for",
    "confirmation_request_of",
    "denied_reply",
    "inspected_texts",
    "target_packages",
]

# By path; a path without a row in the table has no gates either, so it is not executed.
GATES: Mapping[str, ControlRoute] = {row.path: row for row in DEVICE_CONTROL.values()}
ALWAYS_ASK = tuple(row.path for row in DEVICE_CONTROL.values() if row.always_asks)
DENIED_ERROR = "user denied destructive action"  # spec "Errors", 403 bodies
_MAX_QUOTE = 200  # characters of a text in a refusal


def _gate_reply(status: int, code: str, error: str, action: str, **more: object) -> CommandReply:
    return CommandReply(status, {"error": error, "error_code": code, "required_action": action, **more})


SIDELOAD_ONLY = CommandReply(
    403,
    {
        "error": "Device Control exists only in the sideload build of this app",
        "error_code": "device_control_sideload_only",
        "flavor": "googlePlay",
    },
)
ACCESSIBILITY_MISSING = _gate_reply(
    503, "service_unavailable", "the accessibility service is off on the phone", ACCESSIBILITY_HINT
)
MASTER_OFF = _gate_reply(
    403,
    "bridge_disabled",
    "Device Control is turned off on the phone",
    "Turn on Device Control in the app on the phone.",
)
# wire bridge 3.4
CAPTURE_NOT_ALLOWED = CommandReply(500, {"error": "screen capture has not been allowed on the phone"})
KEYGUARD_BLOCKED = _gate_reply(
    423, "keyguard_blocked", "the phone is locked with a credential", "Unlock the phone.", final=True
)
SCREEN_CHANGED = _gate_reply(
    403,
    "screen_changed",
    "the screen changed while the user was asked; nothing was done",
    "Read the screen again.",
)
UNKNOWN_ROUTE = CommandReply(404, {"error": "path: unknown command"})  # wire bridge 3.8


def inspected_texts(
    command: PhoneCommand,
    text_of: Callable[[str], str | None],
    pressed: Callable[[PhoneCommand], Sequence[str]] | None = None,
) -> tuple[str, ...]:
    """Return the texts to search for destructive verbs, without blank ones; empty for a route that presses no control.

    These are the argument `text`; on a route with a node, the text of each node that `nodeId` or `node_id` names, as
    `text_of` returns it; and the texts that `pressed` returns (see `TargetTextSource`).
    """
    row = GATES.get(command.path)
    # Spec "Bridge safety gates" 5b names `/type` as well. Typing has no effect; the press that follows is inspected.
    if row is None or row.gesture is not ScreenGesture.PRESS:
        return ()
    texts = [_scalar(command.body, "text")]
    if any("nodeId" in rule.types for rule in row.rules):
        for name in ("nodeId", "node_id"):
            node_id = _scalar(command.body, name)
            texts.append(text_of(node_id) or "" if node_id else "")
    if pressed is not None:
        texts += pressed(command)
    return tuple(text for text in texts if text.strip())


def target_packages(command: PhoneCommand) -> tuple[str, ...]:
    """Return the packages that a command would start: `package`, and the one in `component` (`pkg/class`).

    Empty for a route that starts no app.
    """
    row = GATES.get(command.path)
    if row is None or not row.checks_target:
        return ()
    component = _scalar(command.body, "component").partition("/")[0]
    names = (_scalar(command.body, "package").strip(), component.strip())
    return tuple(name for name in names if name)


def confirmation_request_of(command: PhoneCommand) -> ConfirmationRequest:
    """Return the confirmation for an always-confirmed route: all data that would leave the phone, as parsed.

    A route without a parser of its own shows all arguments as JSON.
    Raise `CommandRefused` where the backend would: no confirmation is requested for an invalid command.
    """
    reader = READERS.get(command.path)
    if reader is None:
        return ConfirmationRequest(action=_action(command), verb=None, text=strict_json.dumps(command.body))
    outgoing = reader(CommandArguments(command.body))
    return ConfirmationRequest(action=_action(command), verb=None, text=outgoing.question_text)


def blocked_reply(command: PhoneCommand, package: str) -> CommandReply:
    """Return the refusal for an app in front, or a target app, that is on the blocklist."""
    result: dict[str, object] = {"error": f"blocked package {package}"}
    row = GATES.get(command.path)
    if row is not None and row.checks_target and row.always_asks:  # wire bridge 5.3, share and MMS
        result.update(status="blocked", reason="blocked_package")
    return CommandReply(403, result)


def denied_reply(question: ConfirmationRequest) -> CommandReply:
    """Return the refusal of wire bridge 5.5, for a denial, a time-out and an overlay that could not be shown.

    `error` is the spec's text; `instruction` names the denied action.
    """
    about = f": {question.text[:_MAX_QUOTE]}" if question.text else ""
    return CommandReply(
        403,
        {
            "error": DENIED_ERROR,
            "error_code": "user_denied",
            "status": "blocked",
            "android_result": "user_denied",
            "reason": "confirmation_denied_or_timeout",
            "final": True,
            "instruction": f"The user did not allow {question.action}{about}\n"
            "The denial covers the whole intent. Do not retry it through UI automation or another way.",
        },
    )


def confirmation_request_for(command: PhoneCommand, verb: str, text: str) -> ConfirmationRequest:
    """Return the confirmation for a destructive verb."""
    return ConfirmationRequest(action=_action(command), verb=verb, text=text)


def _action(command: PhoneCommand) -> str:
    return command.path.removeprefix("/")


def _scalar(body: Mapping[str, object], name: str) -> str:
    """Return an argument as text, as phones parse it; empty for a type that no route accepts, such as an array."""
    try:
        return scalar_text(body.get(name), name)
    except CommandRefused:
        return ""
