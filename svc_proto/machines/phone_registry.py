"""Registry of connected phones: selection of a phone, and the last status of each.

A phone is identified by its device id, or by its socket without a usable id. The same device on a new socket replaces
the old one. The number of phones is bounded by that of the connections (wire bridge 1.3, 1.4, 2.4, 4.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from attrs import define, field

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.basics.validate import text
from svc_proto.machines.paired_session import NO_DEVICE_ID
from svc_proto.schema.json_object import JsonObject, as_object
from svc_proto.schema.redact import redact, summary

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import PhonesJson, PhoneStatusJson, SelectedPhoneJson

__all__ = ["ASKS_ITS_USER", "MAX_STATUS", "SELECTOR_KEYS", "ConnectedPhone", "PhoneRegistry", "split_selector"]

SELECTOR_KEYS = ("device", "device_id", "deviceId")  # wire bridge 2.4
# A member of a call for a phone that asks its user by itself; an extension, never sent to the phone.
ASKS_ITS_USER = "asks_its_user"
_SELECTORS = frozenset(SELECTOR_KEYS)
MAX_STATUS = 65_536  # characters of a status as JSON; a longer one is ignored
_GROUPS = ("device", "bridge", "safety")  # spec "Bridge status": the three members
_REDUCED = re.compile(r"[^a-z0-9]+")
_ALIASES_BY_WORD = (  # wire bridge 2.4
    (("boox", "onyx", "notemax"), ("boox", "notemax", "note", "tablet")),
    (("pixel", "fold"), ("phone", "fold", "pixel")),
)
_ALIASES_BY_FORM = {"phone": "phone", "tablet": "tablet", "eink": "tablet", "boox": "tablet"}


@define(kw_only=True)
class ConnectedPhone:
    """A connected phone. `status` is a redacted copy of its last report, `reported_at` the time (monotonic)."""

    socket: int
    device_id: str
    name: str
    surface: str
    form_factor: str
    session_prefix: str | None
    aliases: tuple[str, ...]
    status: dict[str, object] | None = field(default=None)
    reported_at: float | None = field(default=None)

    @property
    def asks_its_user(self) -> bool:
        """Report whether the last status has a non-empty `safety` object, as of a phone that asks its user (5.5)."""
        return bool(JsonObject.of((self.status or {}).get("safety")))

    def matches_selector(self, selector: str) -> bool:
        """Report whether the selector is one of the phone's aliases, literally or without case and punctuation."""
        return selector in self.aliases or _reduce(selector) in self.aliases


