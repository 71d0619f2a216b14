"""Problems of the phones and their sessions, found in the observations of a host: finders for the registry of checks.

Each finder returns a text for the operator, or None if there is no problem.
"""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.cli.health_facts import DeviceFacts, HostFacts
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "find_no_phone",
    "find_phone_away",
    "find_phone_offline",
    "find_no_control",
    "find_store_build",
    "find_no_accessibility",
    "find_battery_optimized",
    "find_session_ends",
]

DAY = 86_400.0  # s
SESSION_SOON = 3 * DAY
AWAY = 7 * DAY  # a phone that was not online for so long
MASTER = "master_enabled"  # the app's switch for Device Control


def find_no_phone(facts: HostFacts) -> str | None:
    """Return a text if no device is paired, else None."""
    return "no device is paired" if facts.devices == () else None


def find_phone_away(facts: HostFacts) -> str | None:
    """Return a text on phones that were last online more than `AWAY` seconds ago; None if there is none."""
    away = [
        f"{each.name} ({(facts.now - each.seen_at) / DAY:.0f} days)"
        for each in facts.devices or ()
        if each.is_phone and not each.is_online and each.seen_at is not None and facts.now - each.seen_at > AWAY
    ]
    return f"not online for long: {', '.join(away)}" if away else None


def find_phone_offline(facts: HostFacts) -> str | None:
    """Return a text if phones are paired and none of them is online, else None."""
    phones = [each for each in facts.devices or () if each.is_phone]
    offline = [each.name for each in phones if not each.is_online]
    return f"not online now: {', '.join(offline)}" if offline and len(offline) == len(phones) else None


def find_no_control(facts: HostFacts) -> str | None:
    """Return a text on online phones with Device Control off; None if there is none."""
    return _named("Device Control is off", facts, lambda each: each.is_online and _bridge(each, MASTER) is False)


def find_store_build(facts: HostFacts) -> str | None:
    """Return a text on online phones whose app has no Device Control; None if there is none."""
    return _named(
        "an app from the store cannot control",
        facts,
        lambda each: each.is_online and _bridge(each, "device_control_supported") is False,
    )


def find_no_accessibility(facts: HostFacts) -> str | None:
    """Return a text on online phones with Device Control on and accessibility off; None if there is none."""
    return _named(
        "the accessibility service is off",
        facts,
        lambda each: (
            each.is_online and _bridge(each, MASTER) is True and _bridge(each, "accessibility_granted") is False
        ),
    )


def find_battery_optimized(facts: HostFacts) -> str | None:
    """Return a text on phones that report battery optimization of the app; None if there is none."""

    def is_optimized(each: DeviceFacts) -> bool:
        device = JsonObject.of(each.status).get_object("device")
        return device.get("battery_optimized") is True or device.get("ignoring_battery_optimizations") is False

    return _named("Android may stop the app", facts, is_optimized)


def find_session_ends(facts: HostFacts) -> str | None:
    """Return a text on sessions that end soon; None if there is none."""
    soon = [
        f"{each.name} in {(each.expires_at - facts.now) / DAY:.0f} days"
        for each in facts.devices or ()
        if each.expires_at is not None and 0 < each.expires_at - facts.now < SESSION_SOON
    ]
    return f"sessions end: {', '.join(soon)}" if soon else None


def _named(problem: str, facts: HostFacts, has: Callable[[DeviceFacts], bool]) -> str | None:
    names = [each.name for each in facts.devices or () if has(each)]
    return f"{problem}: {', '.join(names)}" if names else None


def _bridge(device: DeviceFacts, name: str) -> object:
    return JsonObject.of(device.status).get_object("bridge").get(name)
