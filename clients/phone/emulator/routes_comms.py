"""Routes of the sideload build: location, contacts, calls and text messages (wire/bridge.md 3.7)."""

from typing import assert_never

from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.environment import Contact, PhoneNumber, Radio
from clients.phone.emulator.sample_apps import DIALER
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments, clamp, utf16_length
from svc_proto.phone.backend import CommandRefused, CommandReply, CommandResponse, DelayedReply
from svc_proto.phone.outgoing_actions import parse_call_action, parse_sms_action

__all__ = ["call", "location", "search_contacts", "send_sms", "sms_parts"]

STALE = 5 * 60 * 1000  # ms; an older position is returned with a warning
CARRIER_WAIT = 15.0  # s for the network's answer to a text message
CONTACTS_LIMIT = 100  # contacts of one answer; a larger `limit` is cut
BEST_FIRST = ("mobile", "main", "home", "work", "other")
HARDLY_A_PHONE = ("watch", "pager", "fax")  # in a label or type: listed last
# Default alphabet of GSM 03.38; characters of its extension take two places.
_GSM = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_GSM_EXTENSION = frozenset("\f^{}\\[~]|€")


def location(device: EmulatedDevice, _args: CommandArguments, now: Moment) -> CommandResponse:
    """Return the last known position with the smallest positive accuracy.

    Raises `CommandRefused` 400 without the permission, a provider or a position.
    """
    if not device.permissions.location:
        raise CommandRefused(400, "the location permission has not been granted")  # no error_code here, 3.7
    if not device.location_on:
        raise CommandRefused(400, "all location providers are off")
    best = min((fix for fix in device.fixes if fix.accuracy > 0), key=lambda fix: fix.accuracy, default=None)
    if best is None:
        raise CommandRefused(400, "no position is known")
    taken = now.wall if best.wall is None else best.wall
    age = max(0, int((now.wall - taken) * 1000))
    result: dict[str, object] = {
        "latitude": best.latitude,
        "longitude": best.longitude,
        "accuracy": best.accuracy,
        "provider": best.provider,
        "timestamp": int(taken * 1000),
        "staleness_ms": age,
    }
    if best.altitude is not None:
        result["altitude"] = best.altitude
    if age > STALE:
        result["warning"] = "the position is older than five minutes"
    return CommandReply(200, result)


def search_contacts(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the first contacts whose name contains the query, ignoring case.

    There are at most `limit` (default 20, clamped to 1..`CONTACTS_LIMIT`). Raises `CommandRefused` without the
    permission or a query.
    """
    query = args.required("query")
    limit = args.integer("limit")
    limit = clamp(20 if limit is None else limit, 1, CONTACTS_LIMIT)
    if not device.permissions.contacts:
        raise _not_permitted("contacts", "android.permission.READ_CONTACTS")
    needle = query.strip().lower()
    found = [contact for contact in device.contacts if needle in contact.name.lower()][:limit]
    return CommandReply(
        200, {"count": len(found), "query": query, "contacts": [_contact(contact) for contact in found]}
    )


def call(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Place a call; without the call permission, open the dialer with the number instead.

    Raises `CommandRefused` 400 without a dialer.
    """
    number = parse_call_action(args).number
    if DIALER not in device.apps:
        raise CommandRefused(400, "number: there is no dialer on this phone")
    device.fill(DIALER, {"number": number})
    if not device.permissions.call:
        device.record("dialer", now, {"number": number})
        device.launch(DIALER, now, "keypad")
        note = "the call permission is missing; the dialer shows the number"
        return CommandReply(200, {"number": number, "mode": "dialer_opened", "note": note})
    device.record("call", now, {"number": number})
    device.launch(DIALER, now, "call")
    return CommandReply(200, {"number": number, "mode": "auto_dial"})


def send_sms(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Return the simulated network's result for a text message; a sent one is recorded in the outbox."""
    message = parse_sms_action(args)
    to, body = message.to, message.body
    if not device.permissions.sms:
        raise _not_permitted("sms", "android.permission.SEND_SMS", status="blocked", reason="permission_denied")
    parts = sms_parts(body)
    outcome: dict[str, object] = {"android_result": device.radio.value, "parts": parts}
    match device.radio:
        case Radio.OK:
            device.record("sms", now, {"to": to, "body": body, "parts": parts})
            summary = f"text message of {parts} part{'s' if parts > 1 else ''} sent to {to}"
            return CommandReply(
                200, {"status": "sent", **outcome, "to": to, "length": utf16_length(body), "summary": summary}
            )
        case Radio.NO_SERVICE:
            error = "the message was not sent: no service"
            return CommandReply(400, {"error": error, "status": "failed", "reason": "no service", **outcome})
        case Radio.NO_ANSWER:
            error = "the network did not acknowledge the message"
            result = {"error": error, "status": "timeout", "reason": "carrier_ack_timeout", **outcome}
            return DelayedReply(CARRIER_WAIT, CommandReply(400, result))
        case _ as never:
            assert_never(never)


def sms_parts(text: str) -> int:
    """Return the number of SMS parts for a text: one of 160 GSM septets, or several of 153.

    A text outside of the GSM alphabet has one part of 70 UTF-16 units, or several of 67.
    """
    if all(char in _GSM or char in _GSM_EXTENSION for char in text):
        places, single, several = len(text) + sum(char in _GSM_EXTENSION for char in text), 160, 153
    else:
        places, single, several = utf16_length(text), 70, 67
    return 1 if places <= single else -(-places // several)


def _not_permitted(what: str, permission: str, **more: object) -> CommandRefused:
    error = f"the {what} permission has not been granted"
    return CommandRefused(
        400, error, "permission_denied", required_permission=permission, permission=permission, **more
    )


def _contact(contact: Contact) -> dict[str, object]:
    phones = sorted(contact.phones, key=_rank)
    listed = [{"number": phone.number, "type": phone.kind, "label": phone.label} for phone in phones]
    return {"id": contact.id, "name": contact.name, "phones": listed}


def _rank(phone: PhoneNumber) -> tuple[bool, int]:
    label = f"{phone.kind} {phone.label}".lower()
    known = BEST_FIRST.index(phone.kind) if phone.kind in BEST_FIRST else len(BEST_FIRST)
    return any(word in label for word in HARDLY_A_PHONE), known
