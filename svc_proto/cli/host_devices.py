"""Paired devices for the operator on the relay's host: list, find by name or prefix, rename, extend, revoke."""

from difflib import get_close_matches

from svc_proto.basics.duration_text import short_duration
from svc_proto.cli.desktop_output import grants_text
from svc_proto.cli.durations import short_expiry
from svc_proto.cli.error_text import sanitize_line, with_explanation
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.operator_requests import MIN_PREFIX, revoke
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.wire.urls import encode_segment

__all__ = [
    "HOST_DEVICE_COLUMNS",
    "change_device",
    "describe_device",
    "find_device",
    "host_device_rows",
    "list_host_devices",
    "revoke_device",
    "wait_for_device",
]

HOST_DEVICE_COLUMNS = ("NAME", "PREFIX", "SEEN", "EXPIRES", "KIND", "GRANTS")
FORBIDDEN = {ServiceFault.FORBIDDEN: "the relay takes this only from its own host: {said}"}


def list_host_devices(engine: Engine, relay: RelayClient) -> Flow[list[JsonObject]]:
    """Return the paired devices, connected ones first. Raises `CliError`."""
    found = yield from with_explanation(relay.sessions(engine), FORBIDDEN)
    return sorted(found, key=lambda device: device.get("online") is not True)


def host_device_rows(devices: list[JsonObject], now: float) -> list[tuple[str, ...]]:
    """Return a row for each device, in the order of `HOST_DEVICE_COLUMNS`; `now` in epoch seconds."""
    return [_row(device, now) for device in devices]


def find_device(devices: list[JsonObject], text: str) -> JsonObject:
    """Return the one device with this name, in upper or lower case; if none has it, the one with this token prefix.

    A prefix has at least `MIN_PREFIX` characters. Raises `CliError`, code 2, if there is no such device or several.
    """
    wanted = " ".join(text.split())
    found = [device for device in devices if _name(device).casefold() == wanted.casefold()]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [device for device in devices if _has_prefix(device, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        which = ", ".join(device.text("token_prefix") for device in found)
        raise CliError(f"{len(found)} devices are called {wanted!r}: name one by its prefix: {which}", code=USAGE_ERROR)
    names = {_name(device).casefold(): _name(device) for device in devices}
    near = get_close_matches(wanted.casefold(), names, n=1)
    hint = f"the nearest is {names[near[0]]!r}; " if near else ""
    raise CliError(f"no paired device is called {wanted!r}: {hint}see svc devices", code=USAGE_ERROR)


def describe_device(device: JsonObject, now: float) -> str:
    """Return one line that identifies a device: name, prefix, kind, and when it was seen; `now` in epoch seconds."""
    name, prefix, seen, _, kind, _ = _row(device, now)
    return f"{name} ({', '.join(part for part in (prefix, kind, seen) if part != '-')})"


def revoke_device(engine: Engine, relay: RelayClient, text: str) -> Flow[tuple[JsonObject, JsonObject]]:
    """End the session of a device; return the device and the relay's answer. Raises `CliError`."""
    device = find_device((yield from list_host_devices(engine, relay)), text)
    return device, (yield from revoke(engine, relay, device.text("token_prefix")))


def change_device(
    engine: Engine, relay: RelayClient, text: str, change: dict[str, object]
) -> Flow[tuple[JsonObject, JsonObject]]:
    """Change name or lifetime of a device; return the device as it was, and the relay's answer. Raises `CliError`."""
    device = find_device((yield from list_host_devices(engine, relay)), text)
    path = f"/sessions/{encode_segment(device.text('token_prefix'))}"
    sentences = {**FORBIDDEN, ServiceFault.NOT_FOUND: "its session has ended meanwhile: see svc devices"}
    return device, (yield from with_explanation(relay.json(engine, "PATCH", path, change), sentences))


def _row(device: JsonObject, now: float) -> tuple[str, ...]:
    seen, grants = device.number("last_seen"), device.get_object("grants")
    kind = next((word for key in ("client_surface", "device_form_factor") if (word := _known(device, key))), "-")
    return (
        _name(device) or "unknown",
        sanitize_line(device.text("token_prefix")),
        "online" if device.get("online") is True else "-" if seen is None else f"{short_duration(now - seen)} ago",
        short_expiry(device.number("expires_at"), now),
        kind,
        grants_text({channel: grants.number(channel) for channel in grants}, now),
    )


def _known(device: JsonObject, key: str) -> str:
    word = sanitize_line(device.text(key))
    return "" if word == "unknown" else word


def _name(device: JsonObject) -> str:
    return " ".join(sanitize_line(device.text("device_name")).split())


def _has_prefix(device: JsonObject, text: str) -> bool:
    prefix = device.text("token_prefix")
    return bool(prefix) and (prefix.startswith(text) or text.startswith(prefix))


# --- a new device -----------------------------------------------------------------------------------------------------


POLL_INTERVAL = 1.0  # s


def wait_for_device(engine: Engine, relay: RelayClient, *, since: float, until: float) -> Flow[str | None]:
    """Return the name of a device that pairs from `since` on, or None at `until`; both in epoch seconds.

    A device without a name gets a text in its place. A request to the relay that fails is repeated.
    """
    while engine.now.wall < until:
        try:
            listed = yield from relay.sessions(engine)
        except ServiceCallError:
            listed = []
        for session in listed:
            if session.number("created_at", since) is not None:
                return session.text("device_name") or "a device without a name"
        yield from sleep(engine, POLL_INTERVAL)
    return None
