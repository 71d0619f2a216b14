"""Intents: selection of the app for a raw intent, a share or a call."""

from collections.abc import Mapping
from urllib.parse import unquote

from attrs import frozen

from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.sample_apps import BROWSER, DIALER, MAIL, MAPS, MESSAGES, SETTINGS
from svc_proto.basics.moment import Moment

__all__ = ["Intent", "resolve"]

HANDLERS: dict[str, tuple[str, str, str]] = {  # scheme of the data -> app, screen, field
    "http": (BROWSER, "page", "address"),
    "https": (BROWSER, "page", "address"),
    "geo": (MAPS, "map", "place"),
    "mailto": (MAIL, "compose", "to"),
    "sms": (MESSAGES, "compose", "to"),
    "smsto": (MESSAGES, "compose", "to"),
    "tel": (DIALER, "keypad", "number"),
}
VIEWS = ("android.intent.action.VIEW", "android.intent.action.SENDTO", "android.intent.action.DIAL")
SETTINGS_PAGES = {
    "android.settings.WIFI_SETTINGS": "network",
    "android.settings.DATA_ROAMING_SETTINGS": "network",
    "android.settings.AIRPLANE_MODE_SETTINGS": "settings",
    "android.settings.BLUETOOTH_SETTINGS": "connected",
    "android.settings.NFC_SETTINGS": "connected",
    "android.settings.DISPLAY_SETTINGS": "display",
    "android.settings.DARK_THEME_SETTINGS": "display",
    "android.settings.SOUND_SETTINGS": "sound",
}
SEARCH = "android.intent.action.WEB_SEARCH"
CLOCK_ACTIONS = ("android.intent.action.SET_ALARM", "android.intent.action.SET_TIMER")
CLOCK = "com.android.deskclock"
SEND = "android.intent.action.SEND"


@frozen
class Intent:
    """Parts of an intent; empty strings for missing ones."""

    action: str
    data: str
    package: str
    extras: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        """Return action, package and data as members of a reply."""
        return {"action": self.action, "package": self.package, "data": self.data}


def resolve(device: EmulatedDevice, intent: Intent, target: str, now: Moment) -> bool:
    """Start the app that handles an intent, or open the share sheet; return False if nothing handles the intent.

    `target` is a package, or empty for any.
    """
    scheme, _, rest = intent.data.partition(":")
    handler = HANDLERS.get(scheme.lower()) if intent.action in VIEWS else None
    if handler is not None and target in ("", handler[0]):
        package, screen, key = handler
        if package in device.apps:
            device.fill(package, {key: intent.data if package == BROWSER else unquote(rest)})
        return device.launch(package, now, screen)
    if intent.action == SEARCH and BROWSER in device.apps:
        device.fill(BROWSER, {"address": intent.extras.get("query", "")})
        return device.launch(BROWSER, now, "page")
    if intent.action in CLOCK_ACTIONS:
        return device.launch(CLOCK, now)  # as on phones in use: numbers arrive as text, so the clock sets nothing
    if target:
        return device.launch(target, now)
    if intent.action == SEND:
        device.share(intent.extras.get("android.intent.extra.TITLE") or "Share", now)
        return True
    if intent.action.startswith("android.settings."):
        return device.launch(SETTINGS, now, SETTINGS_PAGES.get(intent.action))
    return False
