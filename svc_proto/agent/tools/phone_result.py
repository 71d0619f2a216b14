"""Conversion of a phone's answer to text for a model, with advice for the reaction to a failure."""

from svc_proto.basics import strict_json
from svc_proto.basics.brand import Brand, spell_markers
from svc_proto.basics.errors import ToolError
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneResponse

__all__ = ["ERROR_HINTS", "body_of", "result_of", "text_of"]
MAX_ERROR = 500  # characters of an error text of the phone or the relay

STOP = "Stop here and tell the user; do not try the same by other means."
ERROR_HINTS = {
    "user_denied": f"The user denied this, or did not answer. {STOP}",
    "bridge_disabled": "Device Control is off on the phone: ask the user to turn it on in the app.",
    "service_unavailable": "The accessibility service is off: ask the user to turn it on in the phone's settings.",
    "keyguard_blocked": "The phone is locked: ask the user to unlock it.",
    "permission_denied": "The app lacks an Android permission: ask the user to grant it.",
    "device_control_sideload_only": "This build of the app cannot be controlled. Tell the user; do not retry.",
    "sideload_only": "This build of the app cannot do that. Tell the user; do not retry.",
    "unknown_bridge_command": "This phone does not know the command.",
    "bridge_capability_denied": f"The user has not granted this capability to the agent. {STOP}",
    "bridge_capability_expired": "The time for which the user granted this is over: ask for it again.",
    "bridge_policy_unavailable": f"The phone has no policy that would allow this. {STOP}",
    "bridge_policy_unbound": f"The phone has no policy that would allow this. {STOP}",
    "bridge_policy_invalid": f"The phone has no policy that would allow this. {STOP}",
    "phone_not_connected": "No phone is connected to the relay: ask the user to open the app.",
    "phone_disconnected": "The phone was lost while it worked: the action may or may not have happened. Look first.",
    "send_failed": "The phone could not be reached: try once more.",
    "phone_timeout": "The phone did not answer in time and may still act: look at the screen before you try again.",
    "unknown_device": "No phone of that name is connected.",
    "phone_asks_nobody": "The phone that would have asked its user is gone: try once more, and the user is asked.",
    "ambiguous_device": "Several phones match: name one of them with the argument device.",
    "grant_required": "The agent's session at the relay holds no bridge grant: tell the user.",
}
"""Advice for the model by the relay's `code` or the phone's `error_code` (wire bridge 2.2, 5.9)."""


def result_of(name: str, answer: PhoneResponse, brand: Brand) -> str:
    """Return a result as JSON text; of a screenshot with a marker, a text with the marker that shows it to the user.

    Raises `ToolError` from status 400 on.
    """
    body = body_of(answer)
    if name == "screenshot" and (marker := JsonObject.of(body).string("media")) is not None:
        return (
            f"The picture was taken.\nThe user sees it wherever this line stands by itself:\n{_marker(marker, brand)}"
        )
    return strict_json.dumps(body)


def text_of(answer: PhoneResponse) -> str:
    """Return the body of an answer as JSON text. Raises `ToolError` from status 400 on."""
    if answer.text and answer.status < 400:
        return answer.text
    return strict_json.dumps(body_of(answer))


def body_of(answer: PhoneResponse) -> JsonObject:
    """Return the body of an answer as an object. Raises `ToolError` from status 400 on."""
    if answer.status >= 400:
        raise ToolError(*_failure(answer))
    return JsonObject.of(answer.body)


def _failure(answer: PhoneResponse) -> tuple[str, str]:
    """Return the failure for people, and the advice for the model."""
    body = JsonObject.of(answer.body)
    code = body.text("error_code", "code")
    said = " ".join(body.text("error").split())[:MAX_ERROR] or "no reason given"
    pieces = []
    meaning = ERROR_HINTS.get(code)
    if meaning is None and said.startswith("blocked package"):
        meaning = f"The user keeps the agent out of this app. {STOP}"
    if meaning is not None:
        pieces.append(meaning)
    pieces += [text[:MAX_ERROR] for key in ("required_action", "instruction") if (text := body.text(key))]
    if body.get("final") is True and not any(STOP in piece for piece in pieces):
        pieces.append(STOP)
    return f"{answer.status}{f' {code}' if code else ''}: {said}.", " ".join(pieces)


def _marker(text: str, brand: Brand) -> str:
    """Return a media marker that begins with `MEDIA:`, in the spelling of `brand`, whichever the phone used."""
    text = spell_markers(text, brand)
    return text if text.startswith("MEDIA:") else f"MEDIA:{text}"