class PhoneRegistry:
    """Connected phones by device id, with the default phone and the `most_recent` one."""

    def __init__(self) -> None:
        self._phones: dict[str, ConnectedPhone] = {}  # by device id, in order of registration
        self._device_ids: dict[int, str] = {}  # by socket
        self._active: str | None = None
        self._most_recent: str | None = None
        self._last_disconnected: ConnectedPhone | None = None  # the last phone that disconnected after a report

    def __len__(self) -> int:
        return len(self._phones)

    def register(
        self,
        socket: int,
        *,
        device_id: str,
        name: str,
        surface: str = "unknown",
        form_factor: str = "unknown",
        session_prefix: str | None = None,
    ) -> int | None:
        """Register a phone; return the socket that it replaces for the same device, if any.

        It becomes the most recent phone, and the default if there is none. The last status of the same device is kept
        if it is replaced, or was the last to disconnect of the phones that had a status.
        """
        self.remove(socket)
        key = f"socket-{socket}" if device_id.strip().lower() in NO_DEVICE_ID else device_id
        before = self._phones.pop(key, None)
        if before is not None:
            del self._device_ids[before.socket]
        phone = ConnectedPhone(
            socket=socket,
            device_id=key,
            name=name,
            surface=surface,
            form_factor=form_factor,
            session_prefix=session_prefix,
            aliases=_aliases(key, name, form_factor),
        )
        known = before or self._last_disconnected
        if known is not None and known.device_id == key:
            phone.status, phone.reported_at = known.status, known.reported_at
        self._phones[key] = phone
        self._device_ids[socket] = key
        self._most_recent = key
        if self._active is None:
            self._active = key
        return None if before is None else before.socket

    def remove(self, socket: int) -> ConnectedPhone | None:
        """Remove and return the phone of a socket; None if there is none. If it has a status, store it for reports."""
        device_id = self._device_ids.pop(socket, None)
        if device_id is None:
            return None
        phone = self._phones.pop(device_id)
        if phone.status is not None:
            self._last_disconnected = phone
        if self._active == device_id:
            self._active = None
        if self._most_recent == device_id:
            self._most_recent = None
        return phone

    def find_by_socket(self, socket: int) -> ConnectedPhone | None:
        """Return the phone of a socket, or None."""
        device_id = self._device_ids.get(socket)
        return None if device_id is None else self._phones[device_id]

    @property
    def active(self) -> str | None:
        """Device id of the default phone; None without one, so that `choose` selects another."""
        return self._active

    @property
    def most_recent(self) -> str | None:
        """Device id of the phone that was registered or named by `set_preferred` last.

        None if that phone has disconnected, or if `set_preferred` has named none.
        """
        return self._most_recent

    def set_preferred(self, *, active: str | None, most_recent: str | None) -> None:
        """Set the default and the most recent phone, by agreement of all nodes; an unconnected one becomes None."""
        self._active = active if active in self._phones else None
        self._most_recent = most_recent if most_recent in self._phones else None

    def connected(self) -> list[ConnectedPhone]:
        """Return all phones, in order of registration."""
        return list(self._phones.values())

    def find_by_device_id(self, device_id: str) -> ConnectedPhone | None:
        """Return the phone of a device id, or None."""
        return self._phones.get(device_id)

    def status(self, socket: int, payload: object, now: Moment) -> bool:
        """Store a redacted copy of a `bridge.status` payload in place of the last; return False if it was ignored.

        Ignored are a socket without a phone, a payload that is no object, and one that is too long.
        """
        phone, status = self.find_by_socket(socket), as_object(payload)
        if phone is None or status is None or len(summary(status, MAX_STATUS)) >= MAX_STATUS:
            return False
        phone.status = _copy(status)
        phone.reported_at = now.mono
        return True

    def choose(self, selector: str | None) -> ConnectedPhone:
        """Return the phone for a command.

        With a selector: raise 404 `unknown_device` or 409 `ambiguous_device` unless it matches exactly one; a device id
        precedes an alias. Without: the default one, else the `most_recent` one, else the one with the newest status.
        Raise 503 `phone_not_connected` if there is none.
        """
        if selector is not None:
            return self._find_selected(selector)
        for device_id in (self._active, self._most_recent):
            if device_id is not None:
                return self._phones[device_id]
        if not self._phones:
            raise Refused(503, "phone_not_connected", "no phone is connected")
        return self._newest_first()[0]

    def select_active(self, selector: str) -> SelectedPhoneJson:
        """Make a phone the default; return the answer of `/bridge/select-active`. Raise `Refused` 404 or 409."""
        phone = self._find_selected(selector)
        self._active = phone.device_id
        return {
            "ok": True,
            "active_device_id": phone.device_id,
            "device_id": phone.device_id,
            "device_name": phone.name,
            "alias_used": selector,
            "aliases": list(phone.aliases),
        }

    def status_report(self, selector: str | None, now: Moment) -> PhoneStatusJson:
        """Return the body of `GET /bridge/status` (wire bridge 4.1). Raise `Refused` if there is no such phone.

        Without a selector and with no phone connected, it has the last cached status, if there is one, with
        `phone_connected` false.
        """
        if selector is None and not self._phones:
            return self._absent_report(now)
        return self._report(self.choose(selector), now)

    def devices_report(self, now: Moment) -> PhonesJson:
        """Return the body of `GET /bridge/devices`, the newest status first."""
        devices = [self._report(phone, now) for phone in self._newest_first()]
        return {
            "active_device_id": self._active,
            "most_recent_device_id": self._most_recent,
            "devices": devices,
            "count": len(devices),
        }

    def _find_selected(self, selector: str) -> ConnectedPhone:
        if selector in self._phones:
            return self._phones[selector]
        matches = [phone for phone in self._phones.values() if phone.matches_selector(selector)]
        if not matches:
            raise Refused(404, "unknown_device", "no connected device goes by that name")
        if len(matches) > 1:
            raise Refused(409, "ambiguous_device", f"{len(matches)} connected devices go by that name")
        return matches[0]

    def _newest_first(self) -> list[ConnectedPhone]:
        def age_key(phone: ConnectedPhone) -> float:
            return float("-inf") if phone.reported_at is None else phone.reported_at

        return sorted(self._phones.values(), key=age_key, reverse=True)

    def _absent_report(self, now: Moment) -> PhoneStatusJson:
        left = self._last_disconnected
        if left is None:
            raise Refused(
                503,
                "phone_not_connected",
                "no phone connected",
                extra={"phone_connected": False, "last_seen_seconds_ago": None},
            )
        return {**_groups(left), "phone_connected": False, "last_seen_seconds_ago": _age(left, now)}

    def _report(self, phone: ConnectedPhone, now: Moment) -> PhoneStatusJson:
        report = _groups(phone)
        report["device"] = {"device_id": phone.device_id, "name": phone.name, **report["device"]}
        report.setdefault("device_id", phone.device_id)
        report.setdefault("device_name", phone.name)
        return {
            **report,
            "phone_connected": True,
            "last_seen_seconds_ago": _age(phone, now),
            "connected": True,
            "active": phone.device_id == self._active,
            "aliases": list(phone.aliases),
            "session_token_prefix": phone.session_prefix,
            "client_surface": phone.surface,
            "device_form_factor": phone.form_factor,
        }


def split_selector(
    params: Mapping[str, object], body: Mapping[str, object]
) -> tuple[str | None, dict[str, object], dict[str, object]]:
    """Return the device selector of a request, or None, and copies of its query and body without selectors.

    The first non-empty selector counts, those of the query before those of the body. Raise `Refused` 400 if it is not
    text.
    """
    if _SELECTORS.isdisjoint(params) and _SELECTORS.isdisjoint(body):
        return None, dict(params), dict(body)
    chosen: str | None = None
    for source in (params, body):
        for key in SELECTOR_KEYS:
            value = source.get(key)
            if chosen is None and value is not None and value != "":
                chosen = text(value, key)
    return chosen, _without_selectors(params), _without_selectors(body)


def _without_selectors(members: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in members.items() if key not in SELECTOR_KEYS}


def _groups(phone: ConnectedPhone) -> PhoneStatusJson:
    """Return a copy of the last status in which each member of `_GROUPS` exists, as an object."""
    report = _copy(phone.status or {})
    report.update({group: JsonObject.of(report.get(group)) for group in _GROUPS})
    return cast("PhoneStatusJson", report)  # the caller sets the other members


def _copy(payload: Mapping[str, object]) -> dict[str, object]:
    return JsonObject.of(redact(payload))  # a status should have no secrets; if it has, inspectors must not see them


def _age(phone: ConnectedPhone, now: Moment) -> int | None:
    return None if phone.reported_at is None else max(0, int(now.mono - phone.reported_at))


def _reduce(word: str) -> str:
    return _REDUCED.sub("", word.lower())


def _aliases(device_id: str, name: str, form_factor: str) -> tuple[str, ...]:
    words = [device_id, _reduce(device_id), name, _reduce(name)]
    known = f"{_reduce(device_id)} {_reduce(name)}"
    for signs, aliases in _ALIASES_BY_WORD:
        if any(sign in known for sign in signs):
            words.extend(aliases)
    words.append(_ALIASES_BY_FORM.get(form_factor.lower(), ""))
    return tuple(word for word in dict.fromkeys(words) if word)
